// A graph of the file, made ready to run: names resolved, nodes in an order in which each finds its inputs,
// attributes decoded, ops looked up by version, functions of the model written out. What cannot run is
// refused here, with the node's name. In: a ModelProto. Out: a Plan, with a Plan for each graph within a
// node.

import { OnnxError, quoted } from "./errors.ts";
import type {
  AttributeProto,
  FunctionProto,
  GraphProto,
  ModelProto,
  NodeProto,
  ValueInfoProto,
} from "./model.ts";
import { type AttributeReader, type Op, type OpTable, readAttributes } from "./ops/op.ts";
import { introducedIn } from "./opsets.ts";
import { denseOf, type TensorPlace, tensorValue, weightValue } from "./tensors.ts";
import type { TensorValue } from "./values.ts";

/** Nodes in all, functions written out: a few calls of functions that call functions make billions. */
const MAX_NODES = 1_000_000;
const MAX_CALLS = 64;
/** The newest version of each set of ops that is known here. */
const NEWEST: Readonly<Record<string, number>> = {
  "": 28,
  "ai.onnx.ml": 5,
  "ai.onnx.preview": 1,
  "ai.onnx.preview.training": 1,
  "com.microsoft": 1,
};

export interface PlannedNode {
  /** "Conv", or "com.microsoft.Gelu" */
  readonly op: string;
  readonly where: string;
  /** missing where the node calls a function of the model */
  readonly run: Op | undefined;
  readonly body: Plan | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** empty: this input is left out */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly opset: number;
  /** values that nothing needs after this node */
  readonly frees: readonly string[];
}
export interface Plan {
  readonly name: string;
  readonly nodes: readonly PlannedNode[];
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly constants: ReadonlyMap<string, TensorValue>;
  /** names of the graphs around it that it reads */
  readonly free: ReadonlySet<string>;
  readonly inputInfo: readonly ValueInfoProto[];
  readonly outputInfo: readonly ValueInfoProto[];
}

type Opsets = ReadonlyMap<string, number>;
type Bindings = ReadonlyMap<string, AttributeProto>;

const domainOf = (domain: string): string => (domain === "ai.onnx" ? "" : domain);
const opName = (domain: string, op: string): string => (domain === "" ? op : `${domain}.${op}`);

export function planModel(model: ModelProto, ops: OpTable, place: TensorPlace): Plan {
  if (model.graph === undefined) throw new OnnxError("the file has no graph: is it an ONNX model?");
  const planner = new GraphPlanner(model, ops, place);
  const plan = planner.graph(model.graph, opsetsOf(model.opset_import, "the model"), undefined);
  planner.refuseUnsupported();
  const [free] = plan.free;
  if (free !== undefined) {
    const reader = plan.nodes.find((n) => n.inputs.includes(free));
    throw new OnnxError(
      `${reader === undefined ? "the graph" : reader.where} reads ${quoted(free)}, which is not computed, not an ` +
        "input and not among the weights (missing?)",
      reader === undefined ? {} : { op: reader.op },
    );
  }
  return plan;
}

function opsetsOf(list: ModelProto["opset_import"], who: string): Opsets {
  const out = new Map<string, number>();
  for (const { domain, version } of list) {
    const name = domainOf(domain);
    const newest = NEWEST[name];
    if (newest !== undefined && version > newest) {
      throw new OnnxError(
        `${who} wants version ${version} of ${name === "" ? "the standard's ops" : name}; gradloom knows them up to ${newest}`,
        { isUnsupported: true },
      );
    }
    out.set(name, version);
  }
  return out;
}

class GraphPlanner {
  readonly #functions = new Map<string, FunctionProto>();
  readonly #ops: OpTable;
  readonly #place: TensorPlace;
  /** ops that are not there, and a node of each */
  readonly #unsupported = new Map<string, string>();
  #nodes = 0;
  #calls = 0;

  constructor(model: ModelProto, ops: OpTable, place: TensorPlace) {
    this.#ops = ops;
    this.#place = place;
    for (const f of model.functions)
      this.#functions.set(functionKey(domainOf(f.domain), f.name, f.overload), f);
  }

  refuseUnsupported(): void {
    if (this.#unsupported.size === 0) return;
    const list = [...this.#unsupported].map(([op, where]) => `${op} (${where})`).join(", ");
    const [op] = this.#unsupported.keys();
    throw new OnnxError(
      `the model needs ops that gradloom lacks: ${list}; docs/guide/onnx.md lists those it has`,
      { ...(op === undefined ? {} : { op }), isUnsupported: true },
    );
  }

  graph(graph: GraphProto, opsets: Opsets, bindings: Bindings | undefined): Plan {
    const constants = new Map<string, TensorValue>();
    for (const tensor of graph.initializer) {
      if (tensor.name === "") throw new OnnxError(`a weight of graph ${quoted(graph.name)} has no name`);
      constants.set(tensor.name, weightValue(tensor, `weight ${quoted(tensor.name)}`, this.#place));
    }
    for (const sparse of graph.sparse_initializer) {
      const name = sparse.values?.name ?? "";
      constants.set(name, denseOf(sparse, `weight ${quoted(name)}`, this.#place));
    }
    // before version 4 of the format each weight was an input, too
    const inputs = graph.input.filter((i) => !constants.has(i.name));
    const outputs = graph.output.map((o) => o.name);
    const plan = this.#body(
      graph.name,
      graph.node,
      inputs.map((i) => i.name),
      outputs,
      constants,
      opsets,
      bindings,
    );
    return { ...plan, inputInfo: inputs, outputInfo: graph.output };
  }

  #body(
    name: string,
    protos: readonly NodeProto[],
    inputs: readonly string[],
    outputs: readonly string[],
    constants: ReadonlyMap<string, TensorValue>,
    opsets: Opsets,
    bindings: Bindings | undefined,
  ): Plan {
    this.#nodes += protos.length;
    if (this.#nodes > MAX_NODES)
      throw new OnnxError(`it has more than ${MAX_NODES} nodes, functions written out`);
    const drafts = protos.map((proto, i) => this.#node(proto, i, opsets, bindings));
    const makers = makersOf(drafts, new Set([...inputs, ...constants.keys()]));
    const nodes = withFrees(sorted(drafts, makers), outputs);
    const has = (n: string): boolean => makers.has(n) || constants.has(n) || inputs.includes(n);
    const free = new Set(drafts.flatMap((d) => d.reads).filter((n) => !has(n)));
    for (const output of outputs) if (!has(output)) free.add(output);
    return { name, nodes, inputs, outputs, constants, free, inputInfo: [], outputInfo: [] };
  }

  #node(proto: NodeProto, i: number, opsets: Opsets, bindings: Bindings | undefined): NodeDraft {
    const domain = domainOf(proto.domain);
    const op = opName(domain, proto.op_type);
    const label = proto.name !== "" ? quoted(proto.name) : `node ${i}${outputName(proto)}`;
    const where = `${op} ${label}`;
    const opset = opsets.get(domain) ?? (domain === "" ? 1 : (NEWEST[domain] ?? 1));
    const attributes = bound(proto.attribute, bindings);
    const draft = { op, where, opset, inputs: proto.input, outputs: proto.output };
    const reads = proto.input.filter((name) => name !== "");
    const fn = this.#functions.get(functionKey(domain, proto.op_type, proto.overload));
    if (fn !== undefined) {
      const body = this.#call(fn, attributes, opsets, where);
      return { ...draft, run: undefined, body, attributes: {}, reads };
    }
    if (domain === "" && opset < introducedIn(op)) {
      throw new OnnxError(
        `${where}: the standard has ${op} since version ${introducedIn(op)} of its ops, the file wants version ${opset}`,
        { op },
      );
    }
    const versions = Object.hasOwn(this.#ops, op) ? this.#ops[op] : undefined;
    const [, run] = versions?.findLast(([since]) => since <= opset) ?? [];
    if (run === undefined) {
      this.#unsupported.set(versions === undefined ? op : `${op} of version ${opset}`, where);
      return { ...draft, run, body: undefined, attributes: {}, reads };
    }
    const graphs: Plan[] = [];
    const reader: AttributeReader = {
      tensor: (a) => {
        if (a.t !== undefined) return tensorValue(a.t, `${where}, its ${a.name}`, this.#place);
        if (a.sparse_tensor !== undefined)
          return denseOf(a.sparse_tensor, `${where}, its ${a.name}`, this.#place);
        throw new OnnxError(`${where}: attribute ${a.name} has no tensor`);
      },
      graph: (a) => {
        if (a.g === undefined) throw new OnnxError(`${where}: attribute ${a.name} has no graph`);
        const plan = this.graph(a.g, opsets, bindings);
        graphs.push(plan);
        return plan;
      },
    };
    const decoded = readAttributes(run.attributes, attributes, reader, where);
    return {
      ...draft,
      run,
      body: undefined,
      attributes: decoded,
      reads: [...reads, ...graphs.flatMap((g) => [...g.free])],
    };
  }

  /** A call of a function of the model: its body, with the attributes of the call. */
  #call(fn: FunctionProto, given: readonly AttributeProto[], opsets: Opsets, where: string): Plan {
    if (++this.#calls > MAX_CALLS) throw new OnnxError(`${where}: functions call each other in a circle`);
    const bindings = new Map(fn.attribute_proto.map((a) => [a.name, a]));
    for (const a of given) bindings.set(a.name, a);
    const own = fn.opset_import.length > 0 ? opsetsOf(fn.opset_import, where) : opsets;
    const plan = this.#body(fn.name, fn.node, fn.input, fn.output, new Map(), own, bindings);
    this.#calls--;
    const [free] = plan.free;
    if (free !== undefined)
      throw new OnnxError(`${where}: the function reads ${quoted(free)}, which it does not compute`);
    return plan;
  }
}

const functionKey = (domain: string, name: string, overload: string): string =>
  JSON.stringify([domain, name, overload]);
const outputName = (proto: NodeProto): string => {
  const name = proto.output.find((o) => o !== "");
  return name === undefined ? "" : ` (it computes ${quoted(name)})`;
};

/** In a function an attribute may be one of the call; one that the call does not have is left out. */
function bound(
  attributes: readonly AttributeProto[],
  bindings: Bindings | undefined,
): readonly AttributeProto[] {
  if (bindings === undefined) return attributes;
  return attributes.flatMap((a) => {
    if (a.ref_attr_name === "") return [a];
    const value = bindings.get(a.ref_attr_name);
    return value === undefined ? [] : [{ ...value, name: a.name }];
  });
}

interface NodeDraft extends Omit<PlannedNode, "frees"> {
  /** all names that it needs, those that its graphs read too */
  readonly reads: readonly string[];
}

/** The node that computes each name. */
function makersOf(drafts: readonly NodeDraft[], given: ReadonlySet<string>): Map<string, NodeDraft> {
  const makers = new Map<string, NodeDraft>();
  for (const draft of drafts) {
    for (const output of draft.outputs) {
      if (output === "") continue;
      if (makers.has(output) || given.has(output))
        throw new OnnxError(`${draft.where}: ${quoted(output)} is computed twice`, { op: draft.op });
      makers.set(output, draft);
    }
  }
  return makers;
}

/** The nodes in an order in which each comes after those it reads; the file's own order if it is one. */
function sorted(drafts: readonly NodeDraft[], makers: ReadonlyMap<string, NodeDraft>): NodeDraft[] {
  const state = new Map<NodeDraft, "open" | "done">();
  const out: NodeDraft[] = [];
  for (const root of drafts) {
    // by hand, since a chain of nodes may be longer than the stack
    const stack = [root];
    for (let draft = stack.at(-1); draft !== undefined; draft = stack.at(-1)) {
      if (state.get(draft) === undefined) {
        state.set(draft, "open");
        for (const name of draft.reads) {
          const source = makers.get(name);
          if (source === undefined || state.get(source) === "done") continue;
          if (state.get(source) === "open")
            throw new OnnxError(`${source.where} needs its own result: the graph has a cycle`, {
              op: source.op,
            });
          stack.push(source);
        }
      } else {
        stack.pop();
        if (state.get(draft) === "open") out.push(draft);
        state.set(draft, "done");
      }
    }
  }
  return out;
}

/** Notes at each node which values are read for the last time. */
function withFrees(drafts: readonly NodeDraft[], outputs: readonly string[]): PlannedNode[] {
  const needed = new Set(outputs);
  return drafts
    .toReversed()
    .map(({ reads, ...node }) => {
      const frees = [...new Set([...reads, ...node.outputs])].filter((name) => !needed.has(name));
      for (const name of frees) needed.add(name);
      return { ...node, frees };
    })
    .reverse();
}
