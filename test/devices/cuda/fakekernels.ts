// NVRTC for the fake driver: its "machine code" is the kernel's text, and what the text does is known from
// the uops that it was rendered from, which the JS device interprets. Comes with
// the renderer that remembers them.

import { GRID_OPS } from "../../../src/codegen/opt/cpuops.ts";
import { cpuLists } from "../../../src/codegen/opt/heuristics/cpu.ts";
import { type Renderer, type Source, sourceOf } from "../../../src/codegen/target.ts";
import type { Compilation, Nvrtc } from "../../../src/devices/cuda/nvrtc.ts";
import { open } from "../../../src/devices/js.ts";
import { CUDARenderer } from "../../../src/render/languages.ts";
import type { Program } from "../../../src/runtime/device.ts";
import type { UOpGraph } from "../../../src/uop/list.ts";
import { demand } from "./fake.ts";

export interface FakeKernel {
  readonly name: string;
  /** bytes of shared memory that a launch has to give */
  readonly shared: number;
  /** false: the kernel fails as one that writes where it may not */
  run(
    params: Uint8Array,
    grid: readonly number[],
    block: readonly number[],
    bytesAt: (address: number) => Uint8Array,
  ): boolean;
}

const HEAD = /\b([Er]_\w+)(?=\()/;
const nameless = (text: string): string => text.replace(HEAD, "kernel");

export class FakeKernels {
  readonly #known = new Map<
    string,
    { readonly does: UOpGraph | "fails" | "idles"; readonly shared: number }
  >();

  /** The CUDA renderer, which also keeps what each text was made of. */
  readonly renderer: Renderer<string>;

  /** `plain`: an item of a workgroup computes an element by itself, which JS executes fastest. */
  constructor(plain = false) {
    this.renderer = {
      ...CUDARenderer,
      ...(plain ? { gpu: undefined, optOps: GRID_OPS, heuristic: cpuLists } : {}),
      render: (name, uops) => {
        const source = CUDARenderer.render(name, uops);
        this.#known.set(nameless(source.code), { does: uops, shared: source.dynamicShared });
        return source;
      },
    };
  }

  readonly nvrtc: Nvrtc = {
    version: "fake",
    archs: [80, 90],
    compile: (source, options, kind): Compilation => {
      demand(
        options.some((o) => o.startsWith("--gpu-architecture=")),
        "nvrtc: no architecture",
      );
      if (!this.#known.has(nameless(source)))
        return { ok: false, log: "kernel.cu(1): error: nobody rendered this" };
      return { ok: true, code: new TextEncoder().encode(`${kind}\n${source}`) };
    },
  };

  /** The text of a kernel that fails when it runs. */
  failing(name: string): Source<string> {
    const text = `extern "C" __global__ void ${name}(int* data0) { data0[1 << 30] = 1; }`;
    this.#known.set(nameless(text), { does: "fails", shared: 0 });
    return sourceOf(text, { buffers: 1 });
  }

  /** The text of a kernel that takes so much shared memory and does nothing. */
  idle(name: string, shared: number): Source<string> {
    const memory = "extern __shared__ unsigned char shared_memory[];";
    const text = `extern "C" __global__ void ${name}(int* data0) { ${memory} }`;
    this.#known.set(nameless(text), { does: "idles", shared });
    return sourceOf(text, { buffers: 1, dynamicShared: shared });
  }

  ofImage(image: Uint8Array): FakeKernel | undefined {
    const text = new TextDecoder().decode(image).replace(/^(cubin|ptx)\n/, "");
    const known = this.#known.get(nameless(text));
    const name = text.match(HEAD)?.[1];
    if (known === undefined || name === undefined) return undefined;
    const { does, shared } = known;
    if (typeof does === "string") return { name, shared, run: () => does === "idles" };
    return { ...interpreted(name, does), shared };
  }
}

function interpreted(name: string, uops: UOpGraph): Omit<FakeKernel, "shared"> {
  const program = open("JS").compile(name, sourceOf(uops)) as Program<Uint8Array>;
  const buffers = uops.globals().length;
  const vars = uops.vars().length;
  return {
    name,
    run(params, grid, block, bytesAt) {
      demand(
        params.byteLength === 8 * buffers + 4 * vars,
        `${name}: ${params.byteLength} bytes of arguments`,
      );
      const view = new DataView(params.buffer, params.byteOffset, params.byteLength);
      const handles = Array.from({ length: buffers }, (_, i) =>
        bytesAt(Number(view.getBigUint64(8 * i, true))),
      );
      const vals = Array.from({ length: vars }, (_, i) => view.getInt32(8 * buffers + 4 * i, true));
      program.run(handles, { globalSize: grid, localSize: block, vals }, false);
      return true;
    },
  };
}
