// What can be executed on buffers: a compiled kernel, a copy, a transfer, a read from disk, a user's
// function. `run` is the work as a Step; `exec` is the same as a synchronous call. engine/compile.ts decides
// which runner an item needs.

import { env } from "../env.ts";
import { ArgumentError, DeviceError, ShapeError, SymbolicError } from "../errors.ts";
import { isPromise, type MaybePromise, runSync, type Step, settle, timestamp } from "../helpers.ts";
import { canonicalBytes } from "../hostarrays.ts";
import { printable } from "../printable.ts";
import { evaluate, type Sint, type Variable } from "../shape/symbolic.ts";
import { type Buffer, handWrites } from "./buffer.ts";
import type { Compiled, Program } from "./device.ts";
import { activeProfiler, clock } from "./profiling.ts";
import { Device } from "./registry.ts";
import { updateStats } from "./stats.ts";

export type VarVals = ReadonlyMap<Variable, number>;
const NONE: VarVals = new Map();

/** Who hears of what is executed by hand. */
type Listener = (runner: Runner, buffers: readonly Buffer[], varVals: VarVals) => void;
let heard: Listener | undefined;
export const onExec = (listener: Listener): void => {
  heard = listener;
};

export abstract class Runner {
  abstract readonly name: string;
  /** Executes on outputs followed by inputs. */
  abstract run(buffers: readonly Buffer[], varVals: VarVals, wait: boolean): Step<void>;

  exec(buffers: readonly Buffer[], varVals: VarVals = NONE): void {
    handWrites.count++;
    runSync(this.run(buffers, varVals, env.DEBUG >= 2), this.name);
    heard?.(this, buffers, varVals);
  }
}

/** What lowering and compiling leave behind: the program and what it takes to launch it. */
interface CompiledKernel {
  readonly name: string;
  readonly device: string;
  readonly program: Program;
  readonly globalSize: readonly Sint[];
  readonly localSize: readonly number[];
  /** which of the buffers the program takes */
  readonly globals: readonly number[];
  readonly vars: readonly Variable[];
  /** some elements are computed twice: no output may lie where an input does */
  readonly repeats: boolean;
  readonly ops: number;
  readonly bytes: number;
}

/** A compiled kernel that can be launched on buffers. */
export class CompiledRunner extends Runner {
  readonly kernel: CompiledKernel;
  constructor(kernel: CompiledKernel) {
    super();
    this.kernel = kernel;
  }
  get name(): string {
    return this.kernel.name;
  }
  *run(buffers: readonly Buffer[], varVals: VarVals, wait: boolean): Step<void> {
    const { kernel } = this;
    const room = kernel.program.room?.();
    if (isPromise(room)) yield room;
    const vals = kernel.vars.map((v) => {
      const val = varVals.get(v);
      if (val !== undefined) return val;
      throw new SymbolicError(
        `kernel ${kernel.name}: variable ${v.name} has no value; use it bound, as in ${v.name}.bind(${v.min})`,
      );
    });
    const handles = kernel.globals.map((i) => (buffers[i] as Buffer).handle);
    const globalSize = kernel.globalSize.map((s) => evaluate(s, varVals));
    const work = kernel.ops + kernel.bytes;
    const launch = { globalSize, localSize: kernel.localSize, vals, work };
    const { name, device, ops, bytes } = kernel;
    const start = env.PROFILE ? clock() : 0;
    const seconds = yield* settle(kernel.program.run(handles, launch, wait));
    if (env.PROFILE && !Device.get(device).keepsTime) {
      const args = { FLOP: ops, bytes };
      const end = seconds === undefined ? clock() : start + seconds * 1e6;
      activeProfiler()?.add({ device, track: "compute", name, kind: "kernel", start, end, args });
    }
    updateStats({
      kind: "kernel",
      device,
      name,
      args: buffers.length,
      ops,
      bytes,
      seconds: wait ? seconds : undefined,
    });
  }
}

/** A copy through the host; the bytes of a host-memory source are read in place. */
export class BufferCopy extends Runner {
  get name(): string {
    return "copy";
  }
  *run(buffers: readonly Buffer[], _: VarVals, wait: boolean): Step<void> {
    const [dest, src] = buffers;
    if (dest === undefined || src === undefined)
      throw new ArgumentError(`${this.name}: got ${buffers.length} buffers, expected [dest, src]`);
    if (dest.size !== src.size || dest.dtype !== src.dtype) {
      throw new ShapeError(
        `${this.name}: cannot copy ${src.size} × ${src.dtype.name} into ${dest.size} × ${dest.dtype.name}; ` +
          "size and dtype of both buffers must be equal",
      );
    }
    if (dest.size === 0) return;
    const start = timestamp();
    const began = env.PROFILE ? clock() : 0;
    yield* this.copy(dest, src);
    if (env.PROFILE && this.byHost(dest)) this.#note(dest, src, began);
    if (wait) yield* settle(Device.get(dest.device).synchronize());
    const seconds = wait ? (timestamp() - start) / 1000 : undefined;
    const amount =
      dest.nbytes >= 1e6 ? `${(dest.nbytes / 1e6).toFixed(2).padStart(7)}M` : String(dest.nbytes).padStart(8);
    const name = `${this.name} ${amount}, ${dest.device.slice(0, 7).padStart(7)} <- ${src.device.slice(0, 7).padEnd(7)}`;
    updateStats({ kind: "copy", device: dest.device, name, args: 2, ops: 0, bytes: dest.nbytes, seconds });
  }
  /** The host moves the bytes itself. */
  protected byHost(_: Buffer): boolean {
    return true;
  }
  #note(dest: Buffer, src: Buffer, start: number): void {
    const name = `${this.name} ${dest.device} <- ${src.device}`;
    const args = { bytes: dest.nbytes };
    activeProfiler()?.add({ device: "host", track: "copy", name, kind: "copy", start, end: clock(), args });
  }
  /** Where the host sees only the memory that is written, the bytes go straight there. */
  protected *copy(dest: Buffer, src: Buffer): Step<void> {
    const [to, from] = [Device.get(dest.device), Device.get(src.device)];
    const isSeen = ({ allocator }: Compiled, b: Buffer) => allocator.view(b.handle, b.nbytes) !== undefined;
    if (isSeen(from, src) || !isSeen(to, dest)) return yield* settle(dest.fill(yield* src.read(true)));
    // what is queued may still use this memory
    for (const device of [to, from]) yield* settle(device.synchronize());
    const window = to.allocator.view(dest.handle, dest.nbytes) as Uint8Array;
    yield* settle(from.allocator.copyout(window, src.handle));
    const canonical = canonicalBytes(dest.dtype, window);
    if (canonical !== window) window.set(canonical);
  }
}

/** From one device to another of the same kind, without the host. */
export class BufferXfer extends BufferCopy {
  override get name(): string {
    return "xfer";
  }
  protected override byHost(dest: Buffer): boolean {
    return !Device.get(dest.device).keepsTime;
  }
  // biome-ignore lint/correctness/useYield: a Step that never has to wait
  protected override *copy(dest: Buffer, src: Buffer): Step<void> {
    const { allocator, space } = Device.get(dest.device);
    if (!allocator.canTransfer || Device.get(src.device).space !== space)
      throw new DeviceError(`xfer: no way from ${src.device} to ${dest.device}; use BufferCopy`);
    allocator.transfer(dest.handle, src.handle, dest.nbytes);
  }
}

/** From a file. */
export class BufferRead extends BufferCopy {
  override get name(): string {
    return "read";
  }
}

/** A user's function on buffers, as a node of the graph. */
export class CustomOp extends Runner {
  readonly fn: (buffers: readonly Buffer[]) => MaybePromise<void>;
  constructor(fn: (buffers: readonly Buffer[]) => MaybePromise<void>) {
    super();
    this.fn = fn;
  }
  get name(): string {
    return printable(this.fn.name) || "custom";
  }
  *run(buffers: readonly Buffer[], _: VarVals, wait: boolean): Step<void> {
    const start = timestamp();
    const result: unknown = this.fn(buffers);
    // an async function: what follows needs its results, and hears of its failure
    if (isPromise(result)) yield Object.assign(result, { why: `the custom op ${this.name} is async` });
    const seconds = wait ? (timestamp() - start) / 1000 : undefined;
    const device = buffers[0]?.device ?? "?";
    updateStats({ kind: "kernel", device, name: this.name, args: buffers.length, ops: 0, bytes: 0, seconds });
  }
}
