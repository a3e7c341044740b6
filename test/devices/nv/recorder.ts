// Writes down what a device hands to a GPU, real or mock: where memory lies, the words of each submission,
// and the QMDs that they send. Recorded on the H200 it is the golden that CI compares the
// encoder with (golden.test.ts).

import { parse } from "../../../src/devices/nv/commands/methods.ts";
import { qmdWords, readQmd } from "../../../src/devices/nv/commands/qmd.ts";
import type { NVChannel, NVGpu } from "../../../src/devices/nv/gpu.ts";
import type { MemoryBlock, MemoryKind } from "../../../src/runtime/hcq/pool.ts";

export interface Recording {
  readonly gpu: Pick<
    NVGpu,
    | "name"
    | "arch"
    | "classes"
    | "smCount"
    | "gpcs"
    | "tpcsPerGpc"
    | "smsPerTpc"
    | "maxWarpsPerSM"
    | "sharedWindow"
    | "localWindow"
  >;
  /** in order: what was asked for, and the address it got */
  readonly memory: (readonly [nbytes: number, kind: MemoryKind, va: number])[];
  readonly submissions: {
    readonly kind: "compute" | "copy";
    readonly at: number;
    /** eight digits each */
    readonly words: string;
    /** in the order in which they run: where each lies, and its words */
    readonly qmds: (readonly [va: number, words: string])[];
  }[];
}

const text = (words: Iterable<number>): string =>
  [...words].map((w) => (w >>> 0).toString(16).padStart(8, "0")).join(" ");

export function recorded(gpu: NVGpu): { gpu: NVGpu; recording: Recording } {
  const { name, arch, classes, smCount, gpcs, tpcsPerGpc, smsPerTpc, maxWarpsPerSM } = gpu;
  const { sharedWindow, localWindow } = gpu;
  const facts = { name, arch, classes, smCount, gpcs, tpcsPerGpc, smsPerTpc, maxWarpsPerSM };
  const recording: Recording = { gpu: { ...facts, sharedWindow, localWindow }, memory: [], submissions: [] };
  const visible: MemoryBlock[] = [];
  const words = (va: number, count: number): Uint32Array => {
    const m = visible.find((x) => va >= x.va && va + count * 4 <= x.va + x.size) as MemoryBlock;
    const bytes = m.bytes as Uint8Array;
    return new Uint32Array(bytes.buffer, bytes.byteOffset + va - m.va, count).slice();
  };
  const chainFrom = (first: number): (readonly [number, string])[] => {
    const found: (readonly [number, string])[] = [];
    for (let at: number | undefined = first; at !== undefined; ) {
      const data = words(at, qmdWords(arch));
      found.push([at, text(data)]);
      const qmd = readQmd(arch, data);
      const get = (field: string): number => qmd.get(field as never);
      at = get("DEPENDENT_QMD_ENABLE") === 0 ? undefined : get("DEPENDENT_QMD0_POINTER") * 256;
    }
    return found;
  };
  const wrapped: NVGpu = {
    ...recording.gpu,
    totalBytes: gpu.totalBytes,
    get compute() {
      return gpu.compute;
    },
    get copy() {
      return gpu.copy;
    },
    restart: () => gpu.restart(),
    alloc(nbytes, kind) {
      const memory = gpu.alloc(nbytes, kind);
      recording.memory.push([nbytes, kind, memory.va]);
      if (memory.bytes !== undefined) visible.push(memory);
      return memory;
    },
    free: (memory) => gpu.free(memory),
    submit(channel: NVChannel, va: number, dwords: number) {
      const stream = words(va, dwords);
      const sent = [...parse(stream)].filter((s) => s.name === "SEND_PCAS_A").map((s) => s.data * 256);
      const qmds = sent.flatMap(chainFrom);
      recording.submissions.push({ kind: channel.kind, at: va, words: text(stream), qmds });
      gpu.submit(channel, va, dwords);
    },
    time: () => gpu.time(),
    tick: gpu.tick,
    freeBytes: () => gpu.freeBytes(),
    close: () => gpu.close(),
  };
  return { gpu: wrapped, recording };
}
