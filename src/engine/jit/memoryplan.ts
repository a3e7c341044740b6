// Where the values of a captured step lie, and in which order its items run. In: the items as they were
// executed. Out: the order that needs the least memory, and a place in an arena for each value that only the
// items see. Each device has one arena. Values that live at different times share memory, and a result may
// take the place of an operand that is not read any more. placement.ts has what happens without it.

import { dtypes } from "../../dtype.ts";
import { each, getOrMake, type Step } from "../../helpers.ts";
import { Buffer } from "../../runtime/buffer.ts";
import { CompiledRunner } from "../../runtime/runner.ts";
import { readInPlace } from "../../schedule/lazyop.ts";
import { orderSteps, planSteps } from "../../schedule/memory.ts";
import { Device } from "../devices.ts";
import type { TraceItem } from "./collector.ts";
import type { BufferUse, Life, Placement, Places, Room } from "./placement.ts";

/**
 * The order of a replay. Where possible, copies of host data go first and copies to the host go last, so that
 * they do not split a run of kernels. In between, the order is the one that needs the least memory.
 */
export function* arrange(
  items: readonly TraceItem[],
  uses: ReadonlyMap<Buffer, BufferUse>,
  kept: ReadonlySet<Buffer | undefined>,
): Step<TraceItem[]> {
  const places = placesOf(items);
  const at = (place: number): TraceItem[] => items.filter((_, i) => places[i] === place);
  const numbers = new Map([...uses.keys()].map((b, i) => [b, i]));
  const bytes = [...uses.values()].map(({ buffer, local }) =>
    local && Device.computes(buffer.device) && !kept.has(buffer) ? buffer.nbytes : 0,
  );
  const middle = at(0);
  const number = (b: Buffer): number => numbers.get(b) as number;
  const steps = middle.map(({ item }) => ({
    reads: item.inputs.map(number),
    writes: item.outputs.map(number),
  }));
  const order = yield* orderSteps(steps, bytes);
  return [...at(-1), ...order.map((i) => middle[i] as TraceItem), ...at(1)];
}

/** -1: may be first, 1: may be last. */
function placesOf(items: readonly TraceItem[]): (-1 | 0 | 1)[] {
  const firstUse = new Map<Buffer, number>();
  const lastUse = new Map<Buffer, number>();
  const lastWrite = new Map<Buffer, number>();
  items.forEach(({ item }, i) => {
    for (const b of [...item.inputs, ...item.outputs]) {
      if (!firstUse.has(b)) firstUse.set(b, i);
      lastUse.set(b, i);
    }
    for (const b of item.outputs) lastWrite.set(b, i);
  });
  return items.map(({ item }, i) => {
    const [dest, src] = [item.outputs[0], item.inputs[0]];
    if (item.ast[0]?.op !== "COPY" || dest === undefined || src === undefined) return 0;
    if (
      !Device.computes(src.device) &&
      Device.computes(dest.device) &&
      !lastWrite.has(src) &&
      firstUse.get(dest) === i
    )
      return -1;
    return !Device.computes(dest.device) && lastUse.get(dest) === i && (lastWrite.get(src) ?? -1) < i ? 1 : 0;
  });
}

/** One place in an arena, for one value after the other. */
interface ItemRange {
  readonly values: BufferUse[];
  readonly nbytes: number;
  readonly first: number;
  last: number;
}

/**
 * A result takes the place of an operand of its size that is read here for the last time, and only at the
 * element that is written.
 */
function* liveRanges(
  items: readonly TraceItem[],
  uses: ReadonlyMap<Buffer, BufferUse>,
  free: ReadonlySet<Buffer>,
): Step<ItemRange[]> {
  const places = new Map<Buffer, ItemRange>();
  // an image is not a piece of an arena
  const isFree = (b: Buffer): boolean => isLocal(b, uses, free) && !b.dtype.image;
  yield* each(items, (traced, i) => {
    const { item, isNew } = traced;
    if (!isNew) return;
    for (const b of item.outputs) {
      const use = uses.get(b) as BufferUse;
      if (!isFree(b) || use.first !== i || places.has(b)) continue;
      const from = operandsInPlace(traced).find(
        (x) => places.get(x)?.last === i && x.nbytes === b.nbytes && x.dtype.itemsize === b.dtype.itemsize,
      );
      const place = from === undefined ? undefined : places.get(from);
      if (place === undefined) places.set(b, { values: [use], nbytes: b.nbytes, first: i, last: use.last });
      else {
        place.values.push(use);
        place.last = use.last;
        places.set(b, place);
      }
    }
  });
  return [...new Set(places.values())];
}

/**
 * The operands that a kernel of one output reads only at the element that it writes; none where threads share
 * an element.
 */
function operandsInPlace({ runner, item: { ast, outputs, inputs } }: TraceItem): Buffer[] {
  if (runner instanceof CompiledRunner && runner.kernel.repeats) return [];
  const [out] = outputs;
  if (ast.length !== 1 || ast[0]?.op !== "STORE" || out === undefined) return [];
  const { renderer } = Device.get(out.device);
  if (renderer === undefined || renderer.grid !== undefined) return [];
  return readInPlace(ast[0]).map((idx) => inputs[idx - 1] as Buffer);
}

/** Whether only the items see what is in a buffer. */
const isLocal = (b: Buffer, uses: ReadonlyMap<Buffer, BufferUse>, free: ReadonlySet<Buffer>): boolean =>
  free.has(b) && uses.get(b)?.local === true && Device.computes(b.device);

/** Plans what is in `free`, of the values that the items make. */
export function* planArenas(
  items: readonly TraceItem[],
  uses: ReadonlyMap<Buffer, BufferUse>,
  free: ReadonlySet<Buffer>,
): Step<Placement> {
  const planned = new Map<Buffer, Buffer>();
  const ranges = yield* liveRanges(items, uses, free);
  const lives = ranges.map(({ values, first, last }): Life<Buffer> => {
    return { values: values.map((use) => use.buffer), first, last };
  });
  const { buffers, bytes: arenas } = yield* place(lives);
  lives.forEach(({ values }, i) => {
    for (const [k, value] of values.entries()) planned.set(value, buffers[i]?.[k] as Buffer);
  });
  let bytes = arenas;
  for (const { buffer } of uses.values()) {
    if (!buffer.dtype.image || !isLocal(buffer, uses, free)) continue;
    planned.set(buffer, new Buffer(buffer.device, buffer.size, buffer.dtype));
    bytes += buffer.nbytes;
  }
  const devices = new Set(ranges.map(({ values }) => (values[0] as BufferUse).buffer.device));
  return { planned, lives, bytes, arenas: devices.size };
}

/** One arena for each device, and a piece of it for each value. */
export function* place(lives: readonly Life[]): Step<Places> {
  const byDevice = new Map<string, number[]>();
  lives.forEach(({ values }, i) => {
    getOrMake(byDevice, (values[0] as Room).device, () => []).push(i);
  });
  const buffers: Buffer[][] = [];
  let bytes = 0;
  for (const [device, mine] of byDevice) {
    // sizes that are multiples of the alignment give offsets that are
    const { offsetAlign } = Device.get(device).allocator;
    const sizes = mine.map((i) => {
      const { values, first, last } = lives[i] as Life;
      const most = values.reduce((n, { dtype, size }) => Math.max(n, dtype.bytesFor(size)), 0);
      return { first, last, nbytes: Math.ceil(most / offsetAlign) * offsetAlign };
    });
    const { offsets, nbytes } = yield* planSteps(sizes);
    bytes += nbytes;
    const arena = new Buffer(device, nbytes, dtypes.uint8);
    mine.forEach((i, at) => {
      const { values } = lives[i] as Life;
      buffers[i] = values.map(({ size, dtype }) => new Buffer(device, size, dtype, arena, offsets[at]));
    });
  }
  return { buffers, bytes };
}
