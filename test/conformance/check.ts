// Runs one sample on a device: the value, and where the file has them the gradients,
// computed together and compared.

import { DTypeError, Tensor } from "gradloom";
import { Call, type Result, Unset, Unsupported } from "./call.ts";
import { aligned } from "./gauge.ts";
import { handlerOf, REASONS } from "./registry.ts";
import {
  Decoder,
  isTensor,
  listOf,
  mismatch,
  type Raw,
  type RawTensor,
  type Sample,
  type Tolerance,
  toNumber,
  weight,
} from "./sample.ts";
import { tiesAt } from "./ties.ts";

export interface Verdict {
  readonly outcome: "passed" | "failed" | "unsupported";
  readonly why?: string;
}
export interface Checked {
  readonly value: Verdict;
  /** absent where the file has no gradients */
  readonly gradient?: Verdict;
}

const PASSED: Verdict = { outcome: "passed" };
/** Left out on purpose, or of a type that the device does not have. */
const isRefused = (e: unknown): boolean =>
  e instanceof Unsupported || (e instanceof DTypeError && /^\w+: \w+ has no float64;/.test(e.message));
const failed = (why: string): Verdict => ({ outcome: "failed", why });

/** Factorizations and products over many elements, where float32 loses digits in any order of summation. */
const LONG = /^(linalg\.|prod$|cumprod$|cdist$|matmul$|einsum$|tensordot$|.*mm$|nn\.functional\.conv)/;
const toleranceOf = (op: string): Tolerance => ({ relative: 1e-4, absolute: LONG.test(op) ? 1e-3 : 1e-5 });

export async function check(sample: Sample, device: string, place?: (t: Tensor) => Tensor): Promise<Checked> {
  const wanted = sample.grads === undefined ? {} : { gradient: undefined as Verdict | undefined };
  const both = (v: Verdict): Checked => ("gradient" in wanted ? { value: v, gradient: v } : { value: v });
  const handler = handlerOf(sample.op);
  if (handler === undefined) return both({ outcome: "unsupported", why: REASONS[sample.op] ?? "not mapped" });
  try {
    const decoder = new Decoder(device, place);
    const input = decoder.decode(sample.input);
    const args = sample.args.map((a) => decoder.decode(a));
    const kwargs = Object.fromEntries(Object.entries(sample.kwargs).map(([k, v]) => [k, decoder.decode(v)]));
    const result = await handler(new Call(input, args, kwargs, sample.variant));
    return await compare(sample, result, decoder.leaves);
  } catch (e) {
    const why = e instanceof Error ? e.message : String(e);
    return both(isRefused(e) ? { outcome: "unsupported", why } : failed(why));
  }
}

async function compare(sample: Sample, result: Result, leaves: readonly Tensor[]): Promise<Checked> {
  if (typeof result === "boolean") {
    return { value: result === sample.out ? PASSED : failed(`is ${result}, expected ${sample.out}`) };
  }
  if (result instanceof Unset) return { value: compareForm(result.tensor, sample.out) };
  const wants = (listOf(sample.out) ?? [sample.out]) as readonly Raw[];
  const outs = await aligned(sample, result instanceof Tensor ? [result] : result, wants);
  // the value stands on its own: a gradient that cannot be built is a failure of the gradient only
  const value = await guarded(() => compareValues(sample, outs, wants));
  if (sample.grads === undefined) return { value };
  return { value, gradient: await guarded(() => compareGradients(sample, outs, leaves)) };
}
function compareForm(t: Tensor, want: Raw): Verdict {
  const same = isTensor(want) && t.shape.join() === want.s.join() && sameType(t.dtype.name, want.t);
  return same ? PASSED : failed(`is ${t}, expected another shape or type`);
}
async function guarded(run: () => Promise<Verdict>): Promise<Verdict> {
  try {
    return await run();
  } catch (e) {
    const why = e instanceof Error ? e.message : String(e);
    return isRefused(e) ? { outcome: "unsupported", why } : failed(why);
  }
}

async function compareValues(
  sample: Sample,
  outs: readonly Tensor[],
  wants: readonly Raw[],
): Promise<Verdict> {
  if (outs.length !== wants.length) return failed(`${outs.length} results, expected ${wants.length}`);
  for (const [i, out] of outs.entries()) {
    const want = wants[i] as Raw;
    if (!isTensor(want)) {
      if (Number(await out.item()) === toNumber(want as number)) continue;
      return failed(`result ${i} is ${await out.item()}, expected ${String(want)}`);
    }
    if (out.shape.join() !== want.s.join())
      return failed(`result ${i} has shape [${out.shape}], expected [${want.s}]`);
    if (!sameType(out.dtype.name, want.t))
      return failed(`result ${i} is ${out.dtype.name}, expected ${want.t}`);
    const data = await out.data();
    const exact = !want.t.startsWith("float");
    const off = mismatch(data, want, exact, toleranceOf(sample.op));
    if (off === undefined || (exact && tiesAt(sample, data, want))) continue;
    return failed(`result ${i}: ${off}`);
  }
  return PASSED;
}
/** Our indices and counts are int32 where torch's are int64. */
const sameType = (ours: string, theirs: string): boolean =>
  ours === theirs || (ours === "int32" && theirs === "int64") || (ours === "int64" && theirs === "int32");

async function compareGradients(
  sample: Sample,
  outs: readonly Tensor[],
  leaves: readonly Tensor[],
): Promise<Verdict> {
  const floats = outs.filter((t) => t.dtype.isFloat && t.requiresGrad && t.size > 0);
  if (floats.length > 0) {
    const losses = floats.map((t) => {
      const w = Array.from({ length: t.size }, (_, i) => weight(i));
      const weights = new Tensor(w, { dtype: t.dtype, device: t.device });
      return t.mul(weights.reshape(t.shape)).sum();
    });
    losses.reduce((a, b) => a.add(b)).backward();
  }
  const grads = leaves.map((t) => t.grad);
  const made = grads.filter((g) => g !== undefined);
  if (made.length > 0) await Tensor.realize(...made);
  for (const [i, want] of (sample.grads as readonly (RawTensor | null)[]).entries()) {
    if (want === null) continue;
    const leaf = leaves[i];
    if (leaf === undefined)
      return failed(`the file has ${sample.grads?.length} gradients, we found ${leaves.length} leaves`);
    const got = grads[i] === undefined ? new Float32Array(leaf.size) : await (grads[i] as Tensor).data();
    const off = mismatch(got, want, false, toleranceOf(sample.op));
    if (off !== undefined) return failed(`gradient ${i}: ${off}`);
  }
  return PASSED;
}
