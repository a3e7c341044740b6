// Checkpoints: all that a training needs to go on exactly where it was, in one safetensors file. In: parts by
// name: models, optimisers, schedulers, plain values such as the number of the step. Out: a file whose
// tensors are `part.name`, and whose metadata has the rest: rates, options, plain values, the place in the
// stream of random numbers. Loading checks everything before it changes anything.

import { ArgumentError, FileError } from "../errors.ts";
import { isPlain } from "../helpers.ts";
import { state as stream } from "../tensor/random/threefry.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { Readable } from "./bytes.ts";
import { type CommonOptions, Optimizer, type ParamGroup, type State } from "./optim.ts";
import { safeHeader, safeLoad, safeSave } from "./safetensors.ts";
import { getStateDict, type LoadOptions, loadStateDict, type StateDict } from "./state.ts";

/** A value as JSON has it; numbers may be infinite or NaN, too. */
export type Plain = null | boolean | number | string | readonly Plain[] | { readonly [key: string]: Plain };
/** Something with a state of plain values: a scheduler, a DataLoader, or a class of yours. */
export interface Resumable {
  stateDict(): Plain;
  loadStateDict(state: never): void;
}
/** Models, optimisers, schedulers, tensors and plain values, under names of your choice. */
export type Parts = Readonly<Record<string, unknown>>;

export interface CheckpointOptions extends LoadOptions {
  /** whether the random numbers go on from the saved place; default: if an optimiser is loaded */
  readonly random?: boolean;
}

const KEY = "gradloom";
const VERSION = 1;

interface SavedOptimizer {
  readonly type: string;
  readonly groups: readonly { readonly lr: number; readonly params: number; readonly options: Plain }[];
}
interface SavedCheckpoint {
  readonly version: number;
  readonly values: Readonly<Record<string, Plain>>;
  readonly states: Readonly<Record<string, Plain>>;
  readonly optimizers: Readonly<Record<string, SavedOptimizer>>;
  /** names that stand for the tensor of another name */
  readonly same: Readonly<Record<string, string>>;
  readonly random: { readonly key: readonly [number, number]; readonly drawn: number };
}

// ---- what a part is ----

type AnyOptimizer = Optimizer<CommonOptions>;
type CheckpointPart =
  | { readonly kind: "optimizer"; readonly optimizer: AnyOptimizer }
  | { readonly kind: "resumable"; readonly part: Resumable }
  | { readonly kind: "tensors"; readonly tensors: StateDict }
  | { readonly kind: "value"; readonly value: Plain };

const isResumable = (x: unknown): x is Resumable => {
  const { stateDict, loadStateDict: load } = (x ?? {}) as Partial<Resumable>;
  return typeof stateDict === "function" && typeof load === "function";
};
function isValue(x: unknown): x is Plain {
  if (x === null || ["boolean", "number", "string"].includes(typeof x)) return true;
  if (Array.isArray(x)) return x.every(isValue);
  return isPlain(x) && Object.values(x).every(isValue);
}

function partOf(who: string, name: string, x: unknown): CheckpointPart {
  if (name === "" || name.includes(".")) {
    throw new ArgumentError(`${who}: a part is named "${name}", expected a name without dots`);
  }
  if (x instanceof Optimizer) return { kind: "optimizer", optimizer: x as AnyOptimizer };
  if (isResumable(x)) return { kind: "resumable", part: x };
  const tensors = typeof x === "object" && x !== null ? getStateDict(x, name) : {};
  if (Object.keys(tensors).length > 0) return { kind: "tensors", tensors };
  if (isValue(x)) return { kind: "value", value: x };
  const got = typeof x === "object" ? `a ${x?.constructor?.name ?? "object"}` : typeof x;
  throw new ArgumentError(
    `${who}: ${name} is ${got} without tensors; expected a model, an optimizer, a scheduler or plain values`,
  );
}
function partsOf(who: string, parts: Parts): [string, CheckpointPart][] {
  if (typeof parts !== "object" || parts === null || Array.isArray(parts) || parts instanceof Tensor) {
    throw new ArgumentError(`${who}: expected the parts by name, such as { model, optimizer, step }`);
  }
  return Object.entries(parts).map(([name, x]) => [name, partOf(who, name, x)]);
}

/** The tensors of a part under their names in the file. */
const tensorsOf = (name: string, part: CheckpointPart): StateDict => {
  if (part.kind === "tensors") return part.tensors;
  return part.kind === "optimizer" ? getStateDict(part.optimizer.state, name) : {};
};
const optionsOf = ({ options: { lr: _, ...rest } }: ParamGroup<CommonOptions>): Plain =>
  JSON.parse(JSON.stringify(rest)) as Plain;
const describe = (optimizer: AnyOptimizer): SavedOptimizer => ({
  type: optimizer.constructor.name,
  groups: optimizer.groups.map((g) => ({ lr: g.lr, params: g.params.length, options: optionsOf(g) })),
});

// ---- numbers that JSON does not have ----

const NUMBERS: ReadonlyMap<unknown, number> = new Map([
  ["NaN", NaN],
  ["Infinity", Infinity],
  ["-Infinity", -Infinity],
  ["-0", -0],
]);
const write = (saved: SavedCheckpoint): string =>
  JSON.stringify(saved, (_, x) => {
    if (typeof x !== "number") return x;
    if (Object.is(x, -0)) return { $number: "-0" };
    return Number.isFinite(x) ? x : { $number: String(x) };
  });
const read = (text: string): SavedCheckpoint =>
  JSON.parse(
    text,
    (_, x) => NUMBERS.get((x as { $number?: unknown } | null)?.$number) ?? x,
  ) as SavedCheckpoint;

// ---- saving ----

/**
 * Writes a checkpoint: models, optimisers with their state and rates, schedulers, plain values, and the state
 * of the random numbers. Without a path it returns the bytes. An existing file is replaced when the new one
 * is complete, so that a crash leaves the old one.
 * @example
 * const model = new nn.Linear(2, 1);
 * const optimizer = new nn.optim.Adam(nn.getParameters(model));
 * const bytes = await nn.save({ model, optimizer, step: 7 });
 * await nn.load(bytes, { model, optimizer }) // => { step: 7 }
 */
export function save(parts: Parts, path?: undefined): Promise<Uint8Array>;
export function save(parts: Parts, path: string): Promise<void>;
export async function save(parts: Parts, path?: string): Promise<unknown> {
  if (path !== undefined && typeof path !== "string") {
    throw new ArgumentError(
      `save: the path is ${typeof path}, expected a text: nn.save({ model }, "run.safetensors")`,
    );
  }
  const list = partsOf("save", parts);
  const pick = <K extends CheckpointPart["kind"], T>(
    kind: K,
    value: (p: Extract<CheckpointPart, { kind: K }>) => T,
  ) =>
    Object.fromEntries(
      list.flatMap(([name, p]) =>
        p.kind === kind ? [[name, value(p as Extract<CheckpointPart, { kind: K }>)]] : [],
      ),
    ) as Record<string, T>;
  const first = new Map<Tensor, string>();
  const same: Record<string, string> = {};
  for (const [name, t] of list.flatMap(([n, p]) => Object.entries(tensorsOf(n, p)))) {
    const other = first.get(t);
    if (other === undefined) first.set(t, name);
    else same[name] = other;
  }
  const saved: SavedCheckpoint = {
    version: VERSION,
    values: pick("value", (p) => p.value),
    states: pick("resumable", (p) => p.part.stateDict()),
    optimizers: pick("optimizer", (p) => describe(p.optimizer)),
    same,
    random: { key: [...stream.key], drawn: stream.drawn },
  };
  const tensors = Object.fromEntries([...first].map(([t, name]) => [name, t]));
  const metadata = { [KEY]: write(saved) };
  return path === undefined ? safeSave(tensors, undefined, metadata) : safeSave(tensors, path, metadata);
}

// ---- loading ----

/**
 * Puts a checkpoint back into the parts of the same names, and returns the plain values of the file. Parts
 * that are not given are passed over: `nn.load(file, { model })` is enough to use a model. What does not fit
 * is an error that names it, and then nothing has changed. TypeScript believes what the caller says about the
 * values: `const { step } = await nn.load<{ step: number }>(file, { model })`.
 * @example
 * const [model, again] = [new nn.Linear(2, 1), new nn.Linear(2, 1)];
 * await nn.load(await nn.save({ model }), { model: again });
 * await again.weight.equal(model.weight).item() // => true
 */
export async function load<V extends { readonly [K in keyof V]: Plain } = Record<string, Plain>>(
  source: Readable,
  parts: Parts = {},
  options: CheckpointOptions = {},
): Promise<V> {
  const list = partsOf("load", parts);
  const { metadata, tensors: entries } = await safeHeader(source);
  const names = Object.keys(entries);
  const saved = savedOf(metadata[KEY], new Set(names));
  const strict = options.strict ?? true;
  requireParts(list, saved, names);
  for (const [name, part] of list) {
    if (part.kind === "optimizer") requireOptimizer(name, part.optimizer, saved.optimizers[name], strict);
  }
  const own = list.map(([name, part]) => [name, partTree(part, parts[name])] as const);
  const wanted = (name: string): boolean => list.some(([n]) => name === n || name.startsWith(`${n}.`));
  const tensors = await safeLoad(source, { names: rootsOf(names, saved, wanted) });
  for (const [name, other] of Object.entries(saved.same)) {
    if (wanted(name)) tensors[name] = tensors[other] as Tensor;
  }
  const given = Object.fromEntries(Object.entries(tensors).filter(([name]) => wanted(name)));
  for (const [name, part] of list) {
    if (part.kind === "optimizer") regroup(name, part.optimizer.state, saved.same);
  }
  const trees = Object.fromEntries(own.filter(([, tree]) => tree !== undefined));
  await resuming(list, saved, () => loadStateDict(trees, given, { strict }));
  restore(list, saved, options.random);
  return { ...saved.values } as V;
}
/** Schedulers and loaders get their state first; if they or `rest` refuse it, they keep what they had. */
async function resuming(
  list: readonly [string, CheckpointPart][],
  saved: SavedCheckpoint,
  rest: () => unknown,
): Promise<void> {
  const undo: (() => void)[] = [];
  const groups = list.flatMap(([, p]) => (p.kind === "optimizer" ? p.optimizer.groups : []));
  const rates = groups.map((g) => g.lr);
  try {
    for (const [name, { kind, ...one }] of list) {
      if (kind !== "resumable") continue;
      const { part } = one as { part: Resumable };
      const before = part.stateDict();
      undo.push(() => part.loadStateDict(before as never));
      part.loadStateDict(saved.states[name] as never);
    }
    await rest();
  } catch (e) {
    for (const back of undo) back();
    for (const [i, g] of groups.entries()) g.lr = rates[i] as number; // a scheduler sets them
    throw e;
  }
}
/** What has the tensors of a part. */
const partTree = (part: CheckpointPart, given: unknown): unknown => {
  if (part.kind === "optimizer") return part.optimizer.state;
  return part.kind === "tensors" ? given : undefined;
};

/** The type of each field of the metadata; other fields are ignored. */
const FIELDS: {
  readonly [K in keyof SavedCheckpoint]: (x: unknown, tensors: ReadonlySet<string>) => boolean;
} = {
  version: (x) => typeof x === "number",
  values: isPlain,
  states: isPlain,
  optimizers: (x) => isPlain(x) && Object.values(x).every(isSavedOptimizer),
  same: (x, tensors) => isPlain(x) && Object.values(x).every((name) => tensors.has(name as string)),
  random: (x) => {
    const { key, drawn } = (x ?? {}) as Partial<SavedCheckpoint["random"]>;
    const isWord = (n: unknown): boolean => Number.isInteger(n) && (n as number) >>> 0 === n;
    return Array.isArray(key) && key.length === 2 && key.every(isWord) && isCount(drawn);
  },
};
const isCount = (n: unknown): boolean => Number.isSafeInteger(n) && (n as number) >= 0;
function isSavedOptimizer(x: unknown): boolean {
  const { type, groups } = (x ?? {}) as Partial<SavedOptimizer>;
  if (typeof type !== "string" || !Array.isArray(groups)) return false;
  return groups.every((g) => isPlain(g) && typeof g.lr === "number" && isCount(g.params));
}

function savedOf(text: string | undefined, tensors: ReadonlySet<string>): SavedCheckpoint {
  if (text === undefined) {
    throw new FileError(
      "load: the file is not a checkpoint of nn.save; for plain weights use nn.loadStateDict(model, await nn.safeLoad(file))",
    );
  }
  let saved: SavedCheckpoint;
  try {
    saved = read(text);
  } catch (cause) {
    throw new FileError("load: the metadata of the checkpoint is not JSON", { cause });
  }
  if (typeof saved?.version === "number" && saved.version !== VERSION) {
    throw new FileError(`load: the checkpoint has version ${saved.version}, this gradloom reads ${VERSION}`);
  }
  for (const [name, isRight] of Object.entries(FIELDS)) {
    if (isRight(saved?.[name as keyof SavedCheckpoint], tensors)) continue;
    throw new FileError(
      `load: the metadata of the checkpoint is not complete: ${name} is not what save wrote`,
    );
  }
  return saved;
}
/** The tensors to read: those of the given parts, and those that stand for them. */
function rootsOf(
  names: readonly string[],
  { same }: SavedCheckpoint,
  wanted: (name: string) => boolean,
): string[] {
  const others = Object.entries(same).flatMap(([name, other]) => (wanted(name) ? [other] : []));
  return [...new Set([...names.filter(wanted), ...others])];
}

function requireParts(
  list: readonly [string, CheckpointPart][],
  saved: SavedCheckpoint,
  names: readonly string[],
): void {
  const kinds = new Map<string, CheckpointPart["kind"]>();
  for (const name of [...names, ...Object.keys(saved.same)])
    kinds.set(name.split(".")[0] as string, "tensors");
  for (const name of Object.keys(saved.optimizers)) kinds.set(name, "optimizer");
  for (const name of Object.keys(saved.states)) kinds.set(name, "resumable");
  for (const name of Object.keys(saved.values)) kinds.set(name, "value");
  for (const [name, { kind }] of list) {
    const there = kinds.get(name);
    if (there === kind) continue;
    if (there === undefined) {
      throw new ArgumentError(
        `load: the checkpoint has no part ${name}; it has ${[...kinds.keys()].join(", ")}. Nothing was loaded`,
      );
    }
    const words = {
      optimizer: "an optimizer",
      resumable: "a scheduler or loader",
      tensors: "a model",
      value: "a value",
    };
    throw new ArgumentError(
      `load: ${name} is ${words[there]} in the checkpoint and ${words[kind]} here` +
        `${kind === "value" ? "; values are what load returns, leave it out" : ""}. Nothing was loaded`,
    );
  }
}

function requireOptimizer(
  name: string,
  optimizer: AnyOptimizer,
  saved: SavedOptimizer | undefined,
  strict: boolean,
): void {
  const own = describe(optimizer);
  const sizes = (o: SavedOptimizer): string => o.groups.map((g) => g.params).join(" + ");
  const refuse = (what: string): never => {
    throw new ArgumentError(`load: ${name}: ${what}. Nothing was loaded`);
  };
  if (saved === undefined || saved.type !== own.type) {
    throw refuse(`the checkpoint has ${saved?.type}, this is ${own.type}`);
  }
  if (sizes(saved) !== sizes(own)) {
    refuse(`the checkpoint has ${sizes(saved)} parameters by group, this ${own.type} has ${sizes(own)}`);
  }
  if (!strict) return;
  own.groups.forEach((group, i) => {
    const [a, b] = [saved.groups[i]?.options, group.options].map((o) => JSON.stringify(o));
    if (a === b) return;
    refuse(
      `group ${i} was saved with options ${a} and has ${b}; make it with the same, or give { strict: false }`,
    );
  });
}

/**
 * State that several parameters share, such as the count of steps, is one tensor for those that shared it
 * when it was saved; it has come apart where parameters skipped steps.
 */
function regroup(name: string, states: readonly State[], same: Readonly<Record<string, string>>): void {
  const taken = new Map<Tensor, string>();
  const groups = new Map<string, Tensor>();
  states.forEach((state, i) => {
    for (const [key, t] of Object.entries(state)) {
      const own = `${name}.${i}.${key}`;
      const root = same[own] ?? own;
      const known = groups.get(root);
      const free = taken.has(t) && taken.get(t) !== root ? new Tensor(t.lazydata.duplicate()) : t;
      state[key] = known ?? free;
      groups.set(root, state[key]);
      taken.set(t, taken.get(t) ?? root);
    }
  });
}

/** All that is not a tensor. Rates come last: a scheduler sets them too. */
function restore(
  list: readonly [string, CheckpointPart][],
  saved: SavedCheckpoint,
  random: boolean | undefined,
): void {
  for (const [name, part] of list) {
    if (part.kind !== "optimizer") continue;
    part.optimizer.groups.forEach((g, i) => {
      g.lr = saved.optimizers[name]?.groups[i]?.lr ?? g.lr;
    });
  }
  if (!(random ?? list.some(([, { kind }]) => kind === "optimizer"))) return;
  const { key, drawn } = saved.random;
  stream.key = [key[0], key[1]];
  stream.drawn = drawn;
}
