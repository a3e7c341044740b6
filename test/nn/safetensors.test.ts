// safetensors: every type there and back, files that stay on disk until they are moved, URLs with and
// without ranges, and headers of all bad kinds refused before anything is allocated.

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Buffer, Device, dtypes, FileError, GlobalCounters, nn, Tensor } from "gradloom";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "gradloom-safe-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A file with this header (any text, or an object) and so many bytes of data. */
function file(header: unknown, data: number | Uint8Array = 0, claimed?: bigint): Uint8Array {
  const spelt = typeof header === "string" ? header : JSON.stringify(header);
  const text = header instanceof Uint8Array ? header : new TextEncoder().encode(spelt);
  const body = typeof data === "number" ? new Uint8Array(data) : data;
  const bytes = new Uint8Array(8 + text.byteLength + body.byteLength);
  new DataView(bytes.buffer).setBigUint64(0, claimed ?? BigInt(text.byteLength), true);
  bytes.set(text, 8);
  bytes.set(body, 8 + text.byteLength);
  return bytes;
}
const f32 = (shape: number[], start: number, end: number) => ({
  dtype: "F32",
  shape,
  data_offsets: [start, end],
});

describe("round trips", () => {
  test.each(dtypes.all.map((d) => [d.name, d] as const))("%s", async (_, dtype) => {
    const big = dtype.isBig;
    const values = dtype.kind === "bool" ? [true, false, true] : big ? [1n, 0n, 100n] : [1, 0, 100];
    const w = new Tensor(values, { dtype });
    const back = await nn.safeLoad(await nn.safeSave({ w }));
    expect(back.w?.dtype).toBe(dtype);
    expect(await back.w?.tolist()).toEqual(values);
  });

  test("half-width floats keep their bits; bf16 is written as BF16", async () => {
    const bytes = await nn.safeSave({ h: new Tensor([1.5, -2, 0.1], { dtype: "bfloat16" }) });
    const n = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
    expect(new TextDecoder().decode(bytes.subarray(8, 8 + n))).toContain('"BF16"');
    expect([...bytes.subarray(8 + n)]).toEqual([0xc0, 0x3f, 0x00, 0xc0, 0xcd, 0x3d]);
  });

  test("scalars, empty tensors, views and awkward names", async () => {
    const dict = {
      scalar: new Tensor(2.5),
      empty: new Tensor(new Float32Array(0)).reshape(0, 3),
      view: new Tensor([[1, 2], [3, 4]]).T, // biome-ignore format: a matrix
      'quo"te\\.é': new Tensor([true]),
      ["__proto__"]: new Tensor([7n]),
    };
    const back = await nn.safeLoad(await nn.safeSave(dict));
    expect(await back.scalar?.item()).toBe(2.5);
    expect(back.empty?.shape).toEqual([0, 3]);
    expect(await back.view?.tolist()).toEqual([
      [1, 3],
      [2, 4],
    ]);
    expect(await back['quo"te\\.é']?.tolist()).toEqual([true]);
    expect(Object.hasOwn(back, "__proto__")).toBe(true);
    expect(Object.keys(back).sort()).toEqual(Object.keys(dict).sort());
  });

  test("the data is aligned to 8 bytes, wide types first", async () => {
    const dict = { a: new Tensor([true]), b: new Tensor([1n]), c: new Tensor([1.5]) };
    const { start, tensors } = await nn.safeHeader(await nn.safeSave(dict));
    expect(start % 8).toBe(0);
    expect([tensors.b?.offsets, tensors.c?.offsets, tensors.a?.offsets]).toEqual([
      [0, 8],
      [8, 12],
      [12, 13],
    ]);
  });

  test("metadata comes back", async () => {
    const bytes = await nn.safeSave({ w: new Tensor([1]) }, undefined, { format: "pt", note: "ü" });
    expect((await nn.safeHeader(bytes)).metadata).toEqual({ format: "pt", note: "ü" });
    expect(Object.keys(await nn.safeLoad(bytes))).toEqual(["w"]);
  });

  test("a file by another writer: unaligned data, padded header, any order", async () => {
    const data = new Uint8Array(9);
    data[0] = 1;
    new DataView(data.buffer).setFloat32(1, 1.5, true);
    new DataView(data.buffer).setFloat32(5, -3, true);
    const bytes = file(
      `${JSON.stringify({ w: f32([2], 1, 9), flag: { dtype: "BOOL", shape: [], data_offsets: [0, 1] } })}   `,
      data,
    );
    const back = await nn.safeLoad(bytes);
    expect(await back.w?.add(1).tolist()).toEqual([2.5, -2]);
    expect(await back.flag?.item()).toBe(true);
  });
});

describe("files", () => {
  test("stay on disk until they are moved; only the requested parts are read", async () => {
    const path = join(folder, "lazy.safetensors");
    await nn.safeSave({ small: new Tensor([1.5, 2]), large: Tensor.ones(100_000) }, path);
    const held = () => GlobalCounters.memUsedOn("WASM") + GlobalCounters.memUsedOn("EXT");
    const before = held();
    const { small, large } = await nn.safeLoad(path);
    expect([small?.device, large?.device]).toEqual([`DISK:${path}`, `DISK:${path}`]);
    expect(held()).toBe(before);
    const moved = small?.to("WASM") as Tensor;
    await moved.realize();
    expect(held() - before).toBeLessThan(1000);
    expect(await moved.mul(2).tolist()).toEqual([3, 4]);
    expect(await large?.to("WASM").sum().item()).toBe(100_000);
  });

  test("the device can be named when loading", async () => {
    const path = join(folder, "device.safetensors");
    await nn.safeSave({ w: new Tensor([1, 2]) }, path);
    const { w } = await nn.safeLoad(path, { device: "JS" });
    expect(w?.device).toBe("JS");
    expect(await w?.add(1).tolist()).toEqual([2, 3]);
  });

  test("saving over the file of lazy tensors", async () => {
    const path = join(folder, "over.safetensors");
    await nn.safeSave({ a: new Tensor([1, 2]), b: new Tensor([3, 4]) }, path);
    const old = await nn.safeLoad(path);
    await nn.safeSave({ b: old.b as Tensor, c: new Tensor([5]) }, path);
    const now = await nn.safeLoad(path);
    expect(await now.b?.tolist()).toEqual([3, 4]);
    expect(await now.c?.tolist()).toEqual([5]);
    expect(await old.a?.tolist()).toEqual([1, 2]);
    expect(readdirSync(folder).filter((f) => f.endsWith(".part"))).toEqual([]);
  });

  test("a file that cannot be written leaves no temporary file; a missing one is named", async () => {
    const nowhere = join(folder, "no", "such", "folder.safetensors");
    await expect(nn.safeSave({ w: new Tensor([1]) }, nowhere)).rejects.toThrow(
      /cannot write .*folder\.safetensors/,
    );
    await expect(nn.safeLoad(join(folder, "missing"))).rejects.toThrow(/cannot read .*missing/);
  });

  test("a truncated file is refused", async () => {
    const path = join(folder, "cut.safetensors");
    await nn.safeSave({ w: Tensor.ones(100) }, path);
    writeFileSync(path, readFileSync(path).subarray(0, statSync(path).size - 1));
    await expect(nn.safeLoad(path)).rejects.toThrow(
      /describes 400 bytes of data, there are 399 \(truncated\?\)/,
    );
  });
});

describe("refused", () => {
  const cases: [name: string, bytes: Uint8Array, message: RegExp][] = [
    ["an empty file", new Uint8Array(0), /has 0 bytes/],
    ["half a length", new Uint8Array(7), /has 7 bytes/],
    [
      "a header beyond the limit",
      file("{}", 0, BigInt(nn.MAX_HEADER) + 1n),
      /claims 100000001 bytes, the limit is 100000000/,
    ],
    ["a header of 2^64 - 1", file("{}", 0, 2n ** 64n - 1n), /claims 18446744073709551615 bytes/],
    ["a header longer than the file", file("{}", 0, 3n), /claims 3 bytes, the file has 10 in all/],
    ["not JSON", file("{nope"), /is not JSON/],
    ["an array", file("[]"), /not a JSON object/],
    ["null", file("null"), /not a JSON object/],
    ["white space first", file(" {}"), /not a JSON object/],
    ["bytes that are not UTF-8", file(Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d)), /not JSON/],
    [
      "a name twice",
      file(`{"w":${JSON.stringify(f32([1], 0, 4))},"w":${JSON.stringify(f32([1], 0, 4))}}`, 4),
      /names "w" twice/,
    ],
    [
      "a name twice, once escaped",
      file(`{"w":${JSON.stringify(f32([1], 0, 4))},"\\u0077":${JSON.stringify(f32([1], 0, 4))}}`, 4),
      /names "w" twice/,
    ],
    [
      "a field twice",
      file('{"w":{"dtype":"F32","shape":[1],"shape":[2],"data_offsets":[0,8]}}', 8),
      /names "shape" twice/,
    ],
    [
      "an unknown dtype",
      file({ w: { ...f32([1], 0, 1), dtype: "F4" } }, 1),
      /"w" has dtype "F4", expected one of BOOL/,
    ],
    [
      "a dtype out of the prototype",
      file({ w: { ...f32([1], 0, 4), dtype: "toString" } }, 4),
      /has dtype "toString"/,
    ],
    ["no dtype", file({ w: { shape: [1], data_offsets: [0, 4] } }, 4), /has dtype undefined/],
    ["a number for a tensor", file({ w: 3 }), /"w" is not an object/],
    ["no shape", file({ w: { dtype: "F32", data_offsets: [0, 4] } }, 4), /a shape that is not a list/],
    ["a negative size", file({ w: f32([-1, -1], 0, 4) }, 4), /a shape that is not a list of integers/],
    ["a fraction of a size", file({ w: f32([0.5], 0, 2) }, 2), /a shape that is not a list of integers/],
    [
      "a size as text",
      file({ w: { ...f32([], 0, 4), shape: ["1"] } }, 4),
      /a shape that is not a list of integers/,
    ],
    ["no offsets", file({ w: { dtype: "F32", shape: [1] } }, 4), /data_offsets undefined/],
    [
      "three offsets",
      file({ w: { ...f32([1], 0, 4), data_offsets: [0, 4, 8] } }, 4),
      /data_offsets \[0,4,8\]/,
    ],
    ["a negative offset", file({ w: f32([1], -4, 0) }, 4), /data_offsets \[-4,0\]/],
    ["offsets turned around", file({ w: f32([1], 4, 0) }, 4), /data_offsets \[4,0\]/],
    [
      "a shape that takes more than its offsets",
      file({ w: f32([1000, 1000], 0, 4) }, 4),
      /takes 4000000 bytes, data_offsets are \[0, 4\]/,
    ],
    [
      "a shape beyond the integers",
      file({ w: f32([2 ** 40, 2 ** 40], 0, 0) }),
      /sizes beyond what a file can hold/,
    ],
    [
      "such a shape hidden by a zero",
      file({ w: f32([2 ** 40, 2 ** 40, 0], 0, 0) }),
      /sizes beyond what a file can hold/,
    ],
    [
      "data beyond the end",
      file({ w: f32([4], 0, 16) }, 4),
      /describes 16 bytes of data, there are 4 \(truncated/,
    ],
    ["data nobody describes", file({ w: f32([1], 0, 4) }, 8), /describes 4 bytes of data, there are 8/],
    ["tensors that overlap", file({ a: f32([2], 0, 8), b: f32([1], 4, 8) }, 8), /"b" at \[4,8\] overlaps/],
    ["two tensors on the same bytes", file({ a: f32([1], 0, 4), b: f32([1], 0, 4) }, 4), /overlaps/],
    ["a hole", file({ a: f32([1], 0, 4), b: f32([1], 8, 12) }, 12), /"b" at \[8,12\] leaves a hole/],
    ["a hole at the start", file({ a: f32([1], 4, 8) }, 8), /leaves a hole/],
    ["metadata that is not a map", file({ __metadata__: [] }), /__metadata__ is not a map of strings/],
    ["metadata of numbers", file({ __metadata__: { a: 1 } }), /__metadata__ is not a map of strings/],
  ];
  test.each(cases)("%s", async (_, bytes, message) => {
    const allocations = [
      vi.spyOn(Buffer.prototype, "allocate"),
      vi.spyOn(Buffer.prototype, "ensureAllocated"),
    ];
    await expect(nn.safeLoad(bytes)).rejects.toThrow(FileError);
    await expect(nn.safeLoad(bytes)).rejects.toThrow(message);
    const path = join(folder, "bad.safetensors");
    writeFileSync(path, bytes);
    await expect(nn.safeLoad(path)).rejects.toThrow(message);
    for (const spy of allocations) {
      expect(spy).not.toHaveBeenCalled();
      spy.mockRestore();
    }
  });

  test("a nested header does not overflow the stack", async () => {
    const deep = `{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`;
    await expect(nn.safeLoad(file(deep))).rejects.toThrow(FileError);
  });
  test("what the format cannot hold is refused when saving", async () => {
    await expect(nn.safeSave({ __metadata__: new Tensor([1]) })).rejects.toThrow(/__metadata__ is reserved/);
  });
  test("a name that does not exist", async () => {
    const bytes = await nn.safeSave({ w: new Tensor([1]) });
    await expect(nn.safeLoad(bytes, { names: ["v"] })).rejects.toThrow(/has no tensor v; it has w/);
  });
});

describe("URLs", () => {
  let server: Server;
  let base = "";
  let sent = 0;
  const files = new Map<string, Uint8Array>();
  beforeAll(async () => {
    files.set(
      "/good",
      await nn.safeSave({ a: Tensor.ones(50_000), b: new Tensor([1.5, 2]), c: Tensor.ones(50_000) }),
    );
    files.set("/lies", file({ w: f32([2 ** 20], 0, 2 ** 22) }, 100));
    files.set("/long", file({ w: f32([1], 0, 4) }, 100));
    server = createServer((request, reply) => {
      const url = new URL(request.url ?? "/", "http://x");
      const bytes = files.get(url.pathname);
      const range = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "");
      if (bytes === undefined) reply.writeHead(404).end();
      else if (range === null || url.search === "?whole") {
        sent += bytes.byteLength;
        reply.writeHead(200).end(bytes);
      } else {
        const [start, end] = [Number(range[1]), Math.min(Number(range[2]) + 1, bytes.byteLength)];
        sent += end - start;
        const headers = { "Content-Range": `bytes ${start}-${end - 1}/${bytes.byteLength}` };
        reply.writeHead(206, headers).end(bytes.subarray(start, end));
      }
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => void server.close());

  test.each(["", "?whole"])("everything%s", async (how) => {
    const { a, b } = await nn.safeLoad(`${base}/good${how}`);
    expect(await b?.tolist()).toEqual([1.5, 2]);
    expect(await a?.sum().item()).toBe(50_000);
    expect(a?.device).toBe(Device.DEFAULT);
  });
  test("one tensor: only its bytes are fetched", async () => {
    sent = 0;
    const { b } = await nn.safeLoad(new URL(`${base}/good`), { names: ["b"] });
    expect(await b?.tolist()).toEqual([1.5, 2]);
    expect(sent).toBeLessThan(70_000);
  });
  test.each(["", "?whole"])("a header that lies about the size%s", async (how) => {
    await expect(nn.safeLoad(`${base}/lies${how}`)).rejects.toThrow(FileError);
    await expect(nn.safeLoad(`${base}/long${how}`)).rejects.toThrow(FileError);
  });
  test("a URL that does not exist", async () => {
    await expect(nn.safeLoad(`${base}/nothing`)).rejects.toThrow(/the server answered 404/);
    await expect(nn.safeLoad("http://127.0.0.1:1/x")).rejects.toThrow(/cannot fetch/);
  });
});
