// The work of a GPU in order: kernels and copies are encoded into one command buffer until it is submitted,
// in one compute pass as far as possible. A batch goes when it has enough work, when something must come
// after it, or when the program waits. What fails on the GPU is kept and thrown by whoever waits next.

import { env } from "../../env.ts";
import { DeviceError, GradloomError, OutOfMemoryError } from "../../errors.ts";
import { tagOf } from "../../helpers.ts";
import { nextTask } from "../../pace.ts";
import type {
  GpuBindGroup,
  GpuBuffer,
  GpuCommands,
  GpuDevice,
  GpuEncoder,
  GpuFault,
  GpuPass,
  GpuPipeline,
  GpuTimestamps,
} from "./api.ts";

/** What an error tells of a kernel. */
interface NamedKernel {
  readonly name: string;
  readonly code: string;
}
/** A kernel's variables: the words, or a group of a buffer and the byte at which they lie. */
export type Vals = { readonly words: Int32Array } | { readonly group: GpuBindGroup; readonly at: number };

/** A kernel with all it takes: one dispatch. */
export interface Dispatch {
  readonly kernel: NamedKernel;
  readonly pipeline: GpuPipeline;
  readonly buffers: GpuBindGroup;
  readonly vals: Vals | undefined;
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

/** Dispatches of a batch, and operations and bytes: the GPU starts while the host encodes the next. */
const MAX_DISPATCHES = 64;
const MAX_WORK = 2 ** 32;
/** A captured run of fewer kernels may share its submit with the next: a submit costs as much as these. */
const FEW_DISPATCHES = 8;
/** The work of one submit of a captured step. More of it would keep a page's own drawing waiting. */
const MAX_SUBMIT = 2 ** 36;
/** Kernels that an error tells. */
const REMEMBERED = 4;
/** Milliseconds after which a GPU that failed a request would have said that it is lost. */
const LOSS_MS = 100;

export class GpuStream {
  readonly name: string;
  readonly gpu: GpuDevice;
  #encoder: GpuEncoder | undefined;
  #pass: GpuPass | undefined;
  /** the last dispatch of the pass */
  #last: Dispatch | undefined;
  #dispatches = 0;
  #work = 0;
  #scheduled = false;
  /** something was submitted in this task */
  #hasFed = false;
  /** called right before a submit: what the batch reads is written */
  readonly #before: (() => void)[] = [];
  /** buffers that were freed while commands that are not submitted yet may name them */
  #retired: GpuBuffer[] = [];
  #recent: NamedKernel[] = [];
  #failure: Error | undefined;
  #isLost = false;
  /** who waits, for the case that the GPU is lost */
  readonly #waiting = new Set<(why: Error) => void>();

  constructor(name: string, gpu: GpuDevice) {
    this.name = name;
    this.gpu = gpu;
    gpu.onuncapturederror = ({ error }) => this.fail(this.#explained(error));
    void gpu.lost.then(({ reason, message }) => {
      this.#isLost = true;
      const why = new DeviceError(
        `${name}: the GPU was lost${message === "" ? "" : ` (${message.trim()})`}` +
          `${reason === "destroyed" ? ", because it was closed" : ""}; what its memory held is gone. ` +
          `The last kernels were ${this.#recentNames}. ` +
          "The next use opens it again: make the tensors anew, from data or from a saved state",
        { cause: this.#failure },
      );
      this.#failure = why;
      for (const reject of this.#waiting) reject(why);
    });
  }

  get isLost(): boolean {
    return this.#isLost;
  }
  /** Keeps the first failure; those that follow come of it. */
  fail(error: Error): void {
    this.#failure ??= error;
  }
  /** A failure that nobody has heard of yet. What is lost stays so. */
  check(): void {
    const failure = this.#failure;
    if (failure === undefined) return;
    if (!this.#isLost) this.#failure = undefined;
    throw failure;
  }
  /** A GPU that is lost does nothing more. */
  requireAlive(): void {
    if (this.#isLost) throw this.#failure;
  }
  get #recentNames(): string {
    return this.#recent.map((k) => k.name).join(", ") || "none";
  }
  /** What the GPU reports names what it is about by labels: those of kernels are their names. */
  #explained(error: GpuFault): Error {
    const message = error.message.trim();
    const kernel = this.#recent.findLast((k) => message.includes(k.name)) ?? this.#recent.at(-1);
    const source = kernel === undefined ? "" : `\nsource of ${kernel.name}:\n${kernel.code}`;
    const text = `${this.name}: ${message}; the last kernels were ${this.#recentNames}${source}`;
    const isFull = /out.?of.?memory/i.test(`${tagOf(error)} ${message}`);
    return isFull ? lateOutOfMemory(text) : new DeviceError(text);
  }

  // ---- encoding ----

  beforeSubmit(write: () => void): void {
    this.#before.push(write);
  }
  dispatch(d: Dispatch, work: number): void {
    this.check();
    this.#encode(d, work);
    this.#flushSoon();
  }
  /** The kernels of a captured run: in one submit, unless they are very much work. */
  replay(kernels: Iterable<{ readonly dispatch: Dispatch; readonly work: number }>): void {
    this.check();
    let count = 0;
    for (const { dispatch, work } of kernels) {
      if (this.#work > 0 && this.#work + work > MAX_SUBMIT) this.flush();
      this.#encode(dispatch, work);
      count++;
    }
    if (count >= FEW_DISPATCHES) this.flush();
    else this.#flushSoon();
  }
  #encode(d: Dispatch, work: number): void {
    this.#pass ??= this.#commands().beginComputePass();
    encode(this.#pass, d, this.#last);
    this.#last = d;
    this.note(d.kernel);
    this.#work += work;
    this.#dispatches++;
  }
  #flushSoon(): void {
    if (this.#dispatches >= MAX_DISPATCHES || this.#work >= MAX_WORK) this.flush();
    else this.#flushLater();
  }
  /** One pass of its own, whose begin and end are timed. */
  timed(d: Dispatch, timestampWrites: GpuTimestamps): void {
    this.check();
    this.#endPass();
    const pass = this.#commands().beginComputePass({ timestampWrites });
    encode(pass, d, undefined);
    pass.end();
    this.note(d.kernel);
  }
  /** Commands beside kernels. */
  command(write: (encoder: GpuEncoder) => void): void {
    this.check();
    this.#endPass();
    write(this.#commands());
    this.#flushLater();
  }
  /** Remembers a kernel, for errors. */
  note(kernel: NamedKernel): void {
    if (this.#recent.at(-1) === kernel) return;
    if (this.#recent.length >= REMEMBERED) this.#recent.shift();
    this.#recent.push(kernel);
  }
  #commands(): GpuEncoder {
    this.#encoder ??= this.gpu.createCommandEncoder();
    return this.#encoder;
  }
  #endPass(): void {
    this.#pass?.end();
    this.#pass = this.#last = undefined;
  }
  /**
   * Nobody may ever wait: what is encoded goes when the caller's turn is over. If this task has fed the GPU
   * already, it goes when the task is over, since a submit costs as much as many kernels.
   */
  #flushLater(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const over = this.#hasFed ? nextTask() : Promise.resolve();
    void over.then(() => {
      this.#scheduled = false;
      this.flush();
    });
  }

  // ---- submitting ----

  /** Submits what is encoded, and then `commands`. */
  flush(commands: readonly GpuCommands[] = []): void {
    this.#endPass();
    const encoded = this.#encoder === undefined ? [] : [this.#encoder.finish()];
    this.#encoder = undefined;
    this.#dispatches = this.#work = 0;
    const all = [...encoded, ...commands];
    if (all.length > 0 && !this.#isLost) {
      for (const write of this.#before) write();
      this.gpu.queue.submit(all);
      this.#fed();
    }
    for (const buffer of this.#retired) buffer.destroy();
    this.#retired = [];
  }
  #fed(): void {
    if (this.#hasFed) return;
    this.#hasFed = true;
    void nextTask().then(() => {
      this.#hasFed = false;
    });
  }
  /** Writes at once: what was encoded before comes before it. */
  write(buffer: GpuBuffer, at: number, data: ArrayBufferView): void {
    this.check();
    this.flush();
    this.gpu.queue.writeBuffer(buffer, at, data);
  }
  /** Frees a buffer when nothing that is encoded names it; the GPU itself may still use it. */
  retire(buffer: GpuBuffer): void {
    if (this.#encoder === undefined) buffer.destroy();
    else this.#retired.push(buffer);
  }

  // ---- waiting ----

  async synchronize(): Promise<void> {
    this.flush();
    await this.until(this.gpu.queue.onSubmittedWorkDone());
  }
  /** Waits for a promise of the GPU, and throws what failed meanwhile. */
  async until<T>(promise: Promise<T>): Promise<T> {
    this.check();
    try {
      return await this.answer(promise, "a kernel may hang, or run longer than HCQ_TIMEOUT allows");
    } catch (cause) {
      if (cause instanceof GradloomError) throw cause;
      // a GPU that is lost fails what waits before it says so
      await Promise.race([this.gpu.lost, new Promise((resolve) => setTimeout(resolve, LOSS_MS))]);
      this.requireAlive();
      throw new DeviceError(`${this.name}: ${(cause as Error).message}`, { cause });
    } finally {
      this.check();
    }
  }
  /** What the GPU answers. Fails where it is lost or does not answer in time; `hint` says why that may be. */
  async answer<T>(promise: Promise<T>, hint: string): Promise<T> {
    this.requireAlive();
    const done = new AbortController();
    let reject: (why: Error) => void = () => {};
    const failed = new Promise<never>((_, fail) => {
      reject = fail;
    });
    this.#waiting.add(reject);
    this.#timeOut(done.signal, (seconds) =>
      reject(
        new DeviceError(
          `${this.name}: no answer from the GPU for ${seconds} s; ${hint}. The last kernels were ${this.#recentNames}`,
        ),
      ),
    );
    this.#nudge(done.signal);
    try {
      return await Promise.race([promise, failed]);
    } finally {
      done.abort();
      this.#waiting.delete(reject);
    }
  }
  /** Counts seconds that the program has seen: those that a page or a laptop slept through do not count. */
  #timeOut(done: AbortSignal, isLate: (seconds: number) => void): void {
    const seconds = env.HCQ_TIMEOUT;
    let left = seconds;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tick = (): void => {
      const next = Math.min(left, 1);
      left -= next;
      if (next > 0) timer = setTimeout(tick, next * 1000);
      else isLate(seconds);
    };
    tick();
    done.addEventListener("abort", () => clearTimeout(timer));
  }
  /**
   * Firefox asks the GPU only every 100 ms whether it is done, unless work is submitted: empty submits wake
   * it, at first often, then seldom, since too many of them block it.
   */
  #nudge(done: AbortSignal): void {
    if (!POLLS) return;
    const start = performance.now();
    const nudge = (): void => {
      const waited = performance.now() - start;
      if (done.aborted || this.#isLost || waited > 1000) return;
      this.gpu.queue.submit([]);
      setTimeout(nudge, waited < 20 ? 1 : 10);
    };
    setTimeout(nudge, 1);
  }
}

/** WebGPU says that there was no room after it has given the buffer. */
export const lateOutOfMemory = (text: string): OutOfMemoryError =>
  Object.assign(new OutOfMemoryError(text), { isLate: true as const });

const { navigator } = globalThis as { navigator?: { userAgent?: string } };
const POLLS = /Firefox\//.test(navigator?.userAgent ?? "");

/** `before`: the dispatch before it in the same pass, of which the pipeline and the buffers are still set. */
function encode(pass: GpuPass, d: Dispatch, before: Dispatch | undefined): void {
  const { pipeline, buffers, vals, x, y, z } = d;
  if (before?.pipeline !== pipeline) pass.setPipeline(pipeline);
  if (before?.buffers !== buffers || before.pipeline !== pipeline) pass.setBindGroup(0, buffers);
  if (vals !== undefined) {
    if ("words" in vals) pass.setImmediates?.(0, vals.words);
    else pass.setBindGroup(1, vals.group, [vals.at]);
  }
  // each argument costs time on its way to the GPU's process or library
  if (z > 1) pass.dispatchWorkgroups(x, y, z);
  else if (y > 1) pass.dispatchWorkgroups(x, y);
  else pass.dispatchWorkgroups(x);
}
