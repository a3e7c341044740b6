// What is kept for the next process: found again under its key, bounded in number, and given up
// where the folder cannot be used.

import { spawnSync } from "node:child_process";
import fs, {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import os, { tmpdir } from "node:os";
import { join } from "node:path";
import { withEnv } from "gradloom";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { cached, keep, keyOf } from "../../src/host/diskcache.ts";

const root = join(import.meta.dirname, "../..");
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gradloom-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const bytes = Uint8Array.of(1, 2, 3);
const never = (): never => {
  throw new Error("made again");
};

test("what was made is found again, under its key only", () => {
  withEnv({ CACHE: join(folder, "a") }, () => {
    expect([...cached("kind", keyOf("x"), () => bytes)]).toEqual([1, 2, 3]);
    expect([...cached("kind", keyOf("x"), never)]).toEqual([1, 2, 3]);
    expect(() => cached("kind", keyOf("y"), never)).toThrow("made again");
    expect(() => cached("other", keyOf("x"), never)).toThrow("made again");
  });
  expect(readdirSync(join(folder, "a", "kind"))).toEqual([`${keyOf("x")}.sum`]);
});
test("CACHE=0 keeps nothing", () => {
  withEnv({ CACHE: "0" }, () => {
    expect([...cached("kind", keyOf("x"), () => bytes)]).toEqual([1, 2, 3]);
    expect(() => cached("kind", keyOf("x"), never)).toThrow("made again");
  });
  expect(existsSync("0")).toBe(false);
});
test("a folder that cannot be made is told once, and costs time and no more", () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  const file = join(folder, "file");
  writeFileSync(file, "");
  withEnv({ CACHE: file }, () => {
    expect([...cached("kind", "k", () => bytes)]).toEqual([1, 2, 3]);
    expect([...cached("kind", "l", () => bytes)]).toEqual([1, 2, 3]);
  });
  expect(warn.mock.calls.map(String)).toEqual([
    expect.stringMatching(
      /file\/kind cannot keep what was compiled \(ENOTDIR.*set CACHE to a folder that can/,
    ),
  ]);
  warn.mockRestore();
});
test("one that was removed meanwhile is made again", () => {
  withEnv({ CACHE: join(folder, "deep", "er") }, () => {
    cached("kind", "k", () => bytes);
    rmSync(join(folder, "deep"), { recursive: true });
    cached("kind", "k", () => bytes);
    expect([...cached("kind", "k", never)]).toEqual([1, 2, 3]);
  });
});
// Node's recursive mkdir never returns there, which would be the end of this process
test("where no folder can ever be made, BEAM searches and the program ends", { timeout: 30_000 }, ({
  skip,
}) => {
  skip(!existsSync("/proc/self"), "there is no /proc here");
  const program = join(folder, "beam.mts");
  writeFileSync(
    program,
    `import { Tensor } from ${JSON.stringify(join(root, "src/index.ts"))};
     for (const n of [64, 96]) console.log(await Tensor.ones(n, n).sum().item());`,
  );
  const tsx = createRequire(import.meta.url).resolve("tsx/cli");
  const env = { ...process.env, CACHE: "/proc/none", BEAM: "1", BEAM_SECONDS: "1", DEV: "WASM" };
  const run = spawnSync(process.execPath, [tsx, program], {
    cwd: root,
    env,
    encoding: "utf8",
    timeout: 25_000,
  });
  expect(run.stdout, run.stderr).toBe("4096\n9216\n");
  expect(run.stderr.match(/cannot keep/g)).toEqual(["cannot keep"]);
});
/** An unusual folder is told of once, and neither read nor written. */
function refused(cache: string, why: RegExp): void {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  withEnv({ CACHE: cache }, () => {
    expect([...cached("kind", "k", () => bytes)]).toEqual([1, 2, 3]);
    expect(() => cached("kind", "k", never)).toThrow("made again");
  });
  expect(warn.mock.calls.map(String)).toEqual([expect.stringMatching(why)]);
  warn.mockRestore();
}
const POSIX = process.getuid !== undefined;

test("a folder that others may write to is not used", ({ skip }) => {
  skip(!POSIX, "files have no owners here");
  for (const [name, mode] of [
    ["group", 0o770],
    ["all", 0o707],
  ] as const) {
    const cache = join(folder, name);
    withEnv({ CACHE: cache }, () => cached("kind", "k", () => Uint8Array.of(9))); // what somebody put there
    chmodSync(cache, mode);
    refused(cache, /is not used, because files in it are run as code: .*others may write.*chmod go-w/);
    expect(readdirSync(join(cache, "kind"))).toEqual(["k.sum"]);
  }
  const inner = join(folder, "inner");
  mkdirSync(join(inner, "kind"), { recursive: true });
  chmodSync(join(inner, "kind"), 0o777);
  refused(inner, /inner\/kind: others may write to it \(mode 777\)/);
});
test("a folder of another user is not used", ({ skip }) => {
  skip(!POSIX, "files have no owners here");
  const cache = join(folder, "theirs");
  mkdirSync(join(cache, "kind"), { recursive: true, mode: 0o700 });
  const real = process.getuid as () => number;
  const user = vi.spyOn(process, "getuid").mockReturnValue(real() + 1);
  refused(cache, /it belongs to user \d+, not to user \d+; set CACHE to a folder of your own, or to 0/);
  user.mockRestore();
});
test("a damaged file is made again", () => {
  const cache = join(folder, "damaged");
  const file = join(cache, "kind", "k.sum");
  withEnv({ CACHE: cache }, () => {
    cached("kind", "k", () => bytes);
    cached("kind", "other", () => Uint8Array.of(4, 5, 6));
    const whole = readFileSync(file);
    const damages: Uint8Array[] = [
      new Uint8Array(0),
      whole.subarray(0, 20),
      whole.subarray(0, -1),
      Buffer.concat([whole, whole]),
      readFileSync(join(cache, "kind", "other.sum")), // whole, but of another key
      bytes, // what earlier versions kept
    ];
    for (let i = 0; i < whole.length; i++) damages.push(whole.map((x, j) => (i === j ? x ^ 1 : x)));
    for (const damage of damages) {
      writeFileSync(file, damage);
      expect([...cached("kind", "k", () => bytes)]).toEqual([1, 2, 3]);
      expect([...cached("kind", "k", never)]).toEqual([1, 2, 3]);
    }
  });
});
test("a damaged file that cannot be removed costs time and no more", () => {
  const cache = join(folder, "readonly");
  withEnv({ CACHE: cache }, () => {
    cached("kind", "k", () => bytes);
    writeFileSync(join(cache, "kind", "k.sum"), "damaged");
    const remove = vi.spyOn(fs, "rmSync").mockImplementation(() => {
      throw Object.assign(new Error("EROFS: read-only file system"), { code: "EROFS" });
    });
    expect([...cached("kind", "k", () => bytes)]).toEqual([1, 2, 3]);
    expect(remove).toHaveBeenCalled();
    remove.mockRestore();
  });
});
test("a file that others may write, or that is a link to theirs, is made again", ({ skip }) => {
  skip(!POSIX, "files have no owners here");
  const cache = join(folder, "planted");
  const file = join(cache, "kind", "k.sum");
  withEnv({ CACHE: cache }, () => {
    cached("kind", "k", () => Uint8Array.of(9));
    chmodSync(file, 0o622);
    expect([...cached("kind", "k", () => bytes)]).toEqual([1, 2, 3]);
    cached("kind", "theirs", () => Uint8Array.of(9));
    renameSync(join(cache, "kind", "theirs.sum"), join(folder, "theirs.sum"));
    chmodSync(join(folder, "theirs.sum"), 0o666);
    symlinkSync(join(folder, "theirs.sum"), join(cache, "kind", "theirs.sum"));
    expect([...cached("kind", "theirs", () => bytes)]).toEqual([1, 2, 3]);
    expect([...cached("kind", "theirs", never)]).toEqual([1, 2, 3]);
  });
});
test("without a home nothing is kept, least of all where the program was started", () => {
  const home = vi.spyOn(os, "homedir");
  for (const answer of [() => "", () => never()]) {
    home.mockImplementation(answer);
    withEnv({ CACHE: "" }, () => {
      expect([...cached("test", "k", () => bytes)]).toEqual([1, 2, 3]);
      expect(() => cached("test", "k", never)).toThrow("made again");
    });
  }
  expect(existsSync(".cache/gradloom/test")).toBe(false);
  home.mockRestore();
});
test("processes and threads that keep the same keys at once leave whole files and no drafts", () => {
  const cache = join(folder, "many");
  const program = join(folder, "many.mts");
  writeFileSync(
    program,
    `import { cached } from ${JSON.stringify(join(root, "src/host/diskcache.ts"))};
     import { spawn } from "node:child_process";
     const bytesOf = (i) => new Uint8Array(1000 + i).fill(i);
     if (process.argv[2] === undefined) {
       const all = [1, 2, 3].map(() => spawn(process.execPath, [...process.execArgv, process.argv[1], "x"], { stdio: "inherit" }));
       const codes = await Promise.all(all.map((c) => new Promise((done) => c.on("close", done))));
       process.exit(codes.some((c) => c !== 0) ? 1 : 0);
     }
     for (let round = 0; round < 4; round++)
       for (let i = 0; i < 25; i++) {
         const got = cached("kind", "k" + i, () => bytesOf(i));
         if (got.length !== 1000 + i || got.some((x) => x !== i)) process.exit(3);
       }`,
  );
  const env = { ...process.env, CACHE: cache };
  const run = spawnSync(process.execPath, ["--import", "tsx", program], {
    cwd: root,
    env,
    encoding: "utf8",
    timeout: 60_000,
  });
  expect([run.status, run.stderr]).toEqual([0, ""]);
  expect(readdirSync(join(cache, "kind")).sort()).toEqual(
    Array.from({ length: 25 }, (_, i) => `k${i}.sum`).sort(),
  );
});
test("a file is on the disk before it has its name, and its draft has a name of its own", () => {
  const calls: string[] = [];
  const fs = createRequire(import.meta.url)("node:fs") as typeof import("node:fs");
  const spies = (["openSync", "fsyncSync", "renameSync"] as const).map((name) => {
    const real = fs[name] as (...args: unknown[]) => unknown;
    return vi.spyOn(fs, name).mockImplementation(((...args: unknown[]) => {
      calls.push(name === "openSync" ? `${name} ${args[0]} ${args[1]}` : name);
      return real(...args);
    }) as never);
  });
  withEnv({ CACHE: join(folder, "order") }, () => {
    for (const key of ["k", "k"]) keep("kind", key, bytes);
  });
  for (const spy of spies) spy.mockRestore();
  expect(calls.map((c) => c.split(" ")[0])).toEqual(
    Array(2).fill(["openSync", "fsyncSync", "renameSync"]).flat(),
  );
  const drafts = calls.filter((c) => c.startsWith("openSync"));
  expect(new Set(drafts).size).toBe(2);
  for (const draft of drafts)
    expect(draft).toMatch(new RegExp(`k\\.sum\\.${process.pid}\\.[-0-9a-f]{36}\\.part wx$`));
});
/** What `write` calls of the file system, in its order. */
const STEPS = ["openSync", "writeSync", "fsyncSync", "closeSync", "renameSync", "rmSync"] as const;
/** Runs `fn` on a file system whose call number `at` and all after it fail; says whether it came to that. */
function failing(at: number, error: Error, fn: () => void): boolean {
  let calls = 0;
  const spies = STEPS.map((name) => {
    const real = fs[name] as (...args: unknown[]) => unknown;
    return vi.spyOn(fs, name).mockImplementation(((...args: unknown[]) => {
      if (calls++ < at) return real(...args);
      if (name === "closeSync") real(...args); // the system closes what a dead process had open
      throw error;
    }) as never);
  });
  try {
    fn();
  } catch (e) {
    if (e !== error) throw e;
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
  return calls > at;
}
test("a process that dies at any step of a write leaves the old file, the new one or none", () => {
  const cache = join(folder, "killed");
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  for (const isThere of [false, true]) {
    for (let at = 0, more = true; more; at++) {
      // a folder of its own: after a failed write a process keeps nothing there
      withEnv({ CACHE: join(cache, `${isThere}${at}`) }, () => {
        if (isThere) keep("kind", "k", Uint8Array.of(7));
        else keep("kind", "other", bytes); // makes the folder
        more = failing(at, new Error("killed"), () => keep("kind", "k", bytes));
        const got = [...cached("kind", "k", () => Uint8Array.of(9))].join();
        expect(isThere ? ["7", "1,2,3"] : ["9", "1,2,3"]).toContain(got);
      });
    }
  }
  warn.mockRestore();
});
test("a disk that is full, or only read, is told once; what lies there is still found", () => {
  const cache = join(folder, "full");
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  withEnv({ CACHE: cache }, () => {
    keep("kind", "k", bytes);
    const write = vi.spyOn(fs, "writeSync").mockImplementation(() => {
      throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
    });
    for (const key of ["l", "m"]) expect([...cached("kind", key, () => bytes)]).toEqual([1, 2, 3]);
    expect(write).toHaveBeenCalledTimes(1);
    write.mockRestore();
    expect([...cached("kind", "k", never)]).toEqual([1, 2, 3]);
  });
  expect(warn.mock.calls.map(String)).toEqual([expect.stringMatching(/full.kind cannot keep .*ENOSPC/)]);
  expect(readdirSync(join(cache, "kind"))).toEqual(["k.sum"]);
  warn.mockRestore();
});
test("drafts that a dead process left go, those of others stay", () => {
  const kind = join(folder, "drafts", "kind");
  mkdirSync(kind, { recursive: true });
  for (const name of ["old.1.a.part", "new.2.b.part"]) writeFileSync(join(kind, name), "");
  utimesSync(join(kind, "old.1.a.part"), 1, 1);
  withEnv({ CACHE: join(folder, "drafts") }, () => cached("kind", "last", () => bytes));
  expect(readdirSync(kind).sort()).toEqual(["last.sum", "new.2.b.part"]);
});
test("too many bytes: the oldest go until half is left", () => {
  const kind = join(folder, "large", "kind");
  mkdirSync(kind, { recursive: true });
  for (let i = 0; i < 6; i++) {
    const file = join(kind, `f${i}`);
    writeFileSync(file, "");
    truncateSync(file, 100 * 2 ** 20); // holes, which take no room
    utimesSync(file, 1000 + i, 1000 + i);
  }
  withEnv({ CACHE: join(folder, "large") }, () => cached("kind", "last", () => bytes));
  expect(readdirSync(kind).sort()).toEqual(["f4", "f5", "last.sum"]);
});
test("too many files: the older half goes", () => {
  const crowded = join(folder, "b", "kind");
  mkdirSync(crowded, { recursive: true });
  for (let i = 0; i < 8300; i++) writeFileSync(join(crowded, `f${i}`), "");
  utimesSync(join(crowded, "f8000"), 1, 1);
  withEnv({ CACHE: join(folder, "b") }, () => cached("kind", "last", () => bytes));
  const left = readdirSync(crowded);
  expect(left.length).toBeLessThan(4300);
  expect(left).not.toContain("f8000");
  expect(left).toContain("last.sum");
});
