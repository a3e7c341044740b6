// Control flow, sequences and optionals. A graph within a node runs as often as the values say; what a
// condition needs is read on the host.

import { range } from "../../helpers.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { TYPES, typeOfCode } from "../elements.ts";
import { type Any, describe, OptionalValue, SequenceValue, TensorValue } from "../values.ts";
import { cut, sizeOf, sizes, typed } from "./common.ts";
import { type Call, flag, graph, int, ints, type OpTable, type Output, op, type, versions } from "./op.ts";

const isTrue = async (c: Call, i: number): Promise<boolean> => (await c.scalar(i)) !== 0;

const conditional = op({ then_branch: graph.required, else_branch: graph.required }, async (c) => {
  const branch = (await isTrue(c, 0)) ? c.attr.then_branch : c.attr.else_branch;
  return c.env.subgraph(branch, [], c);
});

/** Tensors of all iterations, one behind the other along a new dim. */
function stacked(c: Call, list: readonly (Any | undefined)[], axis = 0): TensorValue {
  const values = list.map((v) =>
    v instanceof TensorValue ? v : c.fail(`an iteration gives ${describe(v)}, expected a tensor`),
  );
  const [first] = values;
  if (first === undefined) return c.fail("internal: nothing to stack");
  const odd = values.find((v) => v.shape.join() !== first.shape.join());
  if (odd !== undefined)
    c.fail(`iterations give ${describe(first)} and ${describe(odd)}, which do not stack`);
  const tensors = values.map((v) => v.tensor);
  return typed(Tensor.stack(tensors, axis < 0 ? axis + first.shape.length + 1 : axis), first.type);
}

/** More iterations are taken to be a loop without an end. */
const MAX_ITERATIONS = 1_000_000;
const loop = op({ body: graph.required }, async (c) => {
  const { body } = c.attr;
  const most = c.has(0) ? await c.scalar(0) : Infinity;
  let goesOn = c.has(1) ? await isTrue(c, 1) : true;
  let carried = c.inputs.slice(2);
  const scanned: (Any | undefined)[][] = range(body.outputs.length - 1 - carried.length).map(() => []);
  for (let i = 0; i < most && goesOn; i++) {
    if (i >= MAX_ITERATIONS) c.fail(`it has not ended after ${MAX_ITERATIONS} iterations`);
    const [index, on] = [c.known(TYPES.int64, [], [BigInt(i)]), c.known(TYPES.bool, [], [1])];
    const [next, ...rest] = await c.env.subgraph(body, [index, on, ...carried], c);
    if (!(next instanceof TensorValue)) return c.fail("the body gives no condition");
    goesOn = Number((await c.env.read(next)).data[0]) !== 0;
    carried = rest.slice(0, carried.length);
    rest.slice(carried.length).forEach((value, k) => {
      scanned[k]?.push(value);
    });
  }
  const tails = scanned.map(
    (list, k): Output => (list.length > 0 ? stacked(c, list) : noIterations(c, k + 1 + carried.length)),
  );
  return [...carried, ...tails];
});
/** What a loop without iterations would have stacked, as far as the body says. */
function noIterations(
  c: Call<{ body: { outputInfo: readonly { type: unknown }[] } }>,
  output: number,
): TensorValue {
  const info = c.attr.body.outputInfo[output] as {
    type?: { tensor_type?: { elem_type: number; shape?: { dim: readonly { dim_value?: bigint }[] } } };
  };
  const tensor = info?.type?.tensor_type;
  const element = tensor === undefined ? TYPES.float : typeOfCode(tensor.elem_type, c.where);
  const shape = [0, ...(tensor?.shape?.dim.map((d) => Number(d.dim_value ?? 0n)) ?? [])];
  return typed(Tensor.zeros(shape, { dtype: element.dtype, ...c.on }), element);
}

const row = (x: Tensor, axis: number, start: number): Tensor =>
  cut(
    x,
    sizes(x).map((count, d) => (d === axis ? { start, step: 1, count: 1 } : { start: 0, step: 1, count })),
  ).reshape(sizes(x).toSpliced(axis, 1));

const SCAN = {
  body: graph.required,
  num_scan_inputs: int.required,
  scan_input_axes: ints(),
  scan_input_directions: ints(),
  scan_output_axes: ints(),
  scan_output_directions: ints(),
};
interface Scanning {
  readonly body: import("../plan.ts").Plan;
  readonly num_scan_inputs: number;
  readonly scan_input_axes?: readonly number[] | undefined;
  readonly scan_input_directions?: readonly number[] | undefined;
  readonly scan_output_axes?: readonly number[] | undefined;
  readonly scan_output_directions?: readonly number[] | undefined;
}
/**
 * States go from one iteration to the next; slices of the scanned inputs go in, and what comes out is
 * stacked.
 */
async function scan(c: Call<Scanning>, inputs: readonly Any[], length?: number): Promise<Any[]> {
  const { body, num_scan_inputs, ...a } = c.attr;
  const count = inputs.length - num_scan_inputs;
  let states: (Any | undefined)[] = inputs.slice(0, count);
  const scans = inputs
    .slice(count)
    .map((v) => (v instanceof TensorValue ? v : c.fail("a scanned input is not a tensor")));
  const axes = scans.map((v, i) => c.axis(a.scan_input_axes?.[i] ?? 0, v.shape.length));
  const n = length ?? scans[0]?.shape[axes[0] as number] ?? 0;
  const outs: (Any | undefined)[][] = range(body.outputs.length - count).map(() => []);
  for (let i = 0; i < n; i++) {
    const slices = scans.map((v, k) => {
      const axis = axes[k] as number;
      const at = a.scan_input_directions?.[k] === 1 ? sizeOf(v.tensor, axis) - 1 - i : i;
      return typed(row(v.tensor, axis, at), v.type).withSources(c.sources);
    });
    const results = await c.env.subgraph(body, [...states, ...slices], c);
    states = results.slice(0, count);
    results.slice(count).forEach((value, k) => {
      outs[k]?.push(value);
    });
  }
  const tails = outs.map((list, k) => {
    const inOrder = a.scan_output_directions?.[k] === 1 ? list.toReversed() : list;
    return list.length === 0 ? noIterations(c, k + count) : stacked(c, inOrder, a.scan_output_axes?.[k] ?? 0);
  });
  return [...(states as Any[]), ...tails];
}
/** Version 8 had a batch in front of everything, and perhaps a length for each. */
async function batchedScan(
  c: Call<{ body: Scanning["body"]; num_scan_inputs: number; directions: readonly number[] | undefined }>,
): Promise<Output[]> {
  const lengths = await c.maybeInts(0);
  const inputs = range(c.inputs.length - 1).map((i) => c.value(i + 1));
  const batch = inputs[0]?.shape[0] ?? 0;
  const { body, num_scan_inputs, directions } = c.attr;
  const results: Any[][] = [];
  for (let b = 0; b < batch; b++) {
    const own = inputs.map((v) => typed(row(v.tensor, 0, b), v.type).withSources(c.sources));
    const inner = c.withAttributes<Scanning>({ body, num_scan_inputs, scan_input_directions: directions });
    results.push(await scan(inner, own, lengths?.[b]));
  }
  return range(body.outputs.length).map((k) =>
    stacked(
      c,
      results.map((r) => r[k]),
    ),
  );
}

// ---- sequences ----

async function position(c: Call, i: number, length: number, limit: number): Promise<number> {
  const given = c.has(i) ? await c.scalar(i) : limit;
  const at = given < 0 ? given + length : given;
  if (!(at >= 0 && at <= limit)) c.fail(`position ${given} is outside of a sequence of ${length}`);
  return at;
}
const sequenceMap = op({ body: graph.required }, async (c) => {
  const { body } = c.attr;
  const first = c.sequence(0);
  const outs: Any[][] = body.outputs.map(() => []);
  for (const i of range(first.items.length)) {
    const own = c.inputs.map((v) => (v instanceof SequenceValue ? v.items[i] : v));
    const results = await c.env.subgraph(body, own, c);
    results.forEach((value, k) => {
      if (value !== undefined) outs[k]?.push(value);
    });
  }
  return outs.map((list) => new SequenceValue(list));
});
const concatFromSequence = op({ axis: int.required, new_axis: flag(false) }, (c) => {
  const items = c
    .sequence(0)
    .items.map((v) => (v instanceof TensorValue ? v : c.fail("an item is not a tensor")));
  const [first] = items;
  if (first === undefined) return c.fail("the sequence is empty");
  if (c.attr.new_axis) return stacked(c, items, c.attr.axis);
  return typed(
    Tensor.cat(
      items.map((v) => v.tensor),
      c.axis(c.attr.axis, first.shape.length),
    ),
    first.type,
  );
});

export const control: OpTable = {
  If: conditional,
  Loop: loop,
  Scan: versions(
    op({ body: graph.required, num_scan_inputs: int.required, directions: ints() }, batchedScan, 8),
    op(SCAN, (c) => scan(c, c.inputs as Any[]), 9),
  ),
  SequenceConstruct: op({}, (c) => new SequenceValue(c.inputs.map((_, i) => c.any(i)))),
  SequenceEmpty: op({ dtype: int(1) }, () => new SequenceValue([])),
  SequenceLength: op({}, (c) => c.known(TYPES.int64, [], [BigInt(c.sequence(0).items.length)])),
  SequenceAt: op({}, async (c) => {
    const { items } = c.sequence(0);
    return items[await position(c, 1, items.length, items.length - 1)];
  }),
  SequenceInsert: op({}, async (c) => {
    const { items } = c.sequence(0);
    return new SequenceValue(items.toSpliced(await position(c, 2, items.length, items.length), 0, c.any(1)));
  }),
  SequenceErase: op({}, async (c) => {
    const { items } = c.sequence(0);
    return new SequenceValue(items.toSpliced(await position(c, 1, items.length, items.length - 1), 1));
  }),
  SequenceMap: sequenceMap,
  ConcatFromSequence: concatFromSequence,
  Optional: op({ type: type() }, (c) => new OptionalValue(c.has(0) ? c.any(0) : undefined)),
  OptionalHasElement: op({}, (c) => {
    const [value] = c.inputs;
    const has = value !== undefined && !(value instanceof OptionalValue && value.value === undefined);
    return c.known(TYPES.bool, [], [has ? 1 : 0]);
  }),
  OptionalGetElement: op({}, (c) => {
    const value = c.any(0);
    if (!(value instanceof OptionalValue)) return value;
    return value.value ?? c.fail("the optional is empty");
  }),
};
