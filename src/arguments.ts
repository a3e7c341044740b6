// The one check of arguments. Every public function has a signature in a short text that `npm run signatures`
// writes from its TypeScript types: `et {alpha:e}?` is a number or a Tensor, then options that may be left
// out (letters: KINDS). `guard` puts the check before a function. A call that fits its signature costs a few
// comparisons. Of other calls, `mend` accepts what means one thing only: an array for a Tensor, snake_case,
// torch's order of options. Of the rest, `complain` says what came, what was expected and what to write.

import { ArgumentError } from "./errors.ts";
import { isPlain } from "./helpers.ts";

// ---- what a value is: a bit for each kind ----

const NUMBER = 1;
const NAN = 2;
const BIGINT = 4;
const BOOLEAN = 8;
const STRING = 16;
const FUNCTION = 32;
const NULL = 64;
const TENSOR = 128;
const ARRAY = 256;
const TYPED_ARRAY = 512;
const PLAIN = 1024;
const INSTANCE = 2048;

const BITS: Readonly<Record<string, number>> = {
  string: STRING,
  boolean: BOOLEAN,
  bigint: BIGINT,
  function: FUNCTION,
};

/** The class Tensor, which this file cannot import, and how an array becomes one. */
interface TensorType {
  readonly type: abstract new (...args: never[]) => { readonly device: string };
  make(data: unknown, device: string | undefined): unknown;
}
let tensor: TensorType;
export function setTensorType(known: TensorType): void {
  tensor = known;
}

function bitOf(x: unknown): number {
  if (typeof x === "number") return x - x === 0 || Math.abs(x) === Infinity ? NUMBER : NAN;
  if (typeof x !== "object") return BITS[typeof x] ?? 0;
  if (x === null) return NULL;
  if (x instanceof tensor.type) return TENSOR;
  if (Array.isArray(x)) return ARRAY;
  if (ArrayBuffer.isView(x)) return TYPED_ARRAY;
  return isPlain(x) ? PLAIN : INSTANCE;
}

// ---- signatures ----

/** Letters of a signature: what they accept, and how a message says it. */
const KINDS: Readonly<Record<string, readonly [accepts: number, words: string]>> = {
  t: [TENSOR, "a Tensor"],
  n: [NUMBER, "a number"],
  e: [NUMBER | NAN | BIGINT | BOOLEAN, "a number"],
  b: [BOOLEAN, "true or false"],
  s: [STRING, "a string"],
  d: [STRING | INSTANCE, 'a dtype such as "float32"'],
  a: [ARRAY, "an array of numbers"],
  l: [ARRAY, "an array of Tensors"],
  m: [ARRAY, "an array"],
  v: [TYPED_ARRAY, "a typed array"],
  f: [FUNCTION, "a function"],
  g: [BIGINT, "a bigint"],
  k: [PLAIN | INSTANCE, "an object"],
  r: [PLAIN, "a plain object"],
  c: [INSTANCE, ""],
  z: [4095, "a value"],
  0: [NULL, "null"],
};

interface ParameterRule {
  readonly name: string;
  readonly kinds: string;
  readonly accepts: number;
  /** what the elements of an array are */
  readonly items: number;
  readonly optional: boolean;
  readonly rest: boolean;
  /** of an options object */
  readonly keys: ReadonlyMap<string, ParameterRule> | undefined;
  /** an option that may come by its position, too */
  readonly positional: boolean;
}
type ParameterRules = readonly ParameterRule[];

/**
 * `name:kinds` or `name:{options}kinds`; `?`: may be left out, `*`: many; of an option `!`: also by position,
 * `+`: required.
 */
function parameter(text: string, isOption: boolean): ParameterRule {
  const [, marks = "", name = "", options, kinds = "", end = ""] =
    /^([!+]*)(?:(\w+):)?(?:\{(.*)\})?(\w*)([?*]?)$/.exec(text) ?? [];
  let accepts = options === undefined ? 0 : PLAIN;
  for (const k of kinds) accepts |= KINDS[k]?.[0] ?? 0;
  return {
    name,
    kinds,
    accepts,
    items: /[mz]/.test(kinds) ? -1 : kinds.includes("l") ? TENSOR : NUMBER | INSTANCE,
    optional: isOption ? !marks.includes("+") : end !== "",
    rest: end === "*",
    keys: options?.split(",").reduce((map, item) => {
      const option = parameter(item, true);
      return map.set(option.name, option);
    }, new Map<string, ParameterRule>()),
    positional: marks.includes("!"),
  };
}
const parse = (signature: string): ParameterRules[] =>
  signature.split("/").map((list) => (list.match(/\S+/g) ?? []).map((text) => parameter(text, false)));

/** The parameter that argument `i` is for: options may follow one that takes many. */
function parameterAt(params: ParameterRules, args: readonly unknown[], i: number): ParameterRule | undefined {
  const many = params.findIndex((p) => p.rest);
  if (many < 0 || i < many) return params[i];
  const behind = params[many + 1];
  return behind !== undefined && i === args.length - 1 && bitOf(args[i]) === PLAIN ? behind : params[many];
}

// ---- does a call fit? ----

function fits(p: ParameterRule, x: unknown): boolean {
  const bit = bitOf(x);
  if (bit === 0) return p.optional && x === undefined;
  if ((p.accepts & bit) === 0) return false;
  if (bit === ARRAY && p.items !== -1) {
    for (const item of x as unknown[]) if ((p.items & bitOf(item)) === 0) return false;
  }
  return bit !== PLAIN || p.keys === undefined || misfitOption(p.keys, x as Options) === undefined;
}
type Options = Readonly<Record<string, unknown>>;

/** The first option that is unknown, has a wrong value or is missing. */
function misfitOption(keys: ReadonlyMap<string, ParameterRule>, options: Options): string | undefined {
  for (const key in options) {
    const known = keys.get(key);
    if (known === undefined || !fits(known, options[key])) return key;
  }
  for (const { name, optional } of keys.values()) if (!optional && !(name in options)) return name;
  return undefined;
}
/** The position of the first argument that does not fit; -1 if all do. */
function misfit(params: ParameterRules, args: readonly unknown[]): number {
  for (let i = 0; i < args.length; i++) {
    let p = params[i];
    if (p === undefined || p.rest || params[i - 1]?.rest) p = parameterAt(params, args, i);
    if (p === undefined ? args[i] !== undefined : !fits(p, args[i])) return i;
  }
  for (let i = args.length; i < params.length; i++) if (!params[i]?.optional) return i;
  return -1;
}

// ---- calls that mean one thing only ----

/** `weight_decay` as weightDecay. */
export const camel = (key: string): string => key.replaceAll(/_+(.)/g, (_, c: string) => c.toUpperCase());

/** `x` for the parameter `p`: an array becomes a Tensor, options are spelt as ours. */
function mendValue(p: ParameterRule, x: unknown, device: string | undefined): unknown {
  const bit = bitOf(x);
  const { accepts, keys } = p;
  if (bit === PLAIN && keys !== undefined) {
    const mended = Object.entries(x as Options).map(([given, value]) => {
      const ours = camel(given);
      const key = keys.has(ours) && !(ours in (x as Options)) ? ours : given;
      const known = keys.get(key);
      return [key, known === undefined ? value : mendValue(known, value, device)];
    });
    return Object.fromEntries(mended);
  }
  if (bit === ARRAY && accepts & ARRAY) {
    const item = { ...p, accepts: p.items };
    return p.items === TENSOR ? (x as unknown[]).map((y) => mendValue(item, y, device)) : x;
  }
  if (!(accepts & TENSOR && bit & (ARRAY | TYPED_ARRAY) & ~accepts)) return x;
  try {
    return tensor.make(x, device);
  } catch {
    return x; // not numbers: the complaint names the function that was called
  }
}

/** The arguments as the function wants them, as far as they mean one thing only. */
function mend(params: ParameterRules, given: readonly unknown[], device: string | undefined): unknown[] {
  let args = [...given];
  // a function that was given to `map`
  const [first, index, all] = given;
  if (params.length < 3 && Array.isArray(all) && all[index as number] === first) args = [first];
  const at = params.length - 1;
  const keys = params[at]?.keys;
  if (keys !== undefined && !params[at - 1]?.rest) {
    const last = args.length - 1;
    const early = params.slice(last, at);
    if (last < at && bitOf(args[last]) === PLAIN && early.every((p) => p.optional && !(p.accepts & PLAIN))) {
      // options in the place of arguments that may be left out
      const options = args.pop();
      args[at] = options;
    } else if (last >= at) {
      const options = [...keys.values()].filter((o) => o.positional);
      const rest = bitOf(args[last]) === PLAIN ? args.pop() : {};
      const byPosition = args.slice(at).map((x, i) => [options[i]?.name ?? "", x] as const);
      const defined = byPosition.filter(([, x]) => x !== undefined);
      args =
        byPosition.length > options.length
          ? [...given]
          : [...args.slice(0, at), { ...Object.fromEntries(defined), ...(rest as object) }];
    }
  }
  return Array.from(args, (x, i) => {
    const p = parameterAt(params, args, i);
    return p === undefined ? x : mendValue(p, x, device);
  });
}

// ---- what is wrong with a call ----

/** A value as a message names it. */
export const describe = (x: unknown): string => {
  const bit = bitOf(x);
  if (bit === STRING) return `the string "${x}"`;
  if (bit === PLAIN) return `an object { ${Object.keys(x as object).join(", ")} }`;
  const isObject = bit & (TENSOR | ARRAY | TYPED_ARRAY | INSTANCE);
  if (bit === FUNCTION) return "a function";
  return isObject ? `of type ${(x as object).constructor.name}` : String(x) + (bit === BIGINT ? "n" : "");
};

/** Whether at most `most` letters must change to make one of the other. */
function isNear(a: string, b: string, most: number): boolean {
  if (a === b) return true;
  if (most === 0) return false;
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  const [x, y] = [a.slice(i), b.slice(i)];
  const [xs, ys] = [x.slice(1), y.slice(1)];
  return isNear(xs, ys, most - 1) || isNear(xs, y, most - 1) || isNear(x, ys, most - 1);
}
/** The option that was meant: nearly the same letters, or one of the two in the other. */
function meant(given: string, keys: readonly string[]): string {
  const a = camel(given).toLowerCase();
  const found =
    keys.find((k) => isNear(a, k.toLowerCase(), a.length < 4 ? 1 : 2)) ??
    keys.find((k) => a.length > 2 && (k.toLowerCase().includes(a) || a.includes(k.toLowerCase())));
  return found === undefined ? "" : `; did you mean ${found}?`;
}

const list = (keys: ReadonlyMap<string, ParameterRule>): string => `{ ${[...keys.keys()].join(", ")} }`;
/** "a number, a string or a Tensor". Of "an array" and "an array of numbers" only the first is named. */
function expected({ kinds, keys }: ParameterRule): string {
  if (keys !== undefined) return `options ${list(keys)}`;
  const letters = kinds.includes("m") ? kinds.replaceAll(/[al]/g, "") : kinds;
  const words = [...new Set(Array.from(letters, (k) => KINDS[k]?.[1]))].filter(Boolean);
  return words.join(", ").replace(/, (?=[^,]*$)/, " or ");
}

/** The names of a function's parameters, out of its text; none where a minifier has changed them. */
function namesIn(readable: unknown): string[] {
  const all = /\(([\s\S]*?)\)\s*\{/.exec(String(readable))?.[1] ?? "";
  const isMinified = !String(namesIn).includes("readable");
  // a bundler numbers names that it has twice
  return isMinified ? [] : all.split(/,(?![^[]*\])/).map((p) => /^\s*_?([^\W\d]*)/.exec(p)?.[1] ?? "");
}

interface Guarded {
  readonly name: string;
  readonly overloads: readonly ParameterRules[];
  /** the function, for the names of its parameters */
  readonly fn: unknown;
}

/** What does not fit: the argument, what it is and what it should be. */
function fault(params: ParameterRules, args: readonly unknown[], names: readonly string[]): string {
  const at = misfit(params, args);
  const p = parameterAt(params, args, at);
  const x = args[at];
  const label = p?.name || (p?.keys ? "" : names[at]) || `argument ${at + 1}`;
  if (p === undefined)
    return `argument ${at + 1} is ${describe(x)}, expected at most ${params.length} arguments`;
  if (x === undefined) return `${label} is missing, expected ${expected(p)}`;
  const bit = bitOf(x);
  if (bit === PLAIN && p.keys !== undefined) {
    const key = misfitOption(p.keys, x as Options) as string;
    const option = p.keys.get(key);
    if (option === undefined) return `unknown option ${key}${meant(key, [...p.keys.keys()])}`;
    return `option ${key} is ${describe((x as Options)[key])}, expected ${expected(option)}`;
  }
  if (bit === ARRAY && p.accepts & ARRAY) {
    const bad = (x as unknown[]).find((item) => (p.items & bitOf(item)) === 0);
    return `an element of ${label} is ${describe(bad)}, expected ${expected(p)}`;
  }
  return `${label} is ${describe(x)}, expected ${expected(p)}`;
}

function complain(
  { name, overloads, fn }: Guarded,
  given: readonly unknown[],
  device: string | undefined,
): never {
  const names = overloads.length > 1 ? [] : namesIn(fn);
  const forms = overloads.map((params) => {
    const shown = params.map((p, i) => {
      const word = p.keys === undefined ? p.name || names[i] || expected(p) : list(p.keys);
      return p.rest ? `${word}, …` : word;
    });
    return `${/^[A-Z]\w*$/.test(name) ? "new " : ""}${name}(${shown.join(", ")})`;
  });
  // of the overloads, that which fits furthest
  let [at, what] = [-1, ""];
  for (const params of overloads) {
    const args = mend(params, given, device);
    const position = misfit(params, args);
    // an array that has a wrong element fits better than another kind
    const kind = parameterAt(params, args, position)?.accepts ?? 0;
    const reached = position + (kind & bitOf(args[position]) ? 0.5 : kind ? 0.1 : 0);
    if (reached > at) [at, what] = [reached, fault(params, args, names)];
  }
  throw new ArgumentError(`${name}: ${what}; write ${forms.join(" or ")}`);
}

// ---- guards ----

/** The arguments, if they fit or mean one thing only. */
function checked(guarded: Guarded, args: unknown[], self: unknown): unknown[] {
  const { overloads } = guarded;
  for (const params of overloads) if (misfit(params, args) < 0) return args;
  const device = self instanceof tensor.type ? self.device : undefined;
  for (const params of overloads) {
    const mended = mend(params, args, device);
    if (misfit(params, mended) < 0) return mended;
  }
  return complain(guarded, args, device);
}

/** A check for a function that cannot be wrapped: its arguments go in, and come out as they should be. */
export function checker<A extends unknown[]>(name: string, signature: string): (args: unknown[]) => A {
  let guarded: Guarded | undefined;
  return (args) => {
    guarded ??= { name, fn: "", overloads: parse(signature) };
    return checked(guarded, args, undefined) as A;
  };
}

type AnyFunction = (this: unknown, ...args: never[]) => unknown;

// ---- operands ----

/** What becomes of a method's object and arguments before it runs; set by the first `Tensor.autocast`. */
type Adapt = (method: string, operands: readonly unknown[]) => readonly unknown[];
let adapt: Adapt | undefined;
export function setAdapt(given: Adapt): void {
  adapt = given;
}
/** The function of a method, for layers, which call it without the method. */
export const asMethod =
  <A extends readonly unknown[], R>(name: string, fn: (...operands: A) => R) =>
  (...operands: A): R =>
    fn(...((adapt?.(name, operands) ?? operands) as A));

// ---- what a guard does ----

/** `fn` behind the check of its arguments; without a signature there is none. A method has an `owner`. */
export function guard<F extends AnyFunction>(
  name: string,
  fn: F,
  signature: () => string | undefined,
  owner?: Class,
): F {
  let guarded: Guarded | undefined;
  let waits = false;
  function check(this: unknown, ...given: unknown[]): unknown {
    let args = given;
    if (guarded === undefined) {
      const text = signature();
      // `~`: errors come by the promise
      waits = text?.startsWith("~") === true;
      if (text !== undefined) guarded = { name, fn, overloads: parse(text.replace("~", "")) };
    }
    try {
      if (guarded !== undefined) args = checked(guarded, given, this);
    } catch (e) {
      if (waits) return Promise.reject(e);
      throw e;
    }
    if (owner !== undefined && !(this instanceof owner)) {
      throw new ArgumentError(`${name}: write (x) => object.forward(x)`);
    }
    if (adapt === undefined) return fn.apply(this, args as never[]);
    const [self, ...operands] = adapt(name, [this, ...args]);
    return fn.apply(self, operands as never[]);
  }
  return check as unknown as F;
}

/**
 * Puts the check before the methods of `owner` that are not in `rest`, in the order of their declaration, and
 * gives their number.
 */
export function guardMethods(
  owner: object,
  rest: ReadonlySet<unknown>,
  signatureAt: (i: number) => string,
): number {
  let i = 0;
  for (const name of Object.getOwnPropertyNames(owner)) {
    const value: unknown = Object.getOwnPropertyDescriptor(owner, name)?.value;
    if (typeof value !== "function" || name === "constructor" || rest.has(value)) continue;
    const signature = signatureAt(i++);
    (owner as Record<string, unknown>)[name] = guard(name, value as AnyFunction, () => signature);
  }
  return i;
}

type Class = abstract new (...args: never[]) => object;

/** `type` behind the check of what its constructor and its methods (`name signature;…`) are given. */
export function guardClass<C extends Class>(name: string, type: C, signature: string, methods: string): C {
  let guarded: Guarded | undefined;
  const prepare = (): Guarded => {
    const { prototype } = type as unknown as { prototype: Record<string, AnyFunction> };
    const define = (key: string, value: unknown): void =>
      void Object.defineProperty(prototype, key, { value, configurable: true, writable: true });
    for (const [, key, text] of methods.matchAll(/(\w+) ?([^;]*)/g)) {
      define(
        key as string,
        guard(`${name}.${key}`, prototype[key as string] as AnyFunction, () => text, type),
      );
    }
    define("constructor", proxy);
    return { name, fn: "", overloads: parse(signature) };
  };
  const proxy: C = new Proxy(type, {
    apply() {
      throw new ArgumentError(`${name} is a class; write new ${name}(…)`);
    },
    construct(target, args: unknown[], self) {
      guarded ??= prepare();
      // a subclass without a constructor of its own passes all that it is given
      const given = signature === "" && self !== proxy ? args : checked(guarded, args, undefined);
      return Reflect.construct(target as unknown as NewableFunction, given, self);
    },
  });
  return proxy;
}
