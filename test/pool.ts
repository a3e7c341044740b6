// The processes that run the test files. A process of vitest's own may stop the whole run in two ways: it may
// block for ever, where no timer of its own can end it, or it may die of a signal while it is being stopped,
// and vitest waits for its answer. Here a file that takes too long is killed and named, and a dead process
// counts as stopped.

import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { ForksPoolWorker, type PoolOptions, type WorkerRequest } from "vitest/node";

const LIMIT = 600_000; // ms; the longest file takes a tenth of it on two cores

export class WatchedFork extends ForksPoolWorker {
  private dead = false;
  private watch: NodeJS.Timeout | undefined;
  private readonly limit: number;

  constructor(options: PoolOptions, limit = LIMIT) {
    super(options);
    this.limit = limit;
  }

  override async start(): Promise<void> {
    await super.start();
    this.on("exit", () => {
      this.dead = true;
      clearTimeout(this.watch);
      // vitest waits a minute for this answer
      this.process.emit("message", { type: "stopped", __vitest_worker_response__: true }, undefined);
    });
    this.on("message", (message: { type?: string } | null) => {
      if (message?.type === "testfileFinished") clearTimeout(this.watch);
    });
  }

  override send(message: WorkerRequest): void {
    if (message.type === "run") {
      const files = message.context.files.map((file) => file.filepath).join(", ");
      clearTimeout(this.watch);
      this.watch = setTimeout(() => this.kill(files), this.limit);
    }
    super.send(message);
  }

  override async stop(): Promise<void> {
    clearTimeout(this.watch);
    if (!this.dead) await super.stop();
  }

  private get process(): ChildProcess {
    return (this as unknown as { fork: ChildProcess }).fork; // private to vitest
  }

  private kill(files: string): void {
    const { pid } = this.process;
    console.error(`${files}: no end after ${this.limit / 1000} s, killed; ${state(pid)}`);
    process.kill(pid as number, "SIGKILL");
  }
}

// Whether a process waits or computes, where the system tells.
function state(pid: number | undefined): string {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/.*\) /, "").split(" ");
    return `state ${fields[0]}, ${Number(fields[11]) / 100} s of CPU`;
  } catch {
    return "its state is not known";
  }
}

export const watchedForks = {
  name: "watched-forks",
  createPoolWorker: (options: PoolOptions) => new WatchedFork(options),
};
