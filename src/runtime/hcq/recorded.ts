// Queues that are built before a device is named: `new HWComputeQueue().wait(…).exec(…).submit(device)`.
// They keep the commands; each submission adds them to a new queue of the device that takes it. With a
// backend they are the queues of queue.ts. Only gradloom/device has them: devices themselves have a backend.

import { ArgumentError } from "../../errors.ts";
import type { HCQCompatCompiled } from "./device.ts";
import {
  type Command,
  type CommandArgs,
  type CommandName,
  type HWCommandQueue,
  HWComputeQueue,
  HWCopyQueue,
  type QueueBackend,
} from "./queue.ts";

const noDevice = (what: string): never => {
  throw new ArgumentError(
    `${what}: the queue was built without a device; begin with device.computeQueue() or device.copyQueue()`,
  );
};
/** Spells nothing: a command is its name and what it takes. */
const RECORDED: QueueBackend = {
  encode: () => [],
  bind: () => noDevice("bind"),
  submit: () => noDevice("submit"),
  // the device's queue has its own
  allocMarks: () => ({ start: { label: "start" }, end: { label: "end" } }),
  show: (queue) => queue.commands.map(({ name }) => name).join("\n"),
};

const ADD: { readonly [K in CommandName]: (queue: HWCommandQueue, args: CommandArgs[K]) => unknown } = {
  signal: (q, { signal, value }) => q.signal(signal, value),
  wait: (q, { signal, value }) => q.wait(signal, value),
  timestamp: (q, { signal }) => q.timestamp(signal),
  memoryBarrier: (q) => (q as HWComputeQueue).memoryBarrier(),
  exec: (q, { program, kernargs, globalSize, localSize }) =>
    (q as HWComputeQueue).exec(program, kernargs, globalSize, localSize),
  copy: (q, { dest, src, nbytes }) => (q as HWCopyQueue).copy(dest, src, nbytes),
};
/** A command of the device's own has no arguments that are known here. */
function replay<Q extends HWCommandQueue>(commands: readonly Command[], queue: Q): Q {
  for (const { name, args } of commands) {
    if (args === undefined) noDevice(name);
    (ADD[name as CommandName] as (queue: Q, args: Command["args"]) => unknown)(queue, args);
  }
  return queue;
}

/** A compute queue; without a backend, for whichever device it is submitted to. */
export class RecordedComputeQueue extends HWComputeQueue {
  static override readonly name: string = "HWComputeQueue";
  constructor(backend = RECORDED) {
    super(backend);
  }
  override submit(device: HCQCompatCompiled): this {
    if (this.backend !== RECORDED) return super.submit(device);
    const queue = replay(this.commands, device.computeQueue());
    queue.work = this.work;
    queue.submit(device);
    return this;
  }
}

/** A copy queue; without a backend, for whichever device it is submitted to. */
export class RecordedCopyQueue extends HWCopyQueue {
  static override readonly name: string = "HWCopyQueue";
  constructor(backend = RECORDED) {
    super(backend);
  }
  override submit(device: HCQCompatCompiled): this {
    if (this.backend !== RECORDED) return super.submit(device);
    replay(this.commands, device.copyQueue()).submit(device);
    return this;
  }
}
