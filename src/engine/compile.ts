// From a ScheduleItem to something that runs: lower, render, compile, once for each kernel and device. The second
// kernel of the same structure costs a look-up.

import { type Kernel, toFastKernel, toKernel } from "../codegen/kernel.ts";
import { showOpts } from "../codegen/opts.ts";
import type { Renderer, Source } from "../codegen/target.ts";
import { env } from "../env.ts";
import { DeviceError, InternalError } from "../errors.ts";
import { type Step, settle } from "../helpers.ts";
import { uopsToCStyle } from "../render/cstyle.ts";
import { ClangLanguage } from "../render/languages.ts";
import type { Buffer } from "../runtime/buffer.ts";
import { HCQCompatCompiled } from "../runtime/hcq/device.ts";
import { Device, kindOf } from "../runtime/registry.ts";
import {
  BufferCopy,
  BufferRead,
  BufferXfer,
  CompiledRunner,
  CustomOp,
  type Runner,
} from "../runtime/runner.ts";
import { astKey, type LazyOp } from "../schedule/lazyop.ts";
import type { ScheduleItem } from "../schedule/schedule.ts";
import { searchKernel } from "./search.ts";

const compiled = new Map<string, CompiledRunner>();
/** A program whose shapes never repeat must not keep every kernel it ever had: the oldest goes. */
const MAX_KERNELS = 4096;

/** Forgets all compiled kernels, so that the next run compiles again (for measuring). */
export const clearKernelCache = (): void => compiled.clear();

/** What executes this item; undefined for EMPTY, which only wants memory. */
export function* runnerFor(si: ScheduleItem): Step<Runner | undefined> {
  const first = si.ast[0] as LazyOp;
  const out = si.outputs[0] as Buffer;
  switch (first.op) {
    case "STORE":
      return yield* kernelRunner(out.device, si.ast, writesWhatItReads(si));
    case "COPY": {
      const src = si.inputs[0] as Buffer;
      if (canTransfer(out.device, src.device)) return new BufferXfer();
      return kindOf(src.device) === "DISK" ? new BufferRead() : new BufferCopy();
    }
    case "CUSTOM":
      return new CustomOp(first.arg);
    case "EMPTY":
      return undefined;
    default:
      throw new InternalError(`a ScheduleItem cannot start with ${first.op}`);
  }
}

/** An assign may share memory with what it is computed from. */
function writesWhatItReads({ outputs, inputs }: ScheduleItem): boolean {
  const memory = (b: Buffer): Buffer => b.base ?? b;
  return outputs.some((o) => inputs.some((i) => memory(i) === memory(o)));
}

/** Devices of a kind, and devices that wait for each other's signals, copy without the host. */
function canTransfer(to: string, from: string): boolean {
  const dest = Device.get(to);
  const src = Device.isOpen(from) ? Device.get(from) : undefined;
  if (dest instanceof HCQCompatCompiled && src instanceof HCQCompatCompiled)
    return dest.signalSpace === src.signalSpace;
  return dest.allocator.canTransfer && kindOf(to) === kindOf(from);
}

export function* kernelRunner(name: string, ast: readonly LazyOp[], inPlace: boolean): Step<CompiledRunner> {
  const key = `${name}|${env.NOOPT}|${env.BEAM}|${inPlace ? "in place|" : ""}${astKey(ast)}`;
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const device = yield* Device.opened(name);
  if (device.renderer === undefined) {
    throw new DeviceError(
      `${name} holds data and cannot compute; move the tensor first: t.to("${Device.DEFAULT}")`,
    );
  }
  const { renderer } = device;
  const kernel = env.NOOPT
    ? toKernel(ast, [], renderer)
    : env.BEAM > 0
      ? yield* searchKernel(ast, device, renderer, inPlace, env.BEAM)
      : toFastKernel(ast, renderer, inPlace);
  const source = render(renderer, kernel);
  const program = yield* settle(device.compile(kernel.name, source));
  program.cost = { ops: kernel.ops, bytes: kernel.bytes };
  const runner = new CompiledRunner({ ...kernel, device: name, program });
  compiled.set(key, runner);
  if (compiled.size > MAX_KERNELS) compiled.delete(compiled.keys().next().value as string);
  return runner;
}

function render(renderer: Renderer, kernel: Kernel) {
  if (env.DEBUG >= 5) console.log(String(kernel.uops));
  const source = renderer.render(kernel.name, kernel.uops);
  if (env.DEBUG >= 4) {
    if (kernel.opts.length > 0) console.log(showOpts(kernel.opts));
    console.log(readable(source, kernel));
  }
  return source;
}

/** Machine code and lists are shown as the C that does the same. */
function readable(source: Source, kernel: Kernel): string {
  if (typeof source === "string") return source;
  const what =
    source instanceof Uint8Array ? `${source.byteLength} bytes of WebAssembly` : "interpreted uops";
  return `// ${what}, in C:\n${uopsToCStyle(ClangLanguage, kernel.name, kernel.uops)}`;
}
