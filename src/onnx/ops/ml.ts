// The ops of ai.onnx.ml that are arithmetic on tables: labels, trees, scales. Classifiers that give maps and
// support vectors are not here.

import { dtypes, type Value } from "../../dtype.ts";
import { prod, range } from "../../helpers.ts";
import { TYPES } from "../elements.ts";
import { TensorValue } from "../values.ts";
import { bool, cast, hostTensor, sizeOf } from "./common.ts";
import {
  bigInt,
  bigInts,
  type Call,
  float,
  floats,
  int,
  ints,
  type OpTable,
  op,
  string,
  strings,
  tensor,
} from "./op.ts";

// ---- labels ----

interface Labels {
  readonly keys_floats: readonly number[] | undefined;
  readonly keys_int64s: readonly bigint[] | undefined;
  readonly keys_strings: readonly string[] | undefined;
  readonly keys_tensor: TensorValue | undefined;
  readonly values_floats: readonly number[] | undefined;
  readonly values_int64s: readonly bigint[] | undefined;
  readonly values_strings: readonly string[] | undefined;
  readonly values_tensor: TensorValue | undefined;
  readonly default_float: number;
  readonly default_int64: bigint;
  readonly default_string: string;
  readonly default_tensor: TensorValue | undefined;
}
const listOf = (t: TensorValue | undefined): ArrayLike<Value | string> | undefined =>
  t === undefined ? undefined : t.isText ? t.texts : t.host.data;
async function encode(c: Call<Labels>): Promise<TensorValue> {
  const a = c.attr;
  const keys = listOf(a.keys_tensor) ?? a.keys_strings ?? a.keys_int64s ?? a.keys_floats;
  const values = listOf(a.values_tensor) ?? a.values_strings ?? a.values_int64s ?? a.values_floats;
  if (keys === undefined || values === undefined) return c.fail("it has no keys or no values");
  // NaN is a key like others
  const table = new Map(Array.from(keys, (key, i) => [String(key), values[i] as Value | string]));
  const x = c.value(0);
  const given: ArrayLike<Value | string> = x.isText ? x.texts : (await c.host(0)).data;
  const fallback =
    a.values_tensor !== undefined
      ? (listOf(a.default_tensor)?.[0] ??
        (a.values_tensor.isText ? "_Unused" : a.values_tensor.type.dtype.isBig ? -1n : 0))
      : a.values_strings !== undefined
        ? a.default_string
        : a.values_int64s !== undefined
          ? a.default_int64
          : a.default_float;
  const data = Array.from(given, (v) => table.get(String(v)) ?? fallback);
  if (typeof fallback === "string")
    return TensorValue.ofTexts({ shape: x.shape, data: data as string[] }, c.sources);
  const type = a.values_tensor?.type ?? (a.values_int64s !== undefined ? TYPES.int64 : TYPES.float);
  return c.known(type, x.shape, data as Value[]);
}
const LABELS = {
  keys_floats: floats(),
  keys_int64s: bigInts(),
  keys_strings: strings(),
  keys_tensor: tensor(),
  values_floats: floats(),
  values_int64s: bigInts(),
  values_strings: strings(),
  values_tensor: tensor(),
  default_float: float(-0),
  default_int64: bigInt(-1n),
  default_string: string("_Unused"),
  default_tensor: tensor(),
};

// ---- trees ----

interface Trees {
  readonly aggregate_function: number;
  readonly leaf_targetids: readonly number[];
  readonly leaf_weights: TensorValue;
  readonly membership_values: TensorValue | undefined;
  readonly n_targets: number;
  readonly nodes_falseleafs: readonly number[];
  readonly nodes_falsenodeids: readonly number[];
  readonly nodes_featureids: readonly number[];
  readonly nodes_hitrates: TensorValue | undefined;
  readonly nodes_missing_value_tracks_true: readonly number[] | undefined;
  readonly nodes_modes: TensorValue;
  readonly nodes_splits: TensorValue;
  readonly nodes_trueleafs: readonly number[];
  readonly nodes_truenodeids: readonly number[];
  readonly post_transform: number;
  readonly tree_roots: readonly number[];
}
/** What a node asks of a feature, by its mode; the last one looks into a set. */
const TESTS: readonly ((x: number, split: number) => boolean)[] = [
  (x, s) => x <= s,
  (x, s) => x < s,
  (x, s) => x >= s,
  (x, s) => x > s,
  (x, s) => x === s,
  (x, s) => x !== s,
];
const MEMBER = 6;

/** The sets of the nodes that test membership, which stand one behind the other with NaN between. */
function setsOf(modes: readonly number[], values: readonly number[]): Map<number, ReadonlySet<number>> {
  const lists: number[][] = [[]];
  for (const v of values) {
    if (Number.isNaN(v)) lists.push([]);
    else lists.at(-1)?.push(v);
  }
  const nodes = modes.flatMap((m, i) => (m === MEMBER ? [i] : []));
  return new Map(nodes.map((node, i) => [node, new Set(lists[i])]));
}

/** The leaf that a row ends in. */
function leafOf(
  c: Call,
  a: Trees,
  root: number,
  modes: readonly number[],
  sets: ReadonlyMap<number, ReadonlySet<number>>,
  feature: (i: number) => number,
): number {
  let node = root;
  for (let steps = 0; steps <= modes.length; steps++) {
    const mode = modes[node];
    if (mode === undefined) return c.fail(`node ${node} of a tree is not there`);
    const x = feature(a.nodes_featureids[node] as number);
    const isMissing = Number.isNaN(x) && a.nodes_missing_value_tracks_true?.[node] === 1;
    const test = TESTS[mode];
    const split = Number(a.nodes_splits.host.data[node]);
    const isTrue =
      isMissing || (mode === MEMBER ? sets.get(node)?.has(x) === true : test?.(x, split) === true);
    const next = (isTrue ? a.nodes_truenodeids : a.nodes_falsenodeids)[node] as number;
    if ((isTrue ? a.nodes_trueleafs : a.nodes_falseleafs)[node] === 1) return next;
    node = next;
  }
  return c.fail("a tree goes in a circle");
}

const logistic = (x: number): number => 1 / (1 + Math.exp(-x));
function softmax(row: number[], keepsZero: boolean): number[] {
  const top = Math.max(...row);
  const e = row.map((x) => (keepsZero && Math.abs(x) < 1e-7 ? 0 : Math.exp(x - top)));
  const sum = e.reduce((a, b) => a + b, 0);
  return e.map((x) => x / sum);
}
const POST: readonly ((row: number[]) => number[])[] = [
  (row) => row,
  (row) => softmax(row, false),
  (row) => row.map(logistic),
  (row) => softmax(row, true),
];

async function trees(c: Call<Trees>): Promise<TensorValue> {
  const a = c.attr;
  const { data, shape, type } = await c.host(0);
  const [rows, features] = shape as [number, number];
  const modes = Array.from(a.nodes_modes.host.data, Number);
  const sets = setsOf(modes, Array.from(a.membership_values?.host.data ?? [], Number));
  const post = POST[a.post_transform] ?? c.unsupported(`post_transform ${a.post_transform}`);
  const out = range(rows).flatMap((r) => {
    const found: number[][] = range(a.n_targets).map(() => []);
    for (const root of a.tree_roots) {
      const leaf = leafOf(c, a, root, modes, sets, (i) => Number(data[r * features + i]));
      found[a.leaf_targetids[leaf] as number]?.push(Number(a.leaf_weights.host.data[leaf]));
    }
    const sum = (list: number[]): number => list.reduce((x, y) => x + y, 0);
    const totals = found.map((list) => {
      if (a.aggregate_function === 0) return sum(list) / a.tree_roots.length;
      if (a.aggregate_function === 1) return sum(list);
      if (list.length === 0) return 0;
      return a.aggregate_function === 2 ? Math.min(...list) : Math.max(...list);
    });
    return post(totals);
  });
  return c.known(type, [rows, a.n_targets], out);
}
const TREES = {
  aggregate_function: int(1),
  leaf_targetids: ints.required,
  leaf_weights: tensor.required,
  membership_values: tensor(),
  n_targets: int(1),
  nodes_falseleafs: ints.required,
  nodes_falsenodeids: ints.required,
  nodes_featureids: ints.required,
  nodes_hitrates: tensor(),
  nodes_missing_value_tracks_true: ints(),
  nodes_modes: tensor.required,
  nodes_splits: tensor.required,
  nodes_trueleafs: ints.required,
  nodes_truenodeids: ints.required,
  post_transform: int(0),
  tree_roots: ints.required,
};

// ---- tables ----

const extractor = op({}, async (c) => {
  const x = c.t(0);
  const at = await c.ints(1);
  const rows = x.ndim === 1 ? 1 : prod(c.shape(0).slice(0, -1));
  const picked = x.indexSelect(x.ndim - 1, hostTensor(c, at, [at.length], dtypes.int32));
  return x.ndim === 1 ? picked.reshape([rows, at.length]) : picked;
});
const scaler = op({ offset: floats([0]), scale: floats([1]) }, (c) => {
  const list = (xs: readonly number[]) => hostTensor(c, xs, [xs.length], dtypes.float32);
  return cast(c.t(0), dtypes.float32).sub(list(c.attr.offset)).mul(list(c.attr.scale));
});
const normalizer = op({ norm: string("MAX") }, (c) => {
  const x = cast(c.t(0), dtypes.float32);
  const { norm } = c.attr;
  const size =
    norm === "MAX"
      ? x.abs().max(-1, true)
      : norm === "L1"
        ? x.abs().sum(-1, true)
        : x.square().sum(-1, true).sqrt();
  if (!["MAX", "L1", "L2"].includes(norm)) c.fail(`norm is "${norm}", expected MAX, L1 or L2`);
  return x.div(size.eq(0).where(size.onesLike(), size));
});
const regressor = op(
  { coefficients: floats.required, intercepts: floats(), targets: int(1), post_transform: string("NONE") },
  (c) => {
    const { coefficients, intercepts, targets, post_transform } = c.attr;
    if (post_transform !== "NONE") c.unsupported(`post_transform ${post_transform}`);
    const w = hostTensor(c, coefficients, [targets, coefficients.length / targets], dtypes.float32);
    const y = cast(c.t(0), dtypes.float32).matmul(w.transpose(0, 1));
    return intercepts === undefined ? y : y.add(hostTensor(c, intercepts, [targets], dtypes.float32));
  },
);
const imputer = op(
  {
    imputed_value_floats: floats(),
    imputed_value_int64s: ints(),
    replaced_value_float: float(0),
    replaced_value_int64: int(0),
  },
  (c) => {
    const a = c.attr;
    const x = c.t(0);
    const replaced = x.dtype.isFloat ? a.replaced_value_float : a.replaced_value_int64;
    const values =
      (x.dtype.isFloat ? a.imputed_value_floats : a.imputed_value_int64s) ?? c.fail("it has no values");
    const isMissing = Number.isNaN(replaced) ? x.ne(x) : x.eq(replaced);
    return bool(isMissing).where(hostTensor(c, values, [values.length], x.dtype), x);
  },
);
const vectorizer = op({ inputdimensions: ints() }, (c) => {
  const [first, ...rest] = c.all().map((x) => cast(x.reshape([sizeOf(x, 0), -1]), dtypes.float32));
  return first === undefined ? c.fail("it has no inputs") : first.cat(rest, 1);
});

export const ml: OpTable = {
  "ai.onnx.ml.LabelEncoder": op(LABELS, encode, 2),
  "ai.onnx.ml.TreeEnsemble": op(TREES, trees, 5),
  "ai.onnx.ml.ArrayFeatureExtractor": extractor,
  "ai.onnx.ml.Binarizer": op({ threshold: float(0) }, (c) => cast(c.t(0).gt(c.attr.threshold), c.t(0).dtype)),
  "ai.onnx.ml.Scaler": scaler,
  "ai.onnx.ml.Normalizer": normalizer,
  "ai.onnx.ml.LinearRegressor": regressor,
  "ai.onnx.ml.Imputer": imputer,
  "ai.onnx.ml.FeatureVectorizer": vectorizer,
};
