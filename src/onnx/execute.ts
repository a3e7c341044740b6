// Runs a Plan: each node's op is called with the values of its inputs, which builds a lazy graph of Tensors.
// Nothing is computed here, except where an op must know a value to go on. What is small and known on the
// host (shapes, axes) is computed there, beside the graph.

import { isPromise, type MaybePromise } from "../helpers.ts";
import { OnnxError } from "./errors.ts";
import { FOLDS, MAX_FOLDED } from "./fold.ts";
import { Call, type Environment, settled } from "./ops/op.ts";
import type { Plan, PlannedNode } from "./plan.ts";
import { isSized } from "./symbolic.ts";
import {
  type Any,
  type HostArray,
  hostOf,
  inputsAmong,
  NO_SOURCES,
  type SizeArray,
  sourcesOf,
  TensorValue,
} from "./values.ts";

/** What a run has learned of the model's inputs: whether another one with the same shapes does the same. */
export interface RunFindings {
  /** inputs whose elements decided what the graph is */
  readonly specialised: Set<string>;
  /** a value was read that a device computed from inputs */
  isDynamic: boolean;
  /** elements of constants that a device computed, in the order they were asked for */
  readonly constants: HostArray[];
}
export const newFindings = (): RunFindings => ({ specialised: new Set(), isDynamic: false, constants: [] });

/** The names that a graph can see. */
class NameScope {
  readonly #values = new Map<string, Any>();
  readonly #plan: Plan;
  readonly #outer: NameScope | undefined;

  constructor(plan: Plan, outer: NameScope | undefined) {
    this.#plan = plan;
    this.#outer = outer;
  }
  get(name: string): Any | undefined {
    return this.#values.get(name) ?? this.#plan.constants.get(name) ?? this.#outer?.get(name);
  }
  set(name: string, value: Any): void {
    this.#values.set(name, value);
  }
  free(names: readonly string[]): void {
    for (const name of names) this.#values.delete(name);
  }
}

export class GraphRun implements Environment {
  readonly device: string | undefined;
  readonly findings: RunFindings;
  #read = 0;

  constructor(device: string | undefined, findings: RunFindings) {
    this.device = device;
    this.findings = findings;
  }

  read(value: TensorValue): MaybePromise<HostArray> {
    return value.isKnown ? this.#known(value).host : this.#unknown(value);
  }
  readSizes(value: TensorValue): MaybePromise<SizeArray> {
    return value.isKnown ? this.#known(value).sizes : this.#unknown(value);
  }
  #known(value: TensorValue): TensorValue {
    for (const name of inputsAmong(value.sources)) this.findings.specialised.add(name);
    return value;
  }
  #unknown(value: TensorValue): MaybePromise<HostArray> {
    const { findings } = this;
    if (value.isText) throw new OnnxError("strings were given where numbers are expected");
    // a value that is made of symbolic sizes is another one with other sizes
    if (inputsAmong(value.sources).length > 0 || isSized(value.tensor)) {
      findings.isDynamic = true;
      return this.#fetch(value);
    }
    const known = findings.constants[this.#read++];
    return known ?? this.#fetch(value).then((host) => (findings.constants[this.#read - 1] ??= host));
  }
  async #fetch(value: TensorValue): Promise<HostArray> {
    return hostOf(value.type, value.shape, await value.tensor.data());
  }

  subgraph(
    plan: Plan,
    inputs: readonly (Any | undefined)[],
    call: Call,
  ): MaybePromise<readonly (Any | undefined)[]> {
    return this.execute(plan, inputs, call.scope as NameScope);
  }

  async execute(
    plan: Plan,
    inputs: readonly (Any | undefined)[],
    outer?: NameScope,
  ): Promise<(Any | undefined)[]> {
    const scope = new NameScope(plan, outer);
    plan.inputs.forEach((name, i) => {
      const value = inputs[i];
      if (value !== undefined) scope.set(name, value);
    });
    for (const node of plan.nodes) {
      const given = node.inputs.map((name) => (name === "" ? undefined : scope.get(name)));
      const results = this.#node(node, given, scope);
      const outputs = isPromise(results) ? await results : results;
      node.outputs.forEach((name, i) => {
        const value = outputs[i];
        if (name !== "" && value !== undefined) scope.set(name, value);
      });
      scope.free(node.frees);
    }
    return plan.outputs.map((name) => scope.get(name));
  }

  #node(
    node: PlannedNode,
    inputs: readonly (Any | undefined)[],
    scope: NameScope,
  ): MaybePromise<readonly (Any | undefined)[]> {
    if (node.body !== undefined) return this.execute(node.body, inputs);
    const { op, where, attributes: attr, outputs, opset, run } = node;
    if (run === undefined) throw new OnnxError(`internal: ${where} was planned without its op`);
    const call = new Call({
      op,
      where,
      attr,
      inputs,
      outputs,
      opset,
      env: this,
      sources: run.isOfShapes === true ? NO_SOURCES : sourcesOf(inputs),
      scope,
    });
    const folded = foldable(call);
    if (folded !== undefined && call.sources.size === 0)
      return guarded(call, () => folded().map(known(call)));
    return guarded(call, () => {
      const results = run.run(call);
      const finish = (r: typeof results): (Any | undefined)[] => withHosts(settled(call, r as never), folded);
      return isPromise(results) ? results.then(finish) : finish(results);
    });
  }
}

/** What an op throws names its node. */
function guarded<T>(call: Call, fn: () => MaybePromise<T>): MaybePromise<T> {
  try {
    const result = fn();
    return isPromise(result) ? result.then(undefined, (cause) => fail(call, cause)) : result;
  } catch (cause) {
    return fail(call, cause);
  }
}
function fail(call: Call, cause: unknown): never {
  if (cause instanceof OnnxError && cause.op !== undefined) throw cause;
  const { isUnsupported } = cause as Partial<OnnxError>;
  const message = (cause as Error).message.replace(/^onnx: /, "");
  throw new OnnxError(`${call.where}: ${message}`, {
    cause,
    op: call.op,
    ...(isUnsupported === true ? { isUnsupported } : {}),
  });
}

const known =
  (call: Call) =>
  (host: SizeArray): Any =>
    TensorValue.ofHost(host, call.device, call.sources);

/** How to compute a node on the host, if all it reads is small and known there. */
function foldable(call: Call): (() => readonly SizeArray[]) | undefined {
  const fold = Object.hasOwn(FOLDS, call.op) ? FOLDS[call.op] : undefined;
  if (fold === undefined) return undefined;
  for (const value of call.inputs) {
    if (value === undefined) continue;
    if (!(value instanceof TensorValue) || !value.isKnown || value.isText || value.size > MAX_FOLDED)
      return undefined;
  }
  let made: readonly SizeArray[] | undefined;
  const hosts = (): (SizeArray | undefined)[] =>
    call.inputs.map((v) => (v as TensorValue | undefined)?.sizes);
  return fold.accepts(call) ? () => (made ??= fold.run(call, hosts())) : undefined;
}

/** Tensors, whose elements the host could compute too, if it has to. */
function withHosts(
  values: readonly (Any | undefined)[],
  folded: (() => readonly SizeArray[]) | undefined,
): (Any | undefined)[] {
  if (folded === undefined) return [...values];
  return values.map((value, i) =>
    value instanceof TensorValue && !value.isKnown && !value.isText && value.size <= MAX_FOLDED
      ? value.withHost(() => folded()[i] as SizeArray)
      : value,
  );
}
