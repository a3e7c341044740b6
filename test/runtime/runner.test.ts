// Copies and transfers that are executed by hand: what they refuse, by name.

import { ArgumentError, Buffer, BufferCopy, BufferXfer, Device, DeviceError, dtypes } from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";

beforeAll(async () => {
  for (const d of ["EXT", "JS", "WASM", "WASM:1"]) await Device.open(d);
});

const make = (device: string): Buffer => new Buffer(device, 2, dtypes.int).allocate();

describe("a transfer", () => {
  test("goes between devices with one memory", () => {
    const [to, from] = [make("WASM:1"), make("WASM")];
    from.copyin(new Int32Array([1, 2]));
    new BufferXfer().exec([to, from]);
    Device.get("WASM").synchronize();
    expect([...to.dataSync()]).toEqual([1, 2]);
  });
  test.each([
    ["EXT", "WASM"],
    ["WASM", "EXT"],
    ["JS", "WASM"],
    ["JS", "EXT"],
  ])("from %s to %s is refused", (from, to) => {
    const exec = () => new BufferXfer().exec([make(to), make(from)]);
    expect(exec).toThrow(DeviceError);
    expect(exec).toThrow(`xfer: no way from ${from} to ${to}; use BufferCopy`);
  });
});

test("a copy of one buffer is refused", () => {
  const exec = () => new BufferCopy().exec([make("WASM")]);
  expect(exec).toThrow(ArgumentError);
  expect(exec).toThrow("copy: got 1 buffers, expected [dest, src]");
});
