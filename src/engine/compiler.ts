// From an AST to the source of a kernel: chooses OptOps, lowers, renders, and knows kernels of the same
// structure. compile.ts keeps what comes out. A page loads this file, and with it all of codegen, with its
// first kernel that must be compiled (`#engine/compiler`).

import { isTuned, showSource } from "#engine/ondemand";
import {
  fastKernelSteps,
  fittingSteps,
  type Kernel,
  type KernelTemplate,
  kernelSteps,
  similarKernel,
} from "../codegen/kernel.ts";
import { type OptOp, showOpts } from "../codegen/opt/opts.ts";
import { isObserved } from "../codegen/pass.ts";
import type { Renderer, Source } from "../codegen/target.ts";
import { env } from "../env.ts";
import { getOrMake, runSync, type Step } from "../helpers.ts";
import { astStructure, type LazyOp } from "../schedule/lazyop.ts";

export { isObserved };

/** What is known of kernels of one structure. */
interface Structures {
  readonly lists: Map<string, readonly OptOp[]>;
  /** the kernel that was lowered last */
  readonly templates: Map<string, KernelTemplate>;
}
/** By what they depend on: layers, and steps of training, often differ in a constant only. */
const structures = new WeakMap<Renderer, Structures>();
/** A program whose shapes never repeat must not keep every list: the oldest goes. */
const MAX_LISTS = 4096;
/** A template holds the whole list of a kernel. */
const MAX_TEMPLATES = 256;

/** Sets an entry; the oldest goes where there would be more than `most`. */
function remember<V>(map: Map<string, V>, key: string, value: V, most: number): void {
  if (map.size >= most) map.delete(map.keys().next().value as string);
  map.set(key, value);
}

/** The kernel with the list that the heuristic chose for it, or for another of the same structure. */
export const optimized = (ast: readonly LazyOp[], renderer: Renderer, inPlace: boolean): Kernel =>
  runSync(optimizedSteps(ast, renderer, inPlace), "compile");
/** The same as a Step, which can pause between passes. */
export function* optimizedSteps(ast: readonly LazyOp[], renderer: Renderer, inPlace: boolean): Step<Kernel> {
  if (env.NOOPT) return yield* kernelSteps(ast, [], renderer);
  const { lists, templates } = getOrMake(
    structures,
    renderer,
    (): Structures => ({
      lists: new Map(),
      templates: new Map(),
    }),
  );
  const structure = astStructure(ast);
  const { constants } = structure;
  const key = `${isTuned()}|${env.ALLOW_TF32}|${inPlace}|${structure.key}`;
  const template = isObserved() ? undefined : templates.get(key);
  const same = template && similarKernel(template, constants);
  if (same !== undefined) return same;
  const list = lists.get(key);
  const again = list && (yield* fittingSteps(ast, list, renderer));
  const kernel = again ?? (yield* fastKernelSteps(ast, renderer, inPlace));
  if (again === undefined) remember(lists, key, Object.freeze(kernel.opts), MAX_LISTS);
  if (kernel.floats.free.size > 0) remember(templates, key, { kernel, constants }, MAX_TEMPLATES);
  return kernel;
}

export function render(renderer: Renderer, kernel: Kernel): Source {
  if (env.DEBUG >= 5) console.log(String(kernel.uops));
  const source = renderer.render(kernel.name, kernel.uops);
  if (env.DEBUG >= 4) {
    if (kernel.opts.length > 0) console.log(showOpts(kernel.opts));
    showSource(renderer, source, kernel);
  }
  return source;
}
