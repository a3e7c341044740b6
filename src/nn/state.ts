// The tensors of a model by name. A model is any object: its tensors are found in its properties and in
// nested arrays and objects, and named by their path ("layers.0.weight"). Loading checks everything before it
// changes anything.

import { ArgumentError } from "../errors.ts";
import { partsOf } from "../helpers.ts";
import { showShape } from "../tensor/show.ts";
import { Tensor } from "../tensor/tensor.ts";
import { requireModel } from "./options.ts";

export type StateDict = Record<string, Tensor>;

/**
 * Every tensor of a model under its dotted name, trained or not (running statistics too).
 * @example
 * Object.keys(nn.getStateDict({ a: [Tensor.zeros(1)], b: { c: Tensor.zeros(2) } })) // => ["a.0", "b.c"]
 */
export function getStateDict(model: unknown, prefix = ""): StateDict {
  requireModel("getStateDict", model);
  const found: [string, Tensor][] = [];
  collect(model, prefix, [], found);
  return Object.fromEntries(found);
}

/** An object with layers or tensors inside: of any class, a list, a Map, a Set. */
export type AnyModel = object;

/** `way` has the enclosing objects: a part that points back to its owner is not entered again. */
function collect(x: unknown, name: string, way: readonly unknown[], found: [string, Tensor][]): void {
  if (x instanceof Tensor) found.push([name, x]);
  else if (typeof x === "object" && x !== null && !ArrayBuffer.isView(x) && !way.includes(x)) {
    requireVisible(x, name);
    for (const [key, part] of partsOf(x)) {
      collect(part, name === "" ? String(key) : `${name}.${key}`, [...way, x], found);
    }
  }
}

/** Private fields cannot be seen from here: what they hold would silently not be trained or saved. */
function requireVisible(x: object, name: string): void {
  const type: unknown = x.constructor;
  if (typeof type !== "function" || seen.has(type)) return;
  const [, made, called] = PRIVATE.exec(String(type)) ?? [];
  const field = made ?? called;
  if (field !== undefined) {
    throw new ArgumentError(
      `getStateDict: ${name || "the model"} (${type.name}) keeps tensors in the private field ${field}, ` +
        `where they cannot be found; make it public: ${field.slice(1)}`,
    );
  }
  seen.add(type);
}
/** A private field that is given a layer or a tensor, or whose forward method is called. */
const PRIVATE = /(#\w+)\s*=\s*(?:new )?(?:[\w$]+\.)*(?:Tensor\b|nn\.\w)|(#\w+)(?:\[[^\]]*\])?\.forward\(/;
/** Classes without such fields. */
const seen = new WeakSet<object>();

/**
 * The tensors of a model that are trained (`requiresGrad`), each once: what an optimiser takes.
 * @example
 * nn.getParameters(new nn.Linear(4, 2)).map((p) => p.shape) // => [[2, 4], [2]]
 */
export function getParameters(model: AnyModel): Tensor[] {
  return [...new Set(Object.values(getStateDict(model)))].filter((t) => t.requiresGrad);
}

export interface LoadOptions {
  /** false: names that only one side has are ignored; shapes must still match. Default: true */
  readonly strict?: boolean;
}
export interface LoadResult {
  readonly missing: readonly string[];
  readonly unexpected: readonly string[];
}

/** The name in torch's spelling: `runningMean` is running_mean there. */
const snake = (name: string): string => name.replaceAll(/(?<=[a-z0-9])[A-Z]/g, (c) => `_${c.toLowerCase()}`);

/**
 * Copies the values of `state` into the tensors of a model, keeping the model's dtypes and devices. Names of
 * a torch model match too (`running_mean` for `runningMean`). If something is missing, unexpected or has the
 * wrong shape, the error names it and nothing is changed.
 * @example
 * const [from, to] = [new nn.Linear(2, 2), new nn.Linear(2, 2)];
 * await nn.loadStateDict(to, nn.getStateDict(from));
 * await to.weight.equal(from.weight).item() // => true
 */
export async function loadStateDict(
  model: unknown,
  state: StateDict,
  options: LoadOptions = {},
): Promise<LoadResult> {
  for (const [name, x] of Object.entries(state)) {
    if (x instanceof Tensor) continue;
    throw new ArgumentError(
      `loadStateDict: ${name} of the state is a ${typeof x}, expected a Tensor; write loadStateDict(model, state)`,
    );
  }
  const own = Object.entries(getStateDict(model));
  const used = new Set<string>();
  const missing: string[] = [];
  const misshapen: string[] = [];
  const pairs: [Tensor, Tensor][] = [];
  for (const [name, t] of own) {
    const key = [name, snake(name)].find((k) => Object.hasOwn(state, k));
    const value = key === undefined ? undefined : state[key];
    if (key === undefined || value === undefined) {
      missing.push(name);
      continue;
    }
    used.add(key);
    if (showShape(value.shape) === showShape(t.shape)) pairs.push([t, value]);
    else
      misshapen.push(
        `${name} is ${showShape(t.shape)} in the model and ${showShape(value.shape)} in the state`,
      );
  }
  const unexpected = Object.keys(state).filter((k) => !used.has(k));
  complain({ missing, unexpected, misshapen, strict: options.strict ?? true });
  await put(pairs);
  return { missing, unexpected };
}

interface Findings extends LoadResult {
  readonly misshapen: readonly string[];
  readonly strict: boolean;
}

function complain({ missing, unexpected, misshapen, strict }: Findings): void {
  const list = (names: readonly string[], most = 20): string =>
    names.length <= most
      ? names.join(", ")
      : `${names.slice(0, most).join(", ")} and ${names.length - most} more`;
  const parts = [
    strict && missing.length > 0 ? `missing in the state: ${list(missing)}` : "",
    strict && unexpected.length > 0 ? `unexpected, the model has no such name: ${list(unexpected)}` : "",
    misshapen.length > 0 ? `misshapen: ${list(misshapen)}` : "",
  ].filter((p) => p !== "");
  if (parts.length === 0) return;
  const advice = misshapen.length === 0 ? "; { strict: false } passes over names that only one side has" : "";
  throw new ArgumentError(`loadStateDict: ${parts.join("; ")}. Nothing was loaded${advice}`);
}

/**
 * All values are computed and moved before the first one is copied: a read that fails changes nothing.
 */
async function put(pairs: readonly (readonly [Tensor, Tensor])[]): Promise<void> {
  const ready = pairs.map(([t, value]) => [t, ownCopy(value, t)] as const);
  await Tensor.realize(...ready.map(([, value]) => value));
  await Tensor.realize(...ready.map(([t, value]) => t.assign(value)));
}

/**
 * The value in `t`'s dtype and device, in memory of its own: training one of two models must not change the
 * other.
 */
function ownCopy(value: Tensor, t: Tensor): Tensor {
  const { lazydata: lb } = value.detach().placedLike(t).cast(t.dtype);
  const theirs = new Set(value.lazydata.parts.map((p) => p.base));
  return new Tensor(lb.parts.some((p) => theirs.has(p.base)) ? lb.duplicate() : lb.contiguous());
}
