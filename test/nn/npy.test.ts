// .npy and .npz: there and back, files as NumPy writes them (versions, orders, byte orders, compression), and
// bad ones.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { dtypes, FileError, nn, Tensor } from "gradloom";
import { afterAll, describe, expect, test } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "gradloom-npy-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A .npy file: the header as text, then the data. */
function npy(header: string, data: Uint8Array, version: 1 | 2 | 3 | 9 = 1): Uint8Array {
  const text = new TextEncoder().encode(header);
  const length =
    version === 1 ? [text.length & 255, text.length >> 8] : [text.length & 255, text.length >> 8, 0, 0];
  return Uint8Array.of(0x93, ...new TextEncoder().encode("NUMPY"), version, 0, ...length, ...text, ...data);
}
const dict = (descr: string, shape: string, order = "False") =>
  `{'descr': '${descr}', 'fortran_order': ${order}, 'shape': ${shape}, }\n`;
const floats = (...xs: number[]) => new Uint8Array(Float32Array.from(xs).buffer);

describe(".npy", () => {
  const kept = dtypes.all.filter((d) => d.name !== "bfloat16");
  test.each(kept.map((d) => [d.name, d] as const))("%s there and back", async (_, dtype) => {
    const values = dtype.kind === "bool" ? [[true], [false]] : dtype.isBig ? [[1n], [50n]] : [[1], [50]];
    const back = await nn.npyLoad(await nn.npySave(new Tensor(values, { dtype })));
    expect(back.dtype).toBe(dtype);
    expect(await back.tolist()).toEqual(values);
  });
  test("the bytes are NumPy's: header padded to 64, a new line before the data", async () => {
    const bytes = await nn.npySave(new Tensor([1.5]));
    expect(bytes.byteLength).toBe(128 + 4);
    const text = new TextDecoder("latin1").decode(bytes.subarray(10, 128));
    expect(text.trimEnd()).toBe("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }");
    expect(text.endsWith(" \n")).toBe(true);
    expect([...bytes.subarray(0, 10)]).toEqual([0x93, 78, 85, 77, 80, 89, 1, 0, 118, 0]);
  });
  test("scalars and empty arrays", async () => {
    expect(await (await nn.npyLoad(await nn.npySave(new Tensor(2.5)))).item()).toBe(2.5);
    const empty = await nn.npyLoad(await nn.npySave(new Tensor(new Float32Array(0)).reshape(3, 0)));
    expect(empty.shape).toEqual([3, 0]);
  });
  test("a file stays on disk until it is moved", async () => {
    const path = join(folder, "a.npy");
    await nn.npySave(new Tensor([[1, 2], [3, 4]]), path); // biome-ignore format: a matrix
    const a = await nn.npyLoad(path);
    expect(a.device).toBe(`DISK:${path}`);
    expect(await a.to("WASM").sum(0).tolist()).toEqual([4, 6]);
  });
  test("column-major order", async () => {
    const bytes = npy(dict("<f4", "(2, 3)", "True"), floats(1, 4, 2, 5, 3, 6));
    const rows = [
      [1, 2, 3],
      [4, 5, 6],
    ];
    expect(await (await nn.npyLoad(bytes)).tolist()).toEqual(rows);
  });
  test("the other byte order", async () => {
    const data = new Uint8Array(4);
    new DataView(data.buffer).setInt16(0, 258, false);
    new DataView(data.buffer).setInt16(2, -2, false);
    expect(await (await nn.npyLoad(npy(dict(">i2", "(2,)"), data))).tolist()).toEqual([258, -2]);
  });
  test.each([1, 2, 3] as const)("version %i", async (version) => {
    expect(await (await nn.npyLoad(npy(dict("<f4", "(2,)"), floats(1, 2), version))).tolist()).toEqual([
      1, 2,
    ]);
  });
  test("NumPy has no bfloat16", async () => {
    await expect(nn.npySave(new Tensor([1], { dtype: "bfloat16" }))).rejects.toThrow(
      /NumPy has no bfloat16; cast first/,
    );
  });

  const bad: [string, Uint8Array, RegExp][] = [
    ["nothing", new Uint8Array(0), /does not begin/],
    ["another file", new TextEncoder().encode("hello, this is text"), /does not begin/],
    ["a later version", npy(dict("<f4", "(2,)"), floats(1, 2), 9), /version is 9/],
    [
      "half a header",
      npy(dict("<f4", "(2,)"), floats(1, 2)).subarray(0, 30),
      /claims \d+ bytes, it ends after/,
    ],
    ["too little data", npy(dict("<f4", "(3,)"), floats(1, 2)), /takes 12 bytes, there are 8/],
    ["too much data", npy(dict("<f4", "(1,)"), floats(1, 2)), /takes 4 bytes, there are 8/],
    [
      "a shape beyond the integers",
      npy(dict("<f4", "(99999999999, 99999999999)"), floats(1)),
      /takes .* bytes/,
    ],
    ["complex numbers", npy(dict("<c8", "(1,)"), floats(1, 2)), /its dtype is '<c8'/],
    ["texts", npy(dict("<U4", "(1,)"), new Uint8Array(16)), /its dtype is '<U4'/],
    ["objects", npy(dict("|O", "(1,)"), new Uint8Array(16)), /its dtype is '\|O'/],
    [
      "a structure",
      npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", floats(1)),
      /a structure/,
    ],
    ["no shape", npy("{'descr': '<f4', 'fortran_order': False, }", floats(1)), /has no shape/],
    ["a negative shape", npy(dict("<f4", "(-1,)"), floats(1)), /has no shape/],
  ];
  test.each(bad)("refused: %s", async (_, bytes, message) => {
    await expect(nn.npyLoad(bytes)).rejects.toThrow(FileError);
    await expect(nn.npyLoad(bytes)).rejects.toThrow(message);
  });
});

describe(".npz", () => {
  const arrays = () => ({
    x: new Tensor([[1.5, 2]]),
    "deep.name": new Tensor([1n, 2n]),
    zeros: Tensor.zeros(1000),
  });

  test.each([false, true])("there and back, compress %s", async (compress) => {
    const bytes = await nn.npzSave(arrays(), undefined, { compress });
    expect(bytes.byteLength < 2000).toBe(compress);
    const back = await nn.npzLoad(bytes);
    expect(Object.keys(back)).toEqual(["x", "deep.name", "zeros"]);
    expect(await back.x?.tolist()).toEqual([[1.5, 2]]);
    expect(await back["deep.name"]?.tolist()).toEqual([1n, 2n]);
    expect(await back.zeros?.sum().item()).toBe(0);
  });
  test("through a file", async () => {
    const path = join(folder, "a.npz");
    await nn.npzSave(arrays(), path, { compress: true });
    expect(await (await nn.npzLoad(path, { device: "JS" })).x?.tolist()).toEqual([[1.5, 2]]);
  });

  /**
   * A member as np.savez writes it: sizes of 64 bits in the local header, which the directory does not need.
   */
  function archive(
    data: Uint8Array,
    changes: { crc?: number; size?: number; packed?: number; method?: number; wide?: boolean } = {},
  ) {
    const packed = changes.method === 0 ? data : deflateRawSync(data);
    const crc = changes.crc ?? crc32(data);
    const size = changes.size ?? data.length;
    const stored = changes.packed ?? packed.length;
    const u16 = (x: number) => [x & 255, (x >> 8) & 255];
    const u32 = (x: number) => [...u16(x & 0xffff), ...u16((x >>> 16) & 0xffff)];
    const u64 = (x: number) => [...u32(x), ...u32(0)];
    const name = [...new TextEncoder().encode("a.npy")];
    const common = [...u16(45), ...u16(0), ...u16(changes.method ?? 8), ...u16(0), ...u16(33), ...u32(crc)];
    const extra = [...u16(1), ...u16(16), ...u64(size), ...u64(stored)];
    const full = [...u32(0xffffffff), ...u32(0xffffffff)];
    const local = [
      ...u32(0x04034b50),
      ...common,
      ...full,
      ...u16(5),
      ...u16(20),
      ...name,
      ...extra,
      ...packed,
    ];
    const sizes = changes.wide ? full : [...u32(stored), ...u32(size)];
    const more = changes.wide ? extra : [];
    const entry = [...u32(0x02014b50), ...u16(45), ...common, ...sizes, ...u16(5), ...u16(more.length)];
    const central = [...entry, ...u16(0), ...u16(0), ...u16(0), ...u32(0), ...u32(0), ...name, ...more];
    const end = [
      ...u32(0x06054b50),
      ...u16(0),
      ...u16(0),
      ...u16(1),
      ...u16(1),
      ...u32(central.length),
      ...u32(local.length),
      ...u16(3),
    ];
    return Uint8Array.from([...local, ...central, ...end, 1, 2, 3]);
  }
  function crc32(data: Uint8Array): number {
    let c = -1;
    for (const b of data) {
      c ^= b;
      for (let i = 0; i < 8; i++) c = (c >>> 1) ^ (c & 1 ? 0xedb88320 : 0);
    }
    return ~c >>> 0;
  }
  const member = npy(dict("<f4", "(2,)"), floats(1, 2));

  test.each([
    ["deflated", {}],
    ["stored", { method: 0 }],
    ["with sizes of 64 bits", { wide: true }],
  ])("as NumPy writes it: %s", async (_, how) => {
    const { a } = await nn.npzLoad(archive(member, how));
    expect(await a?.tolist()).toEqual([1, 2]);
  });
  const good = archive(member);
  const bad: [string, Uint8Array, RegExp][] = [
    ["not an archive", new Uint8Array(100), /not a zip archive/],
    ["the end cut off", good.subarray(0, good.length - 30), /not a zip archive/],
    ["a wrong checksum", archive(member, { crc: 1 }), /the checksum of a\.npy is wrong/],
    ["more than it claims", archive(member, { size: 50 }), /more than the 50 bytes it claims/],
    ["less than it claims", archive(member, { size: member.length + 1 }), /holds \d+ bytes and claims/],
    [
      "a size that deflate cannot reach",
      archive(member, { size: 0x7fffffff }),
      /claims 2147483647 bytes out of/,
    ],
    ["stored bytes beyond the end", archive(member, { packed: 100_000 }), /beyond the end of the file/],
    ["another compression", archive(member, { method: 12 }), /compressed by method 12/],
  ];
  test.each(bad)("refused: %s", async (_, bytes, message) => {
    await expect(nn.npzLoad(bytes)).rejects.toThrow(FileError);
    await expect(nn.npzLoad(bytes)).rejects.toThrow(message);
  });
});
