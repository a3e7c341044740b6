// Where nodes are made: on one device, or on each of a group (`WASM,WASM:1`). Nodes on several devices are
// in multi.ts, which makes itself known here when it is loaded: a page that uses one device leaves it out.

import { ArgumentError } from "../errors.ts";
import { devicesOf } from "../runtime/registry.ts";
import type { LazyBuffer } from "./lazybuffer.ts";

type MakeNode = (device: string) => LazyBuffer;
/** A node made on each of several devices. */
type MakeGroup = (devices: readonly string[], make: MakeNode) => LazyBuffer;
let makeGroup: MakeGroup = (devices) => {
  throw new ArgumentError(
    `Tensor: ${devices.join(",")} are several devices, which is an area that the page has not loaded; ` +
      'add: import "gradloom/shard" (or "gradloom/all" for every area)',
  );
};
export function setMakeGroup(make: MakeGroup): void {
  makeGroup = make;
}

/** A node made on a device, or on each device of a group. */
export function onEach(device: string, make: MakeNode): LazyBuffer {
  const devices = device.includes(",") ? devicesOf(device) : [device];
  return devices.length === 1 ? make(devices[0] as string) : makeGroup(devices, make);
}
/** The same values on a device, or on each of a group; unchanged if they are there already. */
export const copyTo = (node: LazyBuffer, device: string): LazyBuffer =>
  node.device.includes(",") && devicesOf(device).join(",") === node.device
    ? node
    : onEach(device, (d) => node.copyToDevice(d));

/** What a caller of `createSchedule` gave, if these are nodes. */
export function requireNodes(outs: readonly LazyBuffer[]): readonly LazyBuffer[] {
  const isNode = (x: unknown): boolean => Array.isArray((x as Partial<LazyBuffer> | undefined)?.parts);
  if (Array.isArray(outs) && outs.every(isNode)) return outs;
  throw new ArgumentError(
    "createSchedule: expected an array of LazyBuffers; write createSchedule([x.lazydata])",
  );
}
