// Bytes other than 0 and 1 that come in as bools: from files, arrays, buffers and bitcasts. They are true,
// and stored as 1, on every device: C and CUDA would add up what a bool holds.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Buffer, BufferCopy, dtypes, nn, Tensor } from "gradloom";
import { afterAll, beforeAll, expect } from "vitest";
import { runAsync } from "../../src/helpers.ts";
import { deviceTest, read } from "./harness.ts";

const BYTES = new Uint8Array([0, 1, 2, 255, 128, 3]);
const TRUTH = [0, 1, 1, 1, 1, 1];

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gradloom-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function check(t: Tensor): Promise<void> {
  expect(t.dtype).toBe(dtypes.bool);
  expect(await read(t)).toEqual(TRUTH);
  expect(await read(t.cast("int32"))).toEqual(TRUTH);
  expect(await t.sum().item()).toBe(5);
  expect(await read(t.eq(true))).toEqual(TRUTH);
  expect(await read(t.bitcast("uint8"))).toEqual(TRUTH);
  expect(await read(t.logicalNot())).toEqual(TRUTH.map((x) => 1 - x));
}
/** The bytes of a file of bools, but for the values that it was saved with. */
function withBytes(file: Uint8Array): Uint8Array {
  const out = file.slice();
  out.set(BYTES, out.length - BYTES.length);
  return out;
}
const bools = () => new Tensor(TRUTH.map(Boolean));

deviceTest("bools of safetensors and npy files, and of their bytes in memory", async (device) => {
  const safe = withBytes(await nn.safeSave({ mask: bools() }));
  const npy = withBytes(await nn.npySave(bools()));
  const [safePath, npyPath] = [join(folder, "m.safetensors"), join(folder, "m.npy")];
  writeFileSync(safePath, safe);
  writeFileSync(npyPath, npy);
  for (const source of [safe, safePath]) {
    const { mask } = await nn.safeLoad(source);
    expect(await read(mask as Tensor)).toEqual(TRUTH);
    await check((mask as Tensor).to(device));
  }
  for (const source of [npy, npyPath]) {
    const mask = await nn.npyLoad(source);
    expect(await read(mask)).toEqual(TRUTH);
    await check(mask.to(device));
  }
});

deviceTest("bools of bitcasts, typed arrays and buffers", async (device) => {
  await check(new Tensor(BYTES, { device }).bitcast("bool"));
  await check(new Tensor(new Int8Array(BYTES.buffer), { device }).bitcast("bool"));
  await check(new Tensor(BYTES).bitcast("bool").to(device));
  await check(new Tensor(BYTES, { device, dtype: "bool" }));
  const buffer = new Buffer(device, 6, dtypes.bool).allocate();
  await buffer.copyin(BYTES);
  expect([...(await buffer.data())]).toEqual(TRUTH);
  const host = new Buffer("EXT", 6, dtypes.bool).allocate(BYTES);
  const copy = new Buffer(device, 6, dtypes.bool).allocate();
  await runAsync(new BufferCopy().run([copy, host], new Map(), false));
  expect([...(await copy.data())]).toEqual(TRUTH);
  expect([...BYTES]).toEqual([0, 1, 2, 255, 128, 3]);
});
