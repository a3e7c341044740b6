// Files that lie: members that overlap, sizes that are not there, endless strings, and thousands of files
// with bytes changed at random. Each is refused with a FileError that names it, cheaply: memory is never
// taken for what a file only claims.

import { deflateRawSync } from "node:zlib";
import { FileError, GradloomError, InternalError, nn, ShapeError, Tensor } from "gradloom";
import { afterEach, describe, expect, test, vi } from "vitest";
import { decodePng } from "../../src/tensor/image/png.ts";
import { hasJpeg, jpegFile, pngFile, withCrcs } from "../tensor/image/files.ts";

afterEach(() => vi.unstubAllGlobals());

/** Runs `fn` and says the largest array of bytes that was made by its length. */
async function largest(fn: () => Promise<unknown>): Promise<number> {
  let most = 0;
  const counting = new Proxy(Uint8Array, {
    construct(target, args: unknown[], made) {
      if (typeof args[0] === "number") most = Math.max(most, args[0]);
      return Reflect.construct(target, args, made) as object;
    },
  });
  vi.stubGlobal("Uint8Array", counting);
  try {
    await fn();
  } finally {
    vi.unstubAllGlobals();
  }
  return most;
}

const le = (n: number, size: 2 | 4): number[] =>
  Array.from({ length: size }, (_, i) => (n >>> (8 * i)) & 255);
const text = (s: string): number[] => [...new TextEncoder().encode(s)];

interface Member {
  readonly name: string;
  readonly packed: Uint8Array;
  readonly size: number;
  /** where the directory says that it is; default: where it is */
  readonly at?: number;
  readonly method?: number;
}
/** A zip archive that says what it is told to. */
function zip(members: readonly Member[], written = members): Uint8Array {
  const local = ({ name, packed, size, method = 8 }: Member): number[] =>
    [
      le(0x04034b50, 4),
      le(20, 2),
      le(0, 2),
      le(method, 2),
      le(0, 4),
      le(0, 4),
      le(packed.length, 4),
      le(size, 4),
    ]
      .flat()
      .concat(le(name.length, 2), le(0, 2), text(name), [...packed]);
  const bodies: number[] = [];
  const places = written.map((m) => {
    const at = bodies.length;
    for (const byte of local(m)) bodies.push(byte);
    return at;
  });
  const directory = members.flatMap(({ name, packed, size, at, method = 8 }, i) =>
    [
      le(0x02014b50, 4),
      le(20, 2),
      le(20, 2),
      le(0, 2),
      le(method, 2),
      le(0, 4),
      le(0, 4),
      le(packed.length, 4),
    ]
      .flat()
      .concat(le(size, 4), le(name.length, 2), le(0, 2), le(0, 2), le(0, 2), le(0, 2), le(0, 4))
      .concat(le(at ?? places[i] ?? 0, 4), text(name)),
  );
  const n = members.length;
  const end = [
    le(0x06054b50, 4),
    le(0, 4),
    le(n, 2),
    le(n, 2),
    le(directory.length, 4),
    le(bodies.length, 4),
    le(0, 2),
  ];
  return new Uint8Array([...bodies, ...directory, ...end.flat()]);
}

describe("npz", () => {
  const packed = new Uint8Array(deflateRawSync(new Uint8Array(100_000)));

  test("members that overlap are refused before any is read", async () => {
    const one = { name: "a.npy", packed, size: 100_000 };
    const names = Array.from({ length: 200 }, (_, i) => `m${i}.npy`);
    const all = names.map((name) => ({ ...one, name, at: 0 }));
    await expect(nn.npzLoad(zip(all, [one]))).rejects.toThrow(
      /^zip: the array is refused: m0\.npy of \d+ bytes at 0 overlaps what begins at 0$/,
    );
    const second = { ...one, name: "b.npy", at: 10 };
    await expect(nn.npzLoad(zip([one, second], [one]))).rejects.toThrow(
      /a\.npy of \d+ bytes at 0 overlaps .* 10$/,
    );
    // its bytes would be those of the directory
    const late = { ...one, packed: new Uint8Array(packed.length + 20) };
    await expect(nn.npzLoad(zip([late], [one]))).rejects.toThrow(/a\.npy of \d+ bytes at \d+ overlaps/);
  });
  test("two members of one name are refused", async () => {
    const one = { name: "a.npy", packed, size: 100_000 };
    await expect(nn.npzLoad(zip([one, one]))).rejects.toThrow(/has two members a\.npy/);
  });
  test("an archive that would fill the memory is refused, unless it may", async () => {
    const bomb = { name: "big.npy", packed: new Uint8Array(3_000_000), size: 2_000_000_000, method: 8 };
    const rest = { name: "rest.npy", packed, size: 100_000 };
    const file = zip([{ ...bomb, packed: bomb.packed.subarray(0, 2_000_000) }, rest]);
    expect(
      await largest(() =>
        expect(nn.npzLoad(file)).rejects.toThrow(
          /zip: the array is refused: with big\.npy it would take 2000000000 bytes of memory, the limit is \d+; raise maxBytes/,
        ),
      ),
    ).toBeLessThan(10_000_000);
    const small = await nn.npzSave({ x: Tensor.zeros(1000) }, undefined, { compress: true });
    await expect(nn.npzLoad(small, { maxBytes: 1000 })).rejects.toThrow(
      /with x\.npy it would take 4128 bytes/,
    );
    expect((await nn.npzLoad(small, { maxBytes: 5000 })).x?.shape).toEqual([1000]);
  });
  test("a size that is only claimed takes no memory", async () => {
    const member = { name: "a.npy", packed, size: 900 * packed.length };
    const most = await largest(() =>
      expect(nn.npzLoad(zip([member]))).rejects.toThrow(/the array: a\.npy holds 100000 bytes and claims/),
    );
    expect(most).toBeLessThan(2 ** 21);
    await expect(nn.npzLoad(zip([{ ...member, size: 1100 * packed.length }]))).rejects.toThrow(
      /a\.npy claims/,
    );
  });
});

/** A safetensors file with this header. */
function safe(header: string, data = new Uint8Array(0)): Uint8Array {
  const bytes = new TextEncoder().encode(header);
  const out = new Uint8Array(8 + bytes.length + data.length);
  new DataView(out.buffer).setBigUint64(0, BigInt(bytes.length), true);
  out.set(bytes, 8);
  out.set(data, 8 + bytes.length);
  return out;
}

describe("safetensors", () => {
  const LONG = "x".repeat(10_000_000);
  const entry = (dtype: string, shape = "[0]") =>
    `{"dtype": "${dtype}", "shape": ${shape}, "data_offsets": [0, 0]}`;

  test.each([
    ["a name", `{"${LONG}": ${entry("F32")}}`, /a name has 10000000 characters, the limit is 4096: "xxx/],
    ["an escaped name", `{"${"\\\\".repeat(5_000_000)}": ${entry("F32")}}`, /a name has 5000000 characters/],
    ["a dtype", `{"a": ${entry(LONG)}}`, /"a" has dtype "xxx/],
    ["a name twice", `{"${LONG}": ${entry("F32")}, "${LONG}": ${entry("F32")}}`, /names "xxx.* twice/],
    ["what is not JSON", `{"a": ${LONG}`, /is not JSON/],
    [
      "a shape",
      `{"a": ${entry("F32", `[${"1,".repeat(1_000_000)}0]`)}}`,
      /a shape of 1000001 dims, the limit is 64/,
    ],
    [
      "data_offsets",
      `{"a": {"dtype": "F32", "shape": [], "data_offsets": "${LONG}"}}`,
      /has data_offsets "xxx/,
    ],
    ["depth", `{"a": ${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}}`, /"a" is not an object|is not JSON/],
  ])("10 MB of %s: a short FileError", async (_, header, why) => {
    const error = await nn.safeLoad(safe(header)).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(FileError);
    expect(String(error)).toMatch(why);
    expect(String(error)).toMatch(/safetensors: the array is refused: /);
    expect(String(error).length).toBeLessThan(1000);
  });
  test("long metadata is data like any other", async () => {
    const { metadata } = await nn.safeHeader(safe(`{"__metadata__": {"a": "${LONG}"}}`));
    expect(metadata.a).toHaveLength(LONG.length);
  });
});

test("npy: many dims, and a header full of entries, are refused", async () => {
  const npy = (header: string): Uint8Array =>
    new Uint8Array([0x93, ...text("NUMPY"), 1, 0, ...le(header.length, 2), ...text(header)]);
  const dict = (shape: string, more = "") =>
    `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape}), ${more}}`;
  await expect(nn.npyLoad(npy(dict("1,".repeat(30_000))))).rejects.toThrow(
    /its shape has 30000 dims, the limit is 64/,
  );
  await expect(nn.npyLoad(npy(dict("0,", "'shape': (),".repeat(5000))))).rejects.toThrow(
    /has two entries shape/,
  );
  await expect(nn.npyLoad(npy(`${"'shape': (), ".repeat(4000)}`))).rejects.toThrow(/its header has no/);
});

test("tolist() of endless rows without elements is refused", async () => {
  for (const shape of [
    [4e9, 0],
    [1e7, 0],
    [3, 2e9, 0, 5],
  ]) {
    const t = Tensor.zeros(...shape);
    expect(() => t.tolistSync()).toThrow(ShapeError);
    await expect(t.tolist()).rejects.toThrow(/has no elements, but \d+ empty lists.*use data\(\)/);
  }
  expect(await Tensor.zeros(0, 4e9).tolist()).toEqual([]);
  expect(await Tensor.zeros(3, 0).tolist()).toEqual([[], [], []]);
});

// ---- at random ----

/** A repeatable source of random integers below n. */
function dice(seed: number): (n: number) => number {
  let s = seed;
  return (n) => {
    s = (Math.imul(s ^ (s >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((s ^ (s >>> 13)) >>> 0) % n;
  };
}
const EDGES = [0, 1, 0x7f, 0x80, 0xff, 0x22, 0x5b, 0x7b, 0x2c, 0x39];
/** A few changes: other bits, values at the edge, a part cut out, doubled or written over another. */
function mutated(file: Uint8Array, roll: (n: number) => number): Uint8Array {
  let bytes = file.slice();
  for (let changes = 1 + roll(4); changes > 0 && bytes.length > 0; changes--) {
    // most of a file is data, in which nothing can go wrong
    const at = roll(roll(3) === 0 ? bytes.length : Math.min(bytes.length, 160));
    const length = 1 + roll(8);
    const kind = roll(7);
    if (kind === 0) bytes[at] = (bytes[at] as number) ^ (1 << roll(8));
    else if (kind === 1) bytes[at] = EDGES[roll(EDGES.length)] as number;
    else if (kind === 2) bytes.fill(EDGES[roll(EDGES.length)] as number, at, at + length);
    else if (kind === 3) bytes = new Uint8Array([...bytes.subarray(0, at), ...bytes.subarray(at + length)]);
    else if (kind === 4) bytes = new Uint8Array([...bytes.subarray(0, at + length), ...bytes.subarray(at)]);
    else if (kind === 5) bytes.copyWithin(at, roll(bytes.length), roll(bytes.length));
    else bytes = bytes.slice(0, roll(bytes.length));
  }
  return bytes;
}

interface Reader {
  readonly name: string;
  readonly file: () => Promise<Uint8Array>;
  readonly read: (bytes: Uint8Array) => unknown;
  readonly count: number;
}
const x = new Tensor([
  [1.5, 2],
  [3, 4],
  [5, 6],
]);
const PALETTE = {
  rows: [
    [0, 1, 2, 3, 0],
    [3, 2, 1, 0, 1],
    [0, 0, 1, 1, 2],
  ],
  samples: 1,
  depth: 2,
  color: 3,
  isInterlaced: true,
  chunks: { PLTE: [0, 0, 0, 255, 0, 0, 0, 255, 0, 9, 9, 9], tRNS: [0, 128] },
};
const READERS: readonly Reader[] = [
  { name: "npy", file: () => nn.npySave(x), read: (b) => nn.npyLoad(b), count: 6000 },
  {
    name: "safetensors",
    file: () => nn.safeSave({ w: x, "a.b": new Tensor([1, 2]) }, undefined, { format: "pt" }),
    read: (b) => nn.safeLoad(b),
    count: 7000,
  },
  {
    name: "idx",
    file: async () =>
      new Uint8Array([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8]),
    read: (b) => nn.datasets.parseIdx(b),
    count: 4000,
  },
  { name: "npz, stored", file: () => nn.npzSave({ x, y: x }), read: (b) => nn.npzLoad(b), count: 1500 },
  {
    name: "npz, compressed",
    file: () => nn.npzSave({ x, y: x }, undefined, { compress: true }),
    read: (b) => nn.npzLoad(b),
    count: 1000,
  },
  {
    name: "png",
    file: async () =>
      pngFile({
        rows: [
          [1, 2, 3],
          [4, 5, 6],
        ],
        samples: 1,
        filters: [0, 1],
      }),
    read: (b) => decodePng(withCrcs(b), "it", 2 ** 16),
    count: 700,
  },
  {
    name: "png, interlaced, with a palette",
    file: async () => pngFile(PALETTE),
    read: (b) => decodePng(withCrcs(b), "it", 2 ** 16),
    count: 700,
  },
  {
    name: "jpeg",
    file: async () => jpegFile({ blocks: [[[10, 200]], [[90, 90]], [[30, 128]]], isProgressive: true }),
    read: (b) => Tensor.fromImage(b, { maxPixels: 2 ** 12 }),
    count: hasJpeg ? 400 : 0,
  },
];

test.each(READERS.filter((r) => r.count > 0))(
  "$count files of $name with changes: read, or refused by a FileError",
  async (reader) => {
    const file = await reader.file();
    await reader.read(file); // unchanged it is fine
    const roll = dice(reader.count);
    const seen = { read: 0, refused: 0 };
    const most = await largest(async () => {
      for (let i = 0; i < reader.count; i++) {
        const bytes = mutated(file, roll);
        try {
          await reader.read(bytes);
          seen.read++;
        } catch (e) {
          if (e instanceof FileError && e.message.length < 1000) seen.refused++;
          else throw new Error(`${reader.name}, file ${i}: ${[...bytes]}`, { cause: e });
        }
      }
    });
    expect(most).toBeLessThan(2 ** 21);
    expect(seen.read + seen.refused).toBe(reader.count);
    expect(seen.refused).toBeGreaterThan(reader.count / 10);
  },
);

describe("checkpoints", () => {
  const parts = () => {
    const model = new nn.Linear(2, 2);
    const optimizer = new nn.optim.Adam(nn.getParameters(model), { lr: 0.25 });
    const scheduler = new nn.optim.StepLR(optimizer, { stepSize: 2 });
    const loader = new nn.DataLoader([1, 2, 3], { batchSize: 2, seed: 5 });
    return { model, optimizer, scheduler, loader };
  };
  /** All that a load may change, as a text. */
  async function stateOf({ model, optimizer, scheduler, loader }: ReturnType<typeof parts>): Promise<string> {
    const weights = await Promise.all(nn.getParameters(model).map((t) => t.tolist()));
    const rates = optimizer.groups.map((g) => g.lr);
    return JSON.stringify([weights, rates, scheduler.stateDict(), loader.stateDict()]);
  }
  const ODD = [
    null,
    -1,
    0.5,
    1e300,
    "",
    "x",
    "__proto__",
    [],
    [1],
    {},
    { a: 1 },
    { $number: "toString" },
    true,
  ];
  type Tree = { [key: string]: unknown };
  /** The metadata with one of its fields replaced, taken away, or moved under another name. */
  function changed(metadata: string, roll: (n: number) => number): string {
    const tree = JSON.parse(metadata) as Tree;
    let at = tree;
    for (;;) {
      const keys = Object.keys(at);
      const key = keys[roll(keys.length)] as string;
      const next = at[key];
      if (typeof next === "object" && next !== null && Object.keys(next).length > 0 && roll(5) > 0) {
        at = next as Tree;
        continue;
      }
      const kind = roll(6);
      if (kind === 0) delete at[key];
      else if (kind === 1) at[`${keys[roll(keys.length)]}.`] = next;
      else at[key] = ODD[roll(ODD.length)];
      return JSON.stringify(tree);
    }
  }

  test("150 with changed metadata: loaded, or refused by an error of ours, and then nothing changed", async () => {
    const file = await nn.save({ ...parts(), step: 3 });
    const tensors = await nn.safeLoad(file);
    const { metadata } = await nn.safeHeader(file);
    const roll = dice(77);
    const seen = { read: 0, refused: 0 };
    let target = parts();
    let before = await stateOf(target);
    for (let i = 0; i < 150; i++) {
      const text = changed(metadata.gradloom as string, roll);
      const bytes = await nn.safeSave(tensors, undefined, { gradloom: text });
      try {
        await nn.load(bytes, target);
        seen.read++;
        target = parts();
        before = await stateOf(target);
      } catch (e) {
        expect(e instanceof GradloomError && !(e instanceof InternalError), `${text}: ${e}`).toBe(true);
        expect(await stateOf(target), text).toBe(before);
        seen.refused++;
      }
    }
    expect(seen.refused).toBeGreaterThan(75);
    expect(seen.read).toBeGreaterThan(10);
  });
});
