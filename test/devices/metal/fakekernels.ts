// The compiler of the fake runtime: what a text does is known from the uops that it was rendered from, which
// the JS device interprets. Comes with the renderer that remembers them.

import { GRID_OPS } from "../../../src/codegen/opt/cpuops.ts";
import { cpuLists } from "../../../src/codegen/opt/heuristics/cpu.ts";
import { type Renderer, type Source, sourceOf } from "../../../src/codegen/target.ts";
import { open } from "../../../src/devices/js.ts";
import { type MetalFacts, metalFor } from "../../../src/render/metal.ts";
import type { Launch, Program } from "../../../src/runtime/device.ts";
import type { UOpGraph } from "../../../src/uop/list.ts";

export interface FakeKernel {
  readonly name: string;
  readonly buffers: number;
  readonly vals: number;
  /** threads of a threadgroup that its text asks room for */
  readonly threads: number;
  /** false: it fails as one that reads where nothing is */
  run(handles: readonly Uint8Array[], launch: Launch): boolean;
}

const NAME = /\bkernel void (\w+)\(/;
const nameless = (text: string): string => text.replace(NAME, "kernel void kernel(");

export class FakeKernels {
  readonly #known = new Map<string, UOpGraph | "fails">();
  readonly #plain: boolean;

  /** `plain`: a threadgroup is one thread that computes an element by itself, which JS executes fastest. */
  constructor(plain = false) {
    this.#plain = plain;
  }
  readonly rendererFor = (facts: MetalFacts): Renderer<string> => {
    const renderer = metalFor(facts);
    return {
      ...renderer,
      ...(this.#plain ? { gpu: undefined, optOps: GRID_OPS, heuristic: cpuLists } : {}),
      render: (name, uops) => {
        const source = renderer.render(name, uops);
        this.#known.set(nameless(source.code), uops);
        return source;
      },
    };
  };
  /** The text of a kernel that fails when it runs. */
  failing(name: string): Source<string> {
    const text = `kernel void ${name}(device int* data0) { *(data0+(1<<30)) = 1; }`;
    this.#known.set(nameless(text), "fails");
    return sourceOf(text, { buffers: 1 });
  }

  ofText(text: string): FakeKernel | undefined {
    const does = this.#known.get(nameless(text));
    const name = NAME.exec(text)?.[1];
    if (does === undefined || name === undefined) return undefined;
    const threads = Number(/max_total_threads_per_threadgroup\((\d+)\)/.exec(text)?.[1] ?? 1024);
    if (does === "fails") return { name, threads, buffers: 1, vals: 0, run: () => false };
    const program = open("JS").compile(name, sourceOf(does)) as Program<Uint8Array>;
    const [buffers, vals] = [does.globals().length, does.vars().length];
    const run = (handles: readonly Uint8Array[], launch: Launch): boolean => {
      program.run(handles, launch, false);
      return true;
    };
    return { name, threads, buffers, vals, run };
  }
}
