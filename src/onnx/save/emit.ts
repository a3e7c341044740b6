// The merged graph as a model in plain objects, which `write` makes bytes of. Each number is an
// initializer; a number that depends on an open dim is computed by a few nodes from the shape of the input.
// In: results by name, inputs, names of weights. Out: an OnnxGraph.

import { type DType, dtypes, type Value } from "../../dtype.ts";
import { prod, range } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { Device } from "../../runtime/registry.ts";
import { make } from "../../tensor/core.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { typeOfDType } from "../elements.ts";
import { OnnxError, quoted } from "../errors.ts";
import type { OnnxAttribute, OnnxGraph, OnnxNode, OnnxValueType } from "../write.ts";
import type { MergedNode } from "./merge.ts";
import type { SizeFormula } from "./sizes.ts";

const { int64 } = dtypes;

/** An open dim: its name, and the input and dim that have it. */
export interface OpenDim {
  readonly name: string;
  readonly input: string;
  readonly axis: number;
}
export interface EmitOptions {
  readonly inputs: readonly (readonly [name: string, node: MergedNode, dims: readonly (number | string)[]])[];
  readonly outputs: readonly (readonly [name: string, node: MergedNode])[];
  readonly open: readonly OpenDim[];
  readonly nameOf: (weight: LazyBuffer) => string | undefined;
}

/** Ops whose attributes are not those of the standard. */
const ARE_INPUTS: ReadonlySet<string> = new Set(["Input", "Parameter"]);

export function emitted(options: EmitOptions): { graph: OnnxGraph; opset: number } {
  return new ModelWriter(options).run();
}

class ModelWriter {
  readonly #options: EmitOptions;
  readonly #names = new Map<MergedNode, string>();
  readonly #taken = new Set<string>();
  readonly #weights: Record<string, Tensor> = {};
  readonly #constants = new Map<string, string>();
  readonly #nodes: OnnxNode[] = [];
  /** where nodes go: those of the graph, or of a body */
  #into: OnnxNode[] = this.#nodes;
  #opset = 21;
  #numbered = 0;
  #weightCount = 0;

  constructor(options: EmitOptions) {
    this.#options = options;
  }

  run(): { graph: OnnxGraph; opset: number } {
    const { inputs, outputs } = this.#options;
    for (const [name, node] of inputs) {
      this.#taken.add(name);
      this.#names.set(node, name);
    }
    for (const [name] of outputs) {
      if (this.#taken.has(name))
        throw new OnnxError(
          `save: an output and an input are both called ${quoted(name)}; expected other names: return { other: … }`,
        );
      this.#taken.add(name);
    }
    this.#emitAll(outputs.map(([, node]) => node));
    for (const [name, node] of outputs) this.#add("Identity", [this.#name(node)], {}, name);
    const graph: OnnxGraph = {
      name: "gradloom",
      inputs: Object.fromEntries(
        inputs.map(([name, node, dims]) => [name, { type: typeOf(node.dtype), dims }]),
      ),
      outputs: Object.fromEntries(outputs.map(([name, node]) => [name, this.#port(node)])),
      weights: this.#weights,
      nodes: withoutCopies(this.#nodes, new Set(outputs.map(([name]) => name))),
    };
    return { graph, opset: this.#opset };
  }
  #port({ dtype, shape, sizes }: MergedNode): OnnxValueType {
    const dims = shape.map((n, d) => {
      const formula = sizes[d];
      return formula === undefined ? n : this.#dimName(formula);
    });
    return { type: typeOf(dtype), dims };
  }
  #dimName({ terms }: SizeFormula): string | null {
    const [term] = terms;
    const isOne =
      terms.length === 1 && term?.factor[0] === 1 && term.factor[1] === 1 && term.dims.length === 1;
    return isOne ? (this.#options.open[term.dims[0] as number]?.name ?? null) : null;
  }

  #fresh(wanted: string): string {
    let name = wanted;
    for (let i = 1; this.#taken.has(name); i++) name = `${wanted}_${i}`;
    this.#taken.add(name);
    return name;
  }
  #name(node: MergedNode): string {
    return this.#names.get(node) as string;
  }
  #add(
    op: string,
    inputs: readonly string[],
    attributes: Readonly<Record<string, OnnxAttribute>> = {},
    output?: string,
  ): string {
    const name = output ?? this.#fresh(`${op.toLowerCase()}${this.#numbered++}`);
    const given = Object.keys(attributes).length === 0 ? {} : { attributes };
    this.#into.push({ op, inputs, outputs: [name], ...given });
    return name;
  }

  // ---- nodes ----

  #emitAll(roots: readonly MergedNode[]): void {
    for (const node of sorted(roots, this.#names)) this.#names.set(node, this.#one(node));
  }
  #one(node: MergedNode): string {
    const { op, inputs } = node;
    if (op === "Weight") return this.#weight(node);
    if (op === "Number") return this.#number(node);
    if (op === "Ints") return this.#ints(node, false);
    if (op === "Lattice") return this.#lattice(node);
    if (op === "Loop") return this.#loop(node);
    if (op === "Result")
      return this.#names.get(inputs[0] as MergedNode)?.split("\n")[Number(node.attributes.index)] ?? "";
    if (op === "BitCast") this.#opset = 26;
    const given = inputs.map((x, i) =>
      op === "Reshape" && i === 1 ? this.#ints(x, node.attributes.allowzero === undefined) : this.#name(x),
    );
    const attributes = op === "Cast" ? { to: typeOfDType(node.dtype).code } : node.attributes;
    return this.#add(op, given, attributes);
  }
  #weight({ weight, dtype, shape }: MergedNode): string {
    const base = weight as LazyBuffer;
    const given = this.#options.nameOf(base);
    const name = this.#fresh(given ?? `w${this.#weightCount++}`);
    // what only holds bytes is read by the default device, which can widen it
    const held = make(base);
    const there = base.dtype === dtype ? held : held.to(Device.DEFAULT).cast(dtype);
    this.#weights[name] = there.reshape([...shape]);
    return name;
  }
  #constant(values: readonly Value[], shape: readonly number[], dtype: DType): string {
    const key = `${dtype.name}[${shape.join()}]${values.map((v) => (Object.is(v, -0) ? "-0" : v)).join()}`;
    const known = this.#constants.get(key);
    if (known !== undefined) return known;
    const name = this.#fresh(`c${this.#constants.size}`);
    this.#constants.set(key, name);
    const data = dtype.isBig ? values.map(BigInt) : values.map(Number);
    this.#weights[name] = new Tensor(data as number[], { dtype }).reshape([...shape]);
    return name;
  }
  #number(node: MergedNode): string {
    const [formula] = node.formulas;
    if (formula === undefined) return this.#constant(node.values, [], node.dtype);
    const whole = this.#size(formula);
    const shaped = this.#add("Reshape", [whole, this.#constant([], [0], int64)]);
    const typed = this.#add("Cast", [shaped], { to: typeOfDType(node.dtype).code });
    return formula.isReciprocal ? this.#add("Reciprocal", [typed]) : typed;
  }

  // ---- sizes ----

  /** The value of a formula, as a list of one int64. */
  readonly #sizeNames = new Map<string, string>();
  #kept(key: string, make: () => string): string {
    const known = this.#sizeNames.get(key);
    if (known !== undefined) return known;
    // a body may read what is outside of it, not the reverse
    const into = this.#into;
    this.#into = this.#nodes;
    const made = make();
    this.#into = into;
    this.#sizeNames.set(key, made);
    return made;
  }
  #dim(d: number): string {
    const { input, axis } = this.#options.open[d] as OpenDim;
    return this.#kept(`dim${d}`, () => this.#add("Shape", [input], { start: axis, end: axis + 1 }));
  }
  #size(formula: SizeFormula): string {
    return this.#kept(JSON.stringify(formula.terms), () => {
      const parts = formula.terms.map(({ factor: [p, q], dims }) => {
        let x = dims
          .map((d) => this.#dim(d))
          .reduce<string | undefined>((a, b) => (a === undefined ? b : this.#add("Mul", [a, b])), undefined);
        if (x === undefined) return this.#constant([BigInt(p)], [1], int64);
        if (p !== 1) x = this.#add("Mul", [x, this.#constant([BigInt(p)], [1], int64)]);
        return q === 1 ? x : this.#add("Div", [x, this.#constant([BigInt(q)], [1], int64)]);
      });
      return parts.reduce((a, b) => this.#add("Add", [a, b]));
    });
  }
  #ints({ values, formulas, shape }: MergedNode, mayInfer: boolean): string {
    const open = formulas.flatMap((f, i) => (f === undefined ? [] : [i]));
    if (open.length === 0) return this.#constant(values, shape, int64);
    if (mayInfer && open.length === 1 && !values.includes(0))
      return this.#constant(
        values.map((v, i) => (i === open[0] ? -1 : v)),
        shape,
        int64,
      );
    const parts: string[] = [];
    let run: Value[] = [];
    const flush = (): void => {
      if (run.length > 0) parts.push(this.#constant(run, [run.length], int64));
      run = [];
    };
    for (const [i, v] of values.entries()) {
      const formula = formulas[i];
      if (formula === undefined) {
        run.push(v);
        continue;
      }
      flush();
      parts.push(this.#size(formula));
    }
    flush();
    return this.#kept(`list ${parts.join()}`, () =>
      parts.length === 1 ? (parts[0] as string) : this.#add("Concat", parts, { axis: 0 }),
    );
  }
  #lattice({ values, formulas, shape }: MergedNode): string {
    const n = shape.length;
    const numbers = values.map(Number);
    if (formulas.every((f) => f === undefined)) {
      const at = (flat: number): number => {
        let [rest, sum] = [flat, numbers[0] as number];
        for (let d = n - 1; d >= 0; rest = Math.floor(rest / (shape[d--] as number)))
          sum += (numbers[1 + d] as number) * (rest % (shape[d] as number));
        return sum;
      };
      return this.#constant(range(prod(shape)).map(at), shape, int64);
    }
    const value = (i: number): string => {
      const formula = formulas[i];
      return formula === undefined ? this.#constant([numbers[i] as number], [1], int64) : this.#size(formula);
    };
    const scalar = (name: string): string => this.#add("Reshape", [name, this.#constant([], [0], int64)]);
    const [zero, one] = [this.#constant([0], [], int64), this.#constant([1], [], int64)];
    return range(n).reduce((sum, d) => {
      const counts = this.#add("Range", [zero, scalar(value(1 + n + d)), one]);
      const scaled = this.#add("Mul", [counts, value(1 + d)]);
      const spread = range(n).map((k) => (k === d ? -1 : 1));
      return this.#add("Add", [sum, this.#add("Reshape", [scaled, this.#constant(spread, [n], int64)])]);
    }, value(0));
  }

  // ---- loops ----

  /** Outputs of a loop are named in one text, a line each. */
  #loop(node: MergedNode): string {
    const body = node.body as NonNullable<MergedNode["body"]>;
    const [iteration, ...carries] = body.parameters;
    const depends = dependents(body.results, new Set(body.parameters));
    // what does not depend on the step is computed once, outside
    this.#emitAll(sorted(body.results, this.#names).filter((x) => !depends.has(x) && !ARE_INPUTS.has(x.op)));
    const into = this.#into;
    const nodes: OnnxNode[] = [];
    this.#into = nodes;
    const before = new Map(this.#names);
    const step = this.#fresh("step");
    this.#names.set(iteration as MergedNode, step);
    for (const c of carries) this.#names.set(c, this.#fresh("carry"));
    const condition = this.#fresh("go");
    this.#emitAll(body.results);
    const goOn = this.#add("Identity", [condition]);
    const results = body.results.map((r) => this.#add("Identity", [this.#name(r)]));
    const graph: OnnxGraph = {
      inputs: Object.fromEntries([
        [step, { type: "int64", dims: [] }],
        [condition, { type: "bool", dims: [] }],
        ...carries.map((c) => [this.#name(c), this.#port(c)]),
      ]),
      outputs: Object.fromEntries([
        [goOn, { type: "bool", dims: [] }],
        ...body.results.map((r, i) => [results[i] as string, this.#port(r)]),
      ]),
      nodes,
    };
    this.#into = into;
    this.#names.clear();
    for (const [k, v] of before) this.#names.set(k, v);
    const [length, ...inits] = node.inputs.map((x) => this.#name(x));
    const outputs = results.map(() => this.#fresh(`loop${this.#numbered++}`));
    this.#into.push({
      op: "Loop",
      inputs: [length as string, "", ...inits],
      outputs,
      attributes: { body: graph },
    });
    return outputs.join("\n");
  }
}

const typeOf = (d: DType): string => typeOfDType(d).name;

/** All below that have no name yet, sources first; bodies of loops are left to the loop. */
function sorted(roots: readonly MergedNode[], named: ReadonlyMap<MergedNode, string>): MergedNode[] {
  const seen = new Set<MergedNode>();
  const order: MergedNode[] = [];
  const stack: (readonly [MergedNode, boolean])[] = [...roots].reverse().map((r) => [r, false] as const);
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const [node, isDone] = top;
    if (isDone) order.push(node);
    if (isDone || seen.has(node) || named.has(node)) continue;
    seen.add(node);
    stack.push([node, true]);
    // a shape that a Reshape can infer needs no nodes: it is made there
    const inputs = node.op === "Reshape" ? node.inputs.slice(0, 1) : node.inputs;
    for (let i = inputs.length - 1; i >= 0; i--) stack.push([inputs[i] as MergedNode, false]);
    if (node.body !== undefined) {
      const own = dependents(node.body.results, new Set(node.body.parameters));
      for (const free of freeOf(node.body.results, own)) stack.push([free, false]);
    }
  }
  return order;
}
/** The nodes below that are computed from these parameters. */
function dependents(roots: readonly MergedNode[], parameters: ReadonlySet<MergedNode>): Set<MergedNode> {
  const found = new Set<MergedNode>(parameters);
  for (const node of sortedPlain(roots)) {
    const below = [...node.inputs, ...(node.body?.results ?? [])];
    if (below.some((x) => found.has(x))) found.add(node);
  }
  return found;
}
function sortedPlain(roots: readonly MergedNode[]): MergedNode[] {
  const seen = new Set<MergedNode>();
  const order: MergedNode[] = [];
  const stack: (readonly [MergedNode, boolean])[] = roots.map((r) => [r, false] as const);
  for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
    const [node, isDone] = top;
    if (isDone) order.push(node);
    if (isDone || seen.has(node)) continue;
    seen.add(node);
    stack.push([node, true]);
    for (const s of [...node.inputs, ...(node.body?.results ?? [])]) stack.push([s, false]);
  }
  return order;
}
/** What a body reads from outside. */
function freeOf(roots: readonly MergedNode[], own: ReadonlySet<MergedNode>): MergedNode[] {
  const all = sortedPlain(roots);
  const read = new Set<MergedNode>();
  for (const node of all) {
    if (!own.has(node)) continue;
    const inputs = node.op === "Reshape" ? node.inputs.slice(0, 1) : node.inputs;
    for (const x of inputs) if (!own.has(x)) read.add(x);
  }
  for (const r of roots) if (!own.has(r)) read.add(r);
  return [...read];
}

/** A last Identity only renames: the node before it may have the name itself, where nothing else reads it. */
function withoutCopies(nodes: readonly OnnxNode[], outputs: ReadonlySet<string>): OnnxNode[] {
  const made = new Map<string, OnnxNode>(nodes.flatMap((n) => n.outputs.map((o) => [o, n] as const)));
  const renamed = new Map<string, string>();
  const dropped = new Set<OnnxNode>();
  for (const node of nodes) {
    const [from, to] = [node.inputs[0] as string, node.outputs[0] as string];
    if (
      node.op !== "Identity" ||
      !outputs.has(to) ||
      !made.has(from) ||
      outputs.has(from) ||
      renamed.has(from)
    )
      continue;
    renamed.set(from, to);
    dropped.add(node);
  }
  const name = (x: string): string => renamed.get(x) ?? x;
  const change = (n: OnnxNode): OnnxNode => ({
    ...n,
    inputs: n.inputs.map(name),
    outputs: n.outputs.map(name),
    ...(n.attributes === undefined ? {} : { attributes: renamedBodies(n.attributes) }),
  });
  const renamedBodies = (
    attributes: Readonly<Record<string, OnnxAttribute>>,
  ): Readonly<Record<string, OnnxAttribute>> =>
    Object.fromEntries(
      Object.entries(attributes).map(([key, a]) =>
        typeof a === "object" && "nodes" in a ? [key, { ...a, nodes: a.nodes.map(change) }] : [key, a],
      ),
    );
  return nodes.filter((n) => !dropped.has(n)).map(change);
}
