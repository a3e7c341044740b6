// Copying a part of a buffer: from files and host arrays only the part is read, without a kernel; from a
// device that computes, the part is a value like any other and does not change when the whole is assigned to.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSchedule, Device, Tensor } from "gradloom";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as ext from "../../src/devices/ext.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gradloom-slice-"));
  writeFileSync(join(folder, "bytes"), Uint8Array.from([1, 2, 3, 4, 5, 6]));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const opsOf = (t: Tensor) => createSchedule([t.lazydata]).map((si) => si.ast[0]?.op);

test("parts of a file that nothing has read yet", async () => {
  const file = Tensor.fromFile(join(folder, "bytes"), [6]);
  const parts = [file.shrink([[1, 3]]).to("WASM"), file.shrink([[4, 6]]).to("JS")];
  expect(parts.map(opsOf)).toEqual([
    ["EMPTY", "COPY"],
    ["EMPTY", "COPY"],
  ]);
  expect(await Promise.all(parts.map((p) => p.tolist()))).toEqual([
    [2, 3],
    [5, 6],
  ]);
  expect(await file.shrink([[0, 2]]).tolist()).toEqual([1, 2]);
  expect(await file.to("WASM").tolist()).toEqual([1, 2, 3, 4, 5, 6]);
});

test("whether a device computes is said where it is registered, not by its name", async () => {
  Device.register({ SHELF: { storage: "array", load: () => ext } });
  const host = new Tensor([1, 2, 3, 4], { device: "SHELF" });
  expect(host.lazydata.onlyHolds).toBe(true);
  const part = host.shrink([[1, 3]]).to("WASM");
  expect(opsOf(part).slice(-1)).toEqual(["COPY"]);
  expect(opsOf(part)).not.toContain("STORE");
  expect(await part.tolist()).toEqual([2, 3]);
});

test("a part of a host array: one copy, no kernel", async () => {
  const host = new Tensor([1, 2, 3, 4], { device: "EXT" });
  const part = host.shrink([[1, 3]]).to("WASM");
  expect(opsOf(part)).toEqual(["COPY"]);
  expect(await part.tolist()).toEqual([2, 3]);
});

test("a part of what a device computed keeps its value over an assign", async () => {
  const t = await new Tensor([1, 2, 3, 4]).realize();
  const [part, other] = [t.shrink([[1, 3]]).to("EXT"), t.shrink([[2, 4]]).to("JS")];
  t.assign(t.mul(10));
  await Tensor.realize(t, other);
  expect([await part.tolist(), await other.tolist(), await t.tolist()]).toEqual([
    [2, 3],
    [3, 4],
    [10, 20, 30, 40],
  ]);
});

test("any view of a host array or a file can be read and moved", async () => {
  const host = new Tensor(
    [
      [1, 2, 3],
      [4, 5, 6],
    ],
    { device: "EXT" },
  );
  const views = [
    host.T,
    host.flip(1),
    host.shrink([null, [0, 2]]),
    host.pad([
      [0, 1],
      [1, 0],
    ]),
  ] as const;
  const wanted = [
    [
      [1, 4],
      [2, 5],
      [3, 6],
    ],
    [
      [3, 2, 1],
      [6, 5, 4],
    ],
    [
      [1, 2],
      [4, 5],
    ],
    [
      [0, 1, 2, 3],
      [0, 4, 5, 6],
      [0, 0, 0, 0],
    ],
  ];
  for (const [i, v] of views.entries()) {
    expect(await v.tolist()).toEqual(wanted[i]);
    expect(await v.to("JS").tolist()).toEqual(wanted[i]);
  }
});
