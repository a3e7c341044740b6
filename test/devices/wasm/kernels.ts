// Hand-made kernels for the tests of WASM's hardware: what they do and how long they
// take is known to the instruction.

import { Buffer, Device, dtypes, type HCQCompatAllocRes } from "gradloom";
import { sourceOf } from "../../../src/codegen/target.ts";
import type { RingProgram } from "../../../src/devices/wasm/program.ts";
import type { WasmDevice } from "../../../src/devices/wasm.ts";
import { assemble, FunctionBuilder, I32, OP } from "../../../src/render/wasm/assembler.ts";

export const device = (name: string): WasmDevice => Device.get(name) as WasmDevice;

/** A kernel with this number of i32 arguments. */
export function kernel(
  dev: WasmDevice,
  name: string,
  params: number,
  body: (f: FunctionBuilder) => void,
): RingProgram {
  const f = new FunctionBuilder({ params: new Array<typeof I32>(params).fill(I32), results: [] });
  body(f);
  const { shared } = dev.hardware.memory;
  return dev.compile(
    name,
    sourceOf(assemble({ memory: { min: 1, max: 65536, shared }, functions: [f], exports: [name] })),
  );
}

/** Repeats `body` for a local counting from `from` to `to` (both locals); at least once. */
function repeat(f: FunctionBuilder, from: number, to: number, body: (i: number) => void): void {
  const i = f.local(I32);
  f.get(from);
  f.set(i);
  f.loop();
  body(i);
  f.get(i);
  f.i32(1);
  f.op(OP["i32.add"]);
  f.tee(i);
  f.get(to);
  f.op(OP["i32.lt_s"]);
  f.brIf(0);
  f.end();
}

/** dst[0] = src[0] * factor + plus */
export const scale = (dev: WasmDevice, name: string, factor: number, plus: number): RingProgram =>
  kernel(dev, name, 2, (f) => {
    f.get(0);
    f.get(1);
    f.memory(OP["i32.load"], 2, 0);
    f.i32(factor);
    f.op(OP["i32.mul"]);
    f.i32(plus);
    f.op(OP["i32.add"]);
    f.memory(OP["i32.store"], 2, 0);
  });

/** dst[0] += 1, `n` times: 1e9 take the better part of a second. */
export const spin = (dev: WasmDevice, name: string, n: number): RingProgram =>
  kernel(dev, name, 1, (f) => {
    const [from, to] = [f.local(I32), f.local(I32)];
    f.i32(n);
    f.set(to);
    repeat(f, from, to, () => {
      f.get(0);
      f.get(0);
      f.memory(OP["i32.load"], 2, 0);
      f.i32(1);
      f.op(OP["i32.add"]);
      f.memory(OP["i32.store"], 2, 0);
    });
  });

/** Never ends. */
export const forever = (dev: WasmDevice, name: string): RingProgram =>
  kernel(dev, name, 1, (f) => {
    f.loop();
    f.br(0);
    f.end();
  });

/** dst[i] += i + 1 for a range of i: takes a buffer, and where to begin and end. */
export const ramp = (dev: WasmDevice, name: string): RingProgram =>
  kernel(dev, name, 3, (f) => {
    repeat(f, 1, 2, (i) => {
      const address = () => {
        f.get(0);
        f.get(i);
        f.i32(2);
        f.op(OP["i32.shl"]);
        f.op(OP["i32.add"]);
      };
      address();
      address();
      f.memory(OP["i32.load"], 2, 0);
      f.get(i);
      f.op(OP["i32.add"]);
      f.i32(1);
      f.op(OP["i32.add"]);
      f.memory(OP["i32.store"], 2, 0);
    });
  });

/**
 * dst[1 + i] = 1 for a range of i as soon as dst[0] is not 0; gives up after a second or more: takes a
 * buffer, and where to begin and end.
 */
export const awaiting = (dev: WasmDevice, name: string): RingProgram =>
  kernel(dev, name, 3, (f) => {
    const left = f.local(I32);
    repeat(f, 1, 2, (i) => {
      f.i32(2 ** 31 - 1);
      f.set(left);
      f.loop();
      f.get(0);
      f.memory(OP["i32.load"], 2, 0);
      f.op(OP["i32.eqz"]);
      f.get(left);
      f.i32(1);
      f.op(OP["i32.sub"]);
      f.tee(left);
      f.i32(0);
      f.op(OP["i32.ne"]);
      f.op(OP["i32.and"]);
      f.brIf(0);
      f.end();
      f.get(0);
      f.get(i);
      f.i32(2);
      f.op(OP["i32.shl"]);
      f.op(OP["i32.add"]);
      f.get(left);
      f.i32(0);
      f.op(OP["i32.ne"]);
      f.memory(OP["i32.store"], 2, 4);
    });
  });

/** Fails. */
export const trap = (dev: WasmDevice, name: string, params = 1): RingProgram =>
  kernel(dev, name, params, (f) => f.op(OP.unreachable));

export function ints(name: string, values: readonly number[]): Buffer {
  const buffer = new Buffer(name, values.length, dtypes.int32).allocate();
  void buffer.copyin(new Uint8Array(Int32Array.from(values).buffer));
  return buffer;
}
export const handles = (...buffers: readonly Buffer[]): HCQCompatAllocRes[] =>
  buffers.map((b) => b.handle as HCQCompatAllocRes);

/**
 * Submits one kernel on the device's timeline, as work that is worth a worker; gives the value to wait for.
 */
export function launch(
  program: RingProgram,
  buffers: readonly Buffer[],
  { size = -1, worth = true }: { size?: number; worth?: boolean } = {},
): number {
  const dev = program.device;
  const args = program.allocKernargs(handles(...buffers), []);
  const value = dev.nextTimelineValue();
  const queue = dev.computeQueue().wait(dev.timelineSignal, value - 1);
  queue.exec(program, args, size < 0 ? [] : [size], []).signal(dev.timelineSignal, value);
  queue.work = worth ? Infinity : 0;
  queue.submit(dev);
  args.free();
  return value;
}

/** Waits this many milliseconds, so that workers come to run. */
export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
