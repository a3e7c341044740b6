// DISK: a tensor on a file. Nothing is read before bytes are asked for, only the asked bytes are read, what
// is written comes back, and a file that is missing, short or no file is told as a FileError.

import { mkdtempSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  BufferRead,
  CommandQueue,
  Device,
  DeviceError,
  type DTypeName,
  FileError,
  GlobalCounters,
  ShapeError,
  Tensor,
} from "gradloom";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { runnerFor } from "../../src/engine/compile.ts";
import { runSync } from "../../src/helpers.ts";
import type { Allocator } from "../../src/runtime/device.ts";
import { itemsOf, opsOf } from "../schedule/count.ts";

const dir = mkdtempSync(join(tmpdir(), "gradloom-disk-"));
let count = 0;
const fresh = (): string => join(dir, `file${count++}.bin`);
const bytes = (n: number): Uint8Array => Uint8Array.from({ length: n }, (_, i) => (i * 7) % 256);
/** A file with these contents, and a tensor of bytes on it. */
function file(contents: Uint8Array): { path: string; tensor: Tensor } {
  const path = fresh();
  writeFileSync(path, contents);
  return { path, tensor: Tensor.fromFile(path, [contents.length]) };
}
beforeAll(() => Device.open("JS"));
afterAll(() => rmSync(dir, { recursive: true }));

/** How many bytes are read from a file while `f` runs. */
async function bytesRead(path: string, f: () => Promise<void>): Promise<number> {
  const { allocator } = await Device.open(`DISK:${path}`);
  const spied = allocator as { copyout: Allocator["copyout"] };
  let total = 0;
  const original = spied.copyout;
  spied.copyout = (dest, src) => {
    total += dest.byteLength;
    return original.call(allocator, dest, src);
  };
  await f();
  spied.copyout = original;
  return total;
}

describe("reading", () => {
  test("nothing is read, opened or checked until a value is asked for", async () => {
    const path = fresh();
    const t = Tensor.fromFile(path, [10]).to("WASM").cast("int32").add(1);
    writeFileSync(path, bytes(10)); // it did not exist before
    expect(await t.tolist()).toEqual([...bytes(10)].map((b) => b + 1));
  });
  test("a move to a device is one BufferRead", () => {
    const { tensor } = file(bytes(64));
    const items = itemsOf(tensor.to("WASM"));
    expect(items.map((si) => si.ast[0]?.op)).toEqual(["EMPTY", "COPY"]);
    const [empty, copy] = items;
    expect(new CommandQueue(items).toString()).toContain("COPY(WASM <- DISK:");
    if (empty === undefined || copy === undefined) throw new Error("two items");
    expect(runSync(runnerFor(copy), "test")).toBeInstanceOf(BufferRead);
    expect(runSync(runnerFor(empty), "test")).toBeUndefined();
  });
  test("every way to a value", async () => {
    const { tensor } = file(bytes(12));
    const expected = [...bytes(12)];
    expect([...(await tensor.data())]).toEqual(expected);
    expect([...tensor.dataSync()]).toEqual(expected);
    expect(await tensor.reshape(3, 4).tolist()).toEqual([
      expected.slice(0, 4),
      expected.slice(4, 8),
      expected.slice(8),
    ]);
    for (const device of ["WASM", "WASM:1", "JS", "EXT"])
      expect(await tensor.to(device).tolist()).toEqual(expected);
    expect(await tensor.to("WASM").to("JS").flip(0).tolist()).toEqual(expected.toReversed());
  });
  test("a part is read as a part", async () => {
    const { path, tensor } = file(bytes(1000));
    const read = await bytesRead(path, async () => {
      expect([...(await tensor.shrink([[10, 14]]).data())]).toEqual([...bytes(14).slice(10)]);
      expect([
        ...(await tensor
          .shrink([[990, 1000]])
          .to("WASM")
          .data()),
      ]).toEqual([...bytes(1000).slice(990)]);
      const row = tensor.reshape(10, 10, 10).shrink([[3, 4], [2, 5], null]);
      expect([...(await row.to("JS").data())]).toEqual([...bytes(1000).slice(320, 350)]);
    });
    expect(read).toBe(4 + 10 + 30);
  });
  test("parts that do not lie together are right as well", async () => {
    const { tensor } = file(bytes(100));
    const grid = tensor.reshape(10, 10);
    const at = (i: number, j: number): number => bytes(100)[i * 10 + j] ?? -1;
    expect(await grid.shrink([null, [2, 4]]).tolist()).toEqual(
      Array.from({ length: 10 }, (_, i) => [at(i, 2), at(i, 3)]),
    );
    expect(
      await grid.T.shrink([[0, 2], null])
        .to("WASM")
        .tolist(),
    ).toEqual([0, 1].map((j) => Array.from({ length: 10 }, (_, i) => at(i, j))));
    expect(
      await tensor
        .flip(0)
        .to("WASM")
        .shrink([[0, 3]])
        .tolist(),
    ).toEqual([...bytes(100)].reverse().slice(0, 3));
  });
  test("a copy is counted, a second read reads the file again", async () => {
    const { path, tensor } = file(bytes(8));
    GlobalCounters.reset();
    const here = await tensor.to("WASM").realize();
    expect([GlobalCounters.copyCount, GlobalCounters.kernelCount]).toEqual([1, 0]);
    writeFileSync(path, new Uint8Array(8).fill(9));
    expect([...(await here.data())]).toEqual([...bytes(8)]);
    expect([...(await tensor.data())]).toEqual(Array.from({ length: 8 }, () => 9));
  });
  test("a tensor keeps the file that it opened, a new one sees the file that was put in its place", async () => {
    const { path, tensor } = file(bytes(8));
    expect((await tensor.data())[1]).toBe(7);
    const other = file(new Uint8Array(8).fill(3));
    renameSync(other.path, path);
    expect((await tensor.data())[1]).toBe(7);
    expect([...(await Tensor.fromFile(path, [8]).data())]).toEqual(Array.from({ length: 8 }, () => 3));
  });
});

describe("writing", () => {
  const TYPES: readonly (readonly [DTypeName, readonly (number | bigint | boolean)[]])[] = [
    ["bool", [true, false, true]],
    ["int8", [-128, 0, 127]],
    ["uint8", [0, 1, 255]],
    ["int16", [-32768, 1, 32767]],
    ["uint16", [0, 1, 65535]],
    ["int32", [-(2 ** 31), 5, 2 ** 31 - 1]],
    ["uint32", [0, 5, 2 ** 32 - 1]],
    ["int64", [-(2n ** 63n), 5n, 2n ** 63n - 1n]],
    ["uint64", [0n, 5n, 2n ** 64n - 1n]],
    ["float16", [-0.5, 0.25, 65504]],
    ["bfloat16", [-0.5, 0.25, 256]],
    ["float32", [-0.5, 2 ** 100, Infinity]],
    ["float64", [-0.1, 1e300, -Infinity]],
  ];
  for (const [dtype, values] of TYPES) {
    test(`${dtype} comes back as it was`, async () => {
      const path = fresh();
      const t = new Tensor([...values], { dtype });
      await t.to(`DISK:${path}`).realize();
      expect(readFileSync(path)).toHaveLength(values.length * t.dtype.itemsize);
      const back = Tensor.fromFile(path, [values.length], dtype);
      expect(await back.tolist()).toEqual(values);
      expect(await back.to("WASM").tolist()).toEqual(values);
      expect(
        await back
          .shrink([[1, 3]])
          .to("JS")
          .tolist(),
      ).toEqual(values.slice(1));
    });
  }
  test("results, views and constants are written", async () => {
    const [a, b, c] = [fresh(), fresh(), fresh()];
    const x = new Tensor([1, 2, 3]);
    await Tensor.realize(
      x.mul(2).to(`DISK:${a}`),
      x.flip(0).to(`DISK:${b}`),
      Tensor.full([3], 7, { dtype: "int32" }).to(`DISK:${c}`),
    );
    const read = (path: string) => Tensor.fromFile(path, [3], "int32").tolist();
    expect(await Promise.all([a, b, c].map(read))).toEqual([
      [2, 4, 6],
      [3, 2, 1],
      [7, 7, 7],
    ]);
  });
  test("a file is copied to a file, in part too", async () => {
    const { tensor } = file(bytes(100));
    const [whole, part] = [fresh(), fresh()];
    await Tensor.realize(tensor.to(`DISK:${whole}`), tensor.shrink([[20, 30]]).to(`DISK:${part}`));
    expect(new Uint8Array(readFileSync(whole))).toEqual(bytes(100));
    expect(new Uint8Array(readFileSync(part))).toEqual(bytes(30).slice(20));
  });
  test("a file of the right size is overwritten, through a handle that was opened to read", async () => {
    const { path, tensor } = file(bytes(8));
    await tensor.data();
    await new Tensor(new Uint8Array(8).fill(5)).to(`DISK:${path}`).realize();
    expect([...readFileSync(path)]).toEqual(Array.from({ length: 8 }, () => 5));
    expect([...(await tensor.data())]).toEqual(Array.from({ length: 8 }, () => 5));
  });
  test("paths with a colon, and one that is called 0", async () => {
    for (const name of ["a:0", "b:c:d", "0"]) {
      const path = join(dir, name);
      await new Tensor(new Uint8Array([1, 2])).to(`DISK:${path}`).realize();
      expect([...readFileSync(path)]).toEqual([1, 2]);
      expect(await Tensor.fromFile(path, [2]).tolist()).toEqual([1, 2]);
    }
  });
});

describe("files that are not as expected", () => {
  const refused = async (t: Tensor, text: RegExp): Promise<void> => {
    await expect(t.data()).rejects.toThrow(FileError);
    await expect(t.to("WASM").realize()).rejects.toThrow(text);
    expect(() => t.dataSync()).toThrow(FileError);
    expect(await new Tensor([1, 2]).add(1).tolist()).toEqual([2, 3]);
  };
  test("missing", async () => {
    const path = fresh();
    const t = Tensor.fromFile(path, [4]);
    await refused(t, /cannot open .*file\d+\.bin: ENOENT/);
    writeFileSync(path, bytes(4)); // it may come later
    expect([...(await t.data())]).toEqual([...bytes(4)]);
  });
  test("truncated: the text has both sizes", async () => {
    const { path } = file(bytes(10));
    await refused(
      Tensor.fromFile(path, [3], "float32"),
      /has 10 bytes, the tensor on it needs 12; the file is truncated/,
    );
  });
  test("truncated after it was opened", async () => {
    const { path, tensor } = file(bytes(100));
    expect((await tensor.data()).length).toBe(100);
    truncateSync(path, 50);
    await refused(tensor, /has 50 bytes, the tensor on it needs 100/);
    expect([...(await tensor.shrink([[40, 50]]).data())]).toEqual([...bytes(50).slice(40)]);
    await refused(tensor.shrink([[45, 55]]), /has 50 bytes, the tensor on it needs 55/);
  });
  test("removed after it was opened: what is open stays readable, a new tensor is refused", async () => {
    const { path, tensor } = file(bytes(10));
    await tensor.data();
    rmSync(path);
    expect((await tensor.data())[1]).toBe(7);
    await refused(Tensor.fromFile(path, [10]), /ENOENT/);
  });
  test("a folder", async () => {
    await refused(Tensor.fromFile(dir, [4]), /cannot (?:open|read) .*EISDIR/);
  });
  test("a place that cannot be written", async () => {
    const there = new Tensor([1, 2]).to(`DISK:${join(dir, "no", "such", "folder.bin")}`);
    await expect(there.realize()).rejects.toThrow(FileError);
    await expect(there.realize()).rejects.toThrow(/cannot open .*folder\.bin.*ENOENT/);
  });
  test("writing more than an existing file holds", async () => {
    const { path } = file(bytes(8));
    await expect(new Tensor([1, 2, 3]).to(`DISK:${path}`).realize()).rejects.toThrow(
      /has 8 bytes.*needs 12.*delete this one/,
    );
    expect(new Uint8Array(readFileSync(path))).toEqual(bytes(8));
  });
  test("computing on a file is refused with the way out", async () => {
    const { tensor } = file(bytes(8));
    await expect(tensor.add(1).data()).rejects.toThrow(DeviceError);
    await expect(tensor.sum().data()).rejects.toThrow(
      /holds data and cannot compute; move the tensor first: t\.to\("WASM"\)/,
    );
    expect(await tensor.to("WASM").cast("int32").sum().item()).toBe([...bytes(8)].reduce((a, b) => a + b, 0));
  });
});

describe("NULL", () => {
  let recorded: typeof import("../../src/devices/null.ts").recorded;
  beforeAll(async () => {
    ({ recorded } = await import("../../src/devices/null.ts"));
    await Device.open("NULL");
  });
  beforeEach(() => void recorded.splice(0));

  test("records what it is asked to run, in order, and computes nothing", async () => {
    const x = new Tensor([1, 2, 3, 4], { device: "NULL" });
    const t = x.add(1).contiguous().sum();
    expect(await t.item()).toBe(0);
    expect(recorded.map((r) => r.name.replace(/n\d+$/, ""))).toEqual(["E_4", "r_4"]);
    expect(recorded.map((r) => r.buffers)).toEqual([2, 2]);
    expect(recorded[0]?.source).toContain(`void ${recorded[0]?.name}(`);
  });
  test("holds shapes of any size: kernels of a large model can be looked at", async () => {
    const w = Tensor.empty([40_000, 40_000], { device: "NULL" });
    const x = Tensor.empty([1, 40_000], { device: "NULL" });
    expect(opsOf(x.dot(w).relu())).toEqual(["EMPTY", "EMPTY", "STORE"]);
    await x.dot(w).relu().realize();
    expect(recorded).toHaveLength(1);
    const beyond = Tensor.empty([100_000, 100_000], { device: "NULL" }).add(1);
    await expect(beyond.realize()).rejects.toThrow(
      /10000000000 elements cannot be indexed with 32 bits; split the tensor/,
    );
    expect(recorded[0]?.source).toContain("40000");
  });
  test("symbolic values are recorded with the launch", async () => {
    const { Variable } = await import("gradloom");
    const n = Variable("n", 1, 10);
    await new Tensor(new Float32Array(10), { device: "NULL" })
      .shrink([[0, n.bind(6)]])
      .sum()
      .realize();
    expect(recorded[0]?.launch.vals).toEqual([6]);
  });
});

describe("the same bytes as another type", () => {
  const floats = new Float32Array([1.5, 2.5, -3, 4]);
  const stored = (): Tensor => file(new Uint8Array(floats.buffer)).tensor;
  test("wider, narrower and of one size, without a kernel", async () => {
    const raw = stored();
    const wide = raw.bitcast("float32");
    expect([wide.shape, wide.device]).toEqual([[4], raw.device]);
    expect(opsOf(wide.to("JS"))).toEqual(["EMPTY", "COPY"]);
    expect(await wide.tolist()).toEqual([...floats]);
    expect(await wide.to("JS").add(1).tolist()).toEqual([2.5, 3.5, -2, 5]);
    expect(await wide.bitcast("int32").to("JS").tolist()).toEqual([...new Int32Array(floats.buffer)]);
    expect(await wide.bitcast("uint8").tolist()).toEqual([...new Uint8Array(floats.buffer)]);
    expect(await wide.bitcast("int4").bitcast("float32").to("WASM").tolist()).toEqual([...floats]);
  });
  test("of a tensor of several dims the last one changes", async () => {
    const wide = stored().reshape(2, 8).bitcast("float32");
    expect(wide.shape).toEqual([2, 2]);
    expect(await wide.to("JS").tolist()).toEqual([
      [1.5, 2.5],
      [-3, 4],
    ]);
  });
  test("a part of a file, of which only the part is read", async () => {
    const { path, tensor } = file(new Uint8Array(floats.buffer));
    const part = tensor.shrink([[4, 12]]).bitcast("float32");
    let values: unknown;
    const read = await bytesRead(path, async () => {
      values = await part.to("JS").tolist();
    });
    expect([values, read]).toEqual([[2.5, -3], 8]);
    const late = tensor.shrink([[2, 14]]).bitcast("uint16");
    expect(await late.tolist()).toEqual([...new Uint16Array(floats.buffer, 2, 6)]);
  });
  test("elements of one size in any order", async () => {
    const turned = stored().bitcast("float32").reshape(2, 2).transpose().bitcast("int32");
    const [a, b, c, d] = new Int32Array(floats.buffer);
    expect(await turned.to("JS").tolist()).toEqual([
      [a, c],
      [b, d],
    ]);
  });
  test("what is on EXT", async () => {
    const host = new Tensor(floats, { device: "EXT" }).bitcast("uint8");
    expect([host.device, host.shape]).toEqual(["EXT", [16]]);
    expect(await host.to("WASM").tolist()).toEqual([...new Uint8Array(floats.buffer)]);
  });
  test.each<[string, (raw: Tensor) => Tensor]>([
    ["no multiple", (raw) => raw.shrink([[0, 6]]).bitcast("float32")],
    ["a last dim in pieces", (raw) => raw.reshape(4, 4).transpose().bitcast("float32")],
    [
      "no dim",
      (raw) =>
        raw
          .shrink([[0, 1]])
          .reshape([])
          .bitcast("uint16"),
    ],
  ])("%s is refused", (_, make) => {
    expect(() => make(stored())).toThrow(ShapeError);
    expect(() => make(stored())).toThrow(
      /^bitcast: uint8 of shape .* on DISK:.* expected realized data whose last/,
    );
  });
});
