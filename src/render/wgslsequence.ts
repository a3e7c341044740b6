// Several small kernels as one WGSL module: one workgroup does them one after the other, each a function,
// with a barrier between them. In go their lists of UOps and which bindings their buffers are, out comes the
// text. Who may be one of them is for the caller to know (devices/webgpu/sequence.ts).

import { prod } from "../helpers.ts";
import { kernelIdentifier } from "../names.ts";
import type { UOpGraph } from "../uop/list.ts";
import { bindingText, WGSLText } from "./wgsl.ts";
import { helperTexts } from "./wgslhelpers.ts";
import { elementType, joinedLayout, type Layout, layoutsOf } from "./wgslmemory.ts";

/** A kernel of the sequence. */
export interface SequencePart {
  readonly uops: UOpGraph;
  /** for each of its buffers: the binding that it is */
  readonly bindings: readonly number[];
  /** its workgroups in each dimension, and the threads of each: all are threads of the one workgroup */
  readonly grid: readonly number[];
  readonly local: readonly number[];
  /** its threads wait for each other: all of the workgroup come along, though only its own threads store */
  readonly isCooperative: boolean;
}

/** `written`: for each binding, whether any part writes it. `threads`: of the workgroup. */
export function sequenceToWGSL(
  name: string,
  parts: readonly SequencePart[],
  written: readonly boolean[],
  threads: number,
): string {
  const found = parts.map((part) => accessed(part));
  const layouts = written.map((_, b) => joinedLayout(found.flatMap((p) => p.layouts.get(b) ?? [])));
  // a kernel that comes again with the same buffers is the same function
  const functions = new Map<string, { readonly text: WGSLText; readonly name: string }>();
  const numbers = new Map<UOpGraph, number>();
  const functionOf = (part: SequencePart): string => {
    const { uops, bindings } = part;
    const number = numbers.get(uops) ?? numbers.size;
    numbers.set(uops, number);
    const key = [number, ...bindings].join();
    const known = functions.get(key);
    if (known !== undefined) return known.name;
    const own = `k${functions.size}`;
    const names = bindings.map((b) => `b${b}`);
    const module = {
      names,
      layouts: bindings.map((b) => layouts[b] as Layout),
      prefix: `${own}_`,
      ...(comesAlong(part, threads) && { guard: GUARD }),
    };
    functions.set(key, { text: new WGSLText([...uops], undefined, undefined, module), name: own });
    return own;
  };
  const calls = parts.map((part) => callOf(functionOf(part), part, threads));
  const all = [...functions.values()];
  const locals = all.flatMap(({ text }) => text.locals);
  const barrier = locals.length > 0 ? "  storageBarrier();\n  workgroupBarrier();" : "  storageBarrier();";
  const elements = layouts.map((layout, b) => {
    const base = found.map((p) => p.types.get(b)).find((d) => d !== undefined);
    return base === undefined ? "u32" : elementType(base, layout);
  });
  return [
    ...(all.some(({ text }) => text.usesHalf) ? ["enable f16;"] : []),
    ...(all.some(({ text }) => text.usesSubgroups) ? ["enable subgroups;"] : []),
    ...written.map((isWritten, b) => bindingText(b, `b${b}`, elements[b] as string, isWritten)),
    ...locals,
    ...helperTexts(new Set(all.flatMap(({ text }) => [...text.helpers]))),
    ...all.map(
      ({ text, name: own }) =>
        `fn ${own}(gid: vec3<u32>, lid: vec3<u32>, ${GUARD}: bool) {\n${text.lines.join("\n")}\n}`,
    ),
    `@compute @workgroup_size(${threads}) fn ${kernelIdentifier(name)}(@builtin(local_invocation_index) t: u32) {`,
    calls.join(`\n${barrier}\n`),
    "}",
  ].join("\n");
}

/** How a kernel reaches its bindings, and the types of their elements. */
function accessed({ uops, bindings }: SequencePart) {
  const buffers = [...uops]
    .filter((u) => u.op === "DEFINE_GLOBAL")
    .toSorted((a, b) => a.position - b.position);
  const first = (b: number | undefined) => buffers[bindings.indexOf(b ?? -1)];
  const found = layoutsOf([...uops], (u) => first(bindings[buffers.indexOf(u)]) ?? u);
  const layouts = new Map<number, Layout>();
  buffers.forEach((u, i) => {
    const layout = found.get(first(bindings[i]) ?? u);
    if (layout !== undefined) layouts.set(bindings[i] as number, layout);
  });
  return { layouts, types: new Map(buffers.map((u, i) => [bindings[i] as number, u.dtype.base])) };
}

/** `index` as three numbers, of which the first runs fastest. */
const unflattened = (index: string, [x = 1, y = 1, z = 1]: readonly number[]): string => {
  if (x * y * z === 1) return "vec3<u32>(0u)";
  if (y * z === 1) return `vec3<u32>(${index}, 0u, 0u)`;
  return `vec3<u32>((${index}) % ${x}u, (${index}) / ${x}u % ${y}u, (${index}) / ${x * y}u)`;
};
/** Barriers and exchanges of values want all threads of the workgroup. */
const comesAlong = ({ isCooperative, local }: SequencePart, threads: number): boolean =>
  isCooperative && prod(local) < threads;
/** Whether a thread of the workgroup is one of the kernel's. */
const GUARD = "own";

function callOf(name: string, part: SequencePart, threads: number): string {
  const { grid, local } = part;
  const [groups, each] = [prod(grid), prod(local)];
  const group = unflattened(`t / ${each}u`, grid);
  const thread = unflattened(groups * each === threads && groups === 1 ? "t" : `t % ${each}u`, local);
  const own = `t < ${groups * each}u`;
  if (groups * each === threads) return `  ${name}(${group}, ${thread}, true);`;
  if (comesAlong(part, threads)) return `  ${name}(${group}, ${thread}, ${own});`;
  return `  if (${own}) { ${name}(${group}, ${thread}, true); }`;
}
