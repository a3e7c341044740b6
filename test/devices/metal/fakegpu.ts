// Metal's classes on the fake runtime: queues, command buffers, encoders, pipelines, indirect command
// buffers, events. Work is done late, a command buffer at a time when somebody asks for a status, kernels
// without a barrier between them in a random order: what works only by luck fails. What Metal's validation
// would stop is a fault: encoders that are not ended, a second commit, sizes and offsets out of range,
// arguments that are not set, memory that was released or not named as a resource, indirect commands changed
// while they are executed.

import type { CommandRange, Id, MessageArray, Size3 } from "../../../src/devices/metal/messages.ts";
import { demand, type FakeObject, FakeRuntime, type Methods } from "./fake.ts";
import { FakeIndirect, type IndirectCommand } from "./fakeindirect.ts";
import { type FakeKernel, FakeKernels } from "./fakekernels.ts";

export interface FakeOptions {
  readonly gpus?: number;
  readonly name?: string;
  /** families that the GPU is of */
  readonly families?: readonly number[];
  /** threads of a threadgroup that a pipeline has room for */
  readonly threads?: number;
  readonly maxBufferLength?: number;
  /** bytes of all buffers */
  readonly total?: number;
  readonly plain?: boolean;
}

export interface FakeBuffer {
  readonly object: FakeObject;
  readonly bytes: Uint8Array;
  isGone: boolean;
}
/** An argument of a kernel: memory, or a value. */
export type Argument = { readonly buffer: FakeBuffer; readonly offset: number } | { readonly value: number };
export interface FakePipeline {
  readonly kernel: FakeKernel;
  readonly isIndirect: boolean;
}
/** Something that a command buffer does; false: it fails. */
type Step = () => boolean;
interface Commands {
  readonly object: FakeObject;
  readonly steps: Step[];
  /** waits for another queue first */
  readonly waits: (() => boolean)[];
  readonly held: Id[];
  state: "open" | "committed" | "done";
  encoder: string | undefined;
  error: FakeObject | undefined;
  start: number;
  readonly indirect: FakeIndirect[];
}

const none = undefined;
const total = ({ width, height, depth }: Size3): number => width * height * depth;
const listOf = ({ width, height, depth }: Size3): number[] => [width, height, depth];

export class FakeMetal {
  readonly runtime = new FakeRuntime();
  readonly kernels: FakeKernels;
  readonly options: FakeOptions;
  readonly #queues: Commands[][] = [];
  readonly #buffers = new Map<Id, FakeBuffer>();
  readonly #pipelines = new Map<Id, FakePipeline>();
  readonly #indirects = new Map<Id, FakeIndirect>();
  readonly #events = new Map<Id, { value: number }>();
  #used = 0;
  #seconds = 1000;
  #seed = 7;
  /** kernels that ran, in their order */
  readonly ran: string[] = [];

  constructor(options: FakeOptions = {}) {
    this.options = options;
    this.kernels = new FakeKernels(options.plain);
    const { runtime } = this;
    runtime.devices = Array.from({ length: options.gpus ?? 1 }, () =>
      runtime.add("MTLDevice", this.#device()),
    );
    runtime.add("MTLCompileOptions class", { new: () => this.#options() });
    runtime.add("MTLComputePipelineDescriptor class", { new: () => this.#descriptor() });
    runtime.add("MTLIndirectCommandBufferDescriptor class", { new: () => this.#indirectDescriptor() });
  }
  random(below: number): number {
    this.#seed = (this.#seed * 1103515245 + 12345) % 2 ** 31;
    return this.#seed % below;
  }

  // ---- the device ----

  #device(): Methods {
    const { runtime, options } = this;
    const { families = [1007, 1008, 5001], name = "Apple M2", maxBufferLength = 2 ** 30 } = options;
    return {
      name: () => runtime.string(name),
      "supportsFamily:": (family) => families.includes(family),
      maxThreadsPerThreadgroup: () => ({ width: 1024, height: 1024, depth: 1024 }),
      maxThreadgroupMemoryLength: () => 32768,
      maxBufferLength: () => maxBufferLength,
      recommendedMaxWorkingSetSize: () => 2 ** 33,
      "newCommandQueueWithMaxCommandBufferCount:": (most) => this.#queue(most),
      newSharedEvent: () => {
        const event = runtime.add("MTLSharedEvent", {}, () => this.#events.delete(event.id));
        this.#events.set(event.id, { value: 0 });
        return event.id;
      },
      "newBufferWithLength:options:": (length, flags) => this.#buffer(length, flags),
      "newLibraryWithSource:options:error:": (source, flags, error) => this.#library(source, flags, error),
      "newComputePipelineStateWithDescriptor:options:reflection:error:": (descriptor, flags, reflection) => {
        demand(flags === 0 && reflection === 0n, "a pipeline without reflection");
        return this.#pipeline(descriptor);
      },
      "newIndirectCommandBufferWithDescriptor:maxCommandCount:options:": (descriptor, count, flags) => {
        demand(flags === 0, "an indirect command buffer in shared memory");
        const { type, binds } = this.#indirectOf(descriptor);
        demand(type === 32, "indirect commands that dispatch concurrently");
        demand(count >= 1 && count <= 16384 && binds <= 31, `${count} indirect commands of ${binds} buffers`);
        const made = new FakeIndirect(this, count, binds);
        this.#indirects.set(made.object.id, made);
        return made.object.id;
      },
    };
  }
  #buffer(length: number, flags: number): Id {
    const { maxBufferLength = 2 ** 30, total: room = Infinity } = this.options;
    demand(length > 0 && length <= maxBufferLength && flags === 0, `a shared buffer of ${length} bytes`);
    if (this.#used + length > room) return 0n;
    this.#used += length;
    const { at, bytes } = this.runtime.allocate(length);
    const object = this.runtime.add("MTLBuffer", { contents: () => at }, () => {
      made.isGone = true;
      this.#used -= length;
      this.runtime.unmap(at);
      this.#buffers.delete(object.id);
    });
    const made: FakeBuffer = { object, bytes, isGone: false };
    this.#buffers.set(object.id, made);
    return object.id;
  }
  bufferAt(id: Id, offset: number, what: string): FakeBuffer {
    const buffer = this.#buffers.get(this.runtime.of("MTLBuffer", id, what).id) as FakeBuffer;
    demand(offset < buffer.bytes.length, `${what}: offset ${offset} of ${buffer.bytes.length} bytes`);
    return buffer;
  }

  // ---- kernels ----

  readonly #compileOptions = new Map<Id, { fast: boolean; version: number }>();
  #options(): Id {
    const state = { fast: true, version: 0 };
    const object = this.runtime.add("MTLCompileOptions", {
      "setFastMathEnabled:": (on) => {
        state.fast = on;
      },
      "setLanguageVersion:": (version) => {
        state.version = version;
      },
    });
    this.#compileOptions.set(object.id, state);
    return object.id;
  }
  readonly #functions = new Map<Id, FakeKernel>();
  #library(source: Id, flags: Id, error: MessageArray): Id {
    const { runtime } = this;
    const options = this.#compileOptions.get(runtime.of("MTLCompileOptions", flags, "a library").id);
    demand(options?.fast === false && options.version >= 0x20000, "fast math off and a language version");
    const kernel = this.kernels.ofText(runtime.textOf(source));
    if (kernel === undefined) {
      const why = runtime.error(3, "program_source:1: error: nobody rendered this");
      error[0] = runtime.autoreleased(why);
      return 0n;
    }
    return runtime.add("MTLLibrary", {
      "newFunctionWithName:": (name) => {
        if (runtime.textOf(name) !== kernel.name) return 0n;
        const fn = runtime.add("MTLFunction", {}, () => this.#functions.delete(fn.id));
        this.#functions.set(fn.id, kernel);
        return fn.id;
      },
    }).id;
  }
  readonly #descriptors = new Map<Id, { fn: Id; isIndirect: boolean }>();
  #descriptor(): Id {
    const state = { fn: 0n, isIndirect: false };
    const object = this.runtime.add("MTLComputePipelineDescriptor", {
      "setComputeFunction:": (fn) => {
        state.fn = this.runtime.of("MTLFunction", fn, "setComputeFunction:").id;
      },
      "setSupportIndirectCommandBuffers:": (on) => {
        state.isIndirect = on;
      },
    });
    this.#descriptors.set(object.id, state);
    return object.id;
  }
  #pipeline(descriptor: Id): Id {
    const { runtime } = this;
    const state = this.#descriptors.get(
      runtime.of("MTLComputePipelineDescriptor", descriptor, "a pipeline").id,
    );
    const kernel = this.#functions.get(state?.fn ?? 0n);
    demand(kernel !== undefined, "a pipeline of a function");
    const most = Math.min(this.options.threads ?? 1024, kernel.threads === 1 ? 1024 : kernel.threads);
    const made = runtime.add("MTLComputePipelineState", { maxTotalThreadsPerThreadgroup: () => most }, () =>
      this.#pipelines.delete(made.id),
    );
    this.#pipelines.set(made.id, { kernel, isIndirect: state?.isIndirect === true });
    return made.id;
  }
  pipelineAt(id: Id): FakePipeline {
    return this.#pipelines.get(
      this.runtime.of("MTLComputePipelineState", id, "a pipeline").id,
    ) as FakePipeline;
  }
  /** Runs a kernel with arguments that were checked to be there; whether it went well. */
  launch(
    { kernel }: FakePipeline,
    args: readonly (Argument | undefined)[],
    groups: Size3,
    local: Size3,
  ): boolean {
    const { name, buffers, vals, threads } = kernel;
    demand(total(groups) > 0, `${name}: no threadgroups`);
    const most = Math.min(this.options.threads ?? 1024, threads);
    demand(
      total(local) > 0 && total(local) <= most,
      `${name}: a threadgroup of ${total(local)}, at most ${most}`,
    );
    const handles = args.slice(0, buffers).map((x, i) => {
      demand(x !== undefined && "buffer" in x, `${name}: argument ${i} is not a buffer`);
      demand(!x.buffer.isGone, `${name}: the memory of argument ${i} was released`);
      return x.buffer.bytes.subarray(x.offset);
    });
    demand(handles.length === buffers, `${name}: ${handles.length} of ${buffers} buffers`);
    const values = Array.from({ length: vals }, (_, i) => {
      const x = args[buffers + i];
      demand(x !== undefined, `${name}: variable ${i} is not set`);
      if ("value" in x) return x.value;
      demand(!x.buffer.isGone && x.offset % 32 === 0, `${name}: variable ${i} is at ${x.offset}`);
      const { buffer, byteOffset } = x.buffer.bytes;
      return new DataView(buffer, byteOffset + x.offset).getInt32(0, true);
    });
    this.ran.push(name);
    return kernel.run(handles, { globalSize: listOf(groups), localSize: listOf(local), vals: values });
  }

  // ---- queues ----

  #queue(most: number): Id {
    const all: Commands[] = [];
    this.#queues.push(all);
    return this.runtime.add("MTLCommandQueue", {
      commandBuffer: () => {
        demand(all.length < most, `${most} command buffers are in flight: the thread would stop`);
        return this.#commands(all);
      },
    }).id;
  }
  #commands(queue: Commands[]): Id {
    const { runtime } = this;
    const begin = (kind: string, make: () => Id) => (): Id => {
      demand(made.state === "open", `${made.object.name}: ${kind} after commit`);
      demand(made.encoder === none, `${made.object.name}: ${kind} while ${made.encoder} is not ended`);
      made.encoder = kind;
      return make();
    };
    const object = runtime.add(
      "MTLCommandBuffer",
      {
        "setLabel:": (label) => void runtime.textOf(label),
        computeCommandEncoder: begin("computeCommandEncoder", () => this.#compute(made)),
        blitCommandEncoder: begin("blitCommandEncoder", () => this.#blit(made)),
        "encodeSignalEvent:value:": (event, value) => this.#signal(made, event, value),
        "encodeWaitForEvent:value:": (event, value) => this.#wait(made, event, value),
        commit: () => {
          demand(made.state === "open", `${object.name} was committed before`);
          demand(made.encoder === none, `${object.name}: commit while ${made.encoder} is not ended`);
          made.state = "committed";
          runtime.retain(object.id);
          queue.push(made);
        },
        waitUntilCompleted: () => {
          demand(made.state !== "open", `${object.name}: waiting for what was not committed`);
          this.drain(() => made.state === "done");
        },
        status: () => {
          if (made.state === "committed") this.#advance();
          return made.state === "done" ? (made.error === none ? 4 : 5) : made.state === "committed" ? 2 : 0;
        },
        error: () => (made.error === none ? 0n : runtime.autoreleased(this.#again(made.error))),
        GPUStartTime: () => made.start,
        GPUEndTime: () => made.start + 0.001,
      },
      () => made.error !== none && runtime.release(made.error.id),
    );
    const made: Commands = {
      ...{ object, steps: [], waits: [], held: [], indirect: [] },
      ...{ state: "open", encoder: none, error: none, start: 0 },
    };
    return runtime.autoreleased(object);
  }
  #again(object: FakeObject): FakeObject {
    this.runtime.retain(object.id);
    return object;
  }
  /** A command buffer keeps what it was given until it is done. */
  #hold(commands: Commands, id: Id): void {
    commands.held.push(this.runtime.retain(id));
  }
  #signal(commands: Commands, event: Id, value: number): undefined {
    const state = this.#events.get(this.runtime.of("MTLSharedEvent", event, "a signal").id);
    demand(commands.encoder === none, "a signal between encoders");
    commands.steps.push(() => {
      demand(state !== none && value > state.value, `the event is at ${state?.value}, signalled ${value}`);
      state.value = value;
      return true;
    });
  }
  #wait(commands: Commands, event: Id, value: number): undefined {
    const state = this.#events.get(this.runtime.of("MTLSharedEvent", event, "a wait").id);
    demand(commands.encoder === none && commands.steps.length === 0, "a wait before anything else");
    commands.waits.push(() => (state?.value ?? 0) >= value);
  }

  /** Executes one command buffer of each queue that can go; whether there was one. */
  #advance(): boolean {
    let moved = false;
    for (const queue of this.#queues) {
      const [first] = queue;
      if (first === undefined || !first.waits.every((isThere) => isThere())) continue;
      queue.shift();
      this.#execute(first);
      moved = true;
    }
    return moved;
  }
  #execute(commands: Commands): void {
    commands.start = this.#seconds += 0.001;
    for (const step of commands.steps) {
      if (step()) continue;
      commands.error = this.runtime.error(3, "Caused GPU Address Fault Error (0000000b)");
      break;
    }
    commands.state = "done";
    for (const i of commands.indirect) i.flights--;
    for (const id of commands.held) this.runtime.release(id);
    this.runtime.release(commands.object.id);
  }
  drain(done: () => boolean): void {
    while (!done()) demand(this.#advance() || done(), "a wait that nothing ends");
  }

  // ---- encoders ----

  #encoder(commands: Commands, type: string, methods: Methods): Id {
    let isEnded = false;
    const guarded = Object.entries(methods).map(([name, method]) => [
      name,
      (...args: never[]) => {
        demand(!isEnded, `${type} ${name} after endEncoding`);
        return (method as (...xs: never[]) => unknown)(...args);
      },
    ]);
    const object = this.runtime.add(
      type,
      {
        ...(Object.fromEntries(guarded) as Methods),
        endEncoding: () => {
          demand(!isEnded, `${type} was ended before`);
          isEnded = true;
          commands.encoder = none;
        },
      },
      () => demand(isEnded, `${object.name} is released and was not ended`),
    );
    return this.runtime.autoreleased(object);
  }
  #compute(commands: Commands): Id {
    const { runtime } = this;
    let pipeline: FakePipeline | undefined;
    const args: (Argument | undefined)[] = [];
    const resources = new Set<FakeBuffer>();
    const place = (i: number): void => demand(i < 31, `argument ${i} of 31`);
    return this.#encoder(commands, "MTLComputeCommandEncoder", {
      "setComputePipelineState:": (id) => {
        pipeline = this.pipelineAt(id);
        this.#hold(commands, id);
      },
      "setBuffer:offset:atIndex:": (id, offset, i) => {
        place(i);
        args[i] = { buffer: this.bufferAt(id, offset, "setBuffer"), offset };
        this.#hold(commands, id);
      },
      "setBytes:length:atIndex:": (bytes, length, i) => {
        place(i);
        demand(bytes instanceof Int32Array && length === 4, "setBytes: one int");
        args[i] = { value: bytes[0] as number };
      },
      "dispatchThreadgroups:threadsPerThreadgroup:": (groups, local) => {
        demand(pipeline !== none, "a dispatch without a pipeline");
        if (total(groups) === 0 && total(local) === 0) return;
        const [used, given] = [pipeline, [...args]];
        const { kernel } = used;
        demand(given.length === kernel.buffers + kernel.vals, `${kernel.name}: ${given.length} arguments`);
        commands.steps.push(() => this.launch(used, given, groups, local));
      },
      "useResources:count:usage:": (ids, count, usage) => {
        demand(ids instanceof BigUint64Array && ids.length === count && usage === 3, "useResources");
        for (const id of ids) resources.add(this.bufferAt(id, 0, "useResources"));
      },
      "executeCommandsInBuffer:withRange:": (id, range) => {
        const indirect = this.#indirects.get(runtime.of("MTLIndirectCommandBuffer", id, "execute").id);
        demand(indirect !== none, "execute: no indirect command buffer");
        this.#hold(commands, id);
        this.#executeIndirect(commands, indirect, range, resources);
      },
    });
  }
  #executeIndirect(
    commands: Commands,
    indirect: FakeIndirect,
    { location, length }: CommandRange,
    resources: ReadonlySet<FakeBuffer>,
  ): void {
    const all = indirect.range(location, length);
    for (const c of all)
      for (const b of c.memory()) {
        demand(resources.has(b), `${c.name}: ${b.object.name} is not named as a resource`);
      }
    indirect.flights++;
    commands.indirect.push(indirect);
    commands.steps.push(() => {
      // those between two barriers in any order
      let group: IndirectCommand[] = [];
      const flush = (): boolean => {
        const order = group.map((c) => ({ c, at: this.random(1000) })).sort((a, b) => a.at - b.at);
        group = [];
        return order.every(({ c }) => c.launch());
      };
      for (const c of all) {
        if (c.isAfter && !flush()) return false;
        group.push(c);
      }
      return flush();
    });
  }
  #blit(commands: Commands): Id {
    return this.#encoder(commands, "MTLBlitCommandEncoder", {
      "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:": (src, from, dest, to, size) => {
        demand(
          [from, to, size].every((n) => n % 4 === 0) && size > 0,
          `a blit of ${size} from ${from} to ${to}`,
        );
        const [source, target] = [this.bufferAt(src, from, "blit"), this.bufferAt(dest, to, "blit")];
        demand(from + size <= source.bytes.length, "a blit over the end of its source");
        demand(to + size <= target.bytes.length, "a blit over the end of its destination");
        this.#hold(commands, src);
        this.#hold(commands, dest);
        commands.steps.push(() => {
          target.bytes.set(source.bytes.subarray(from, from + size), to);
          return true;
        });
      },
    });
  }

  // ---- indirect command buffers ----

  readonly #indirectDescriptors = new Map<Id, { type: number; binds: number; inherits: boolean }>();
  #indirectDescriptor(): Id {
    const state = { type: 0, binds: 0, inherits: true };
    const object = this.runtime.add("MTLIndirectCommandBufferDescriptor", {
      "setCommandTypes:": (type) => {
        state.type = type;
      },
      "setInheritBuffers:": (on) => {
        state.inherits = on;
      },
      "setInheritPipelineState:": (on) => {
        demand(!on, "pipelines are not inherited");
      },
      "setMaxKernelBufferBindCount:": (binds) => {
        state.binds = binds;
      },
    });
    this.#indirectDescriptors.set(object.id, state);
    return object.id;
  }
  #indirectOf(descriptor: Id): { type: number; binds: number } {
    const { id } = this.runtime.of("MTLIndirectCommandBufferDescriptor", descriptor, "indirect commands");
    const found = this.#indirectDescriptors.get(id);
    demand(found !== none && !found.inherits, "buffers are not inherited");
    return found;
  }
}
