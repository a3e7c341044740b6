// The language of the random programs: a JSON object of inputs, calls of public Tensor methods, and outputs.
// The oracle (scripts/oracle), the reference interpreter, the runner and the fuzzer all read it.
// A node is an input or a result; nodes are numbered in order, inputs first.

/** The types of elements that programs use. */
export type TypeName =
  | "bool"
  | "int8"
  | "uint8"
  | "int16"
  | "uint16"
  | "int32"
  | "uint32"
  | "int64"
  | "uint64"
  | "float16"
  | "bfloat16"
  | "float32"
  | "float64";

/** One element: 64-bit integers are bigint, bool is 0 or 1. */
export type Scalar = number | bigint;

/**
 * JSON has no NaN, infinities, -0 and 64-bit integers: these are strings "#nan", "#inf", "#-inf", "#-0",
 * "#12n".
 */
export type JsonScalar = number | string;

/** An argument of a call. "$3" is node 3, "#inf" a number that JSON lacks; anything else means itself. */
export type Arg = null | boolean | number | string | readonly Arg[] | { readonly [name: string]: Arg };

export type Input = readonly [type: TypeName, shape: readonly number[], values: readonly JsonScalar[]];

/**
 * `[method, receiver, ...arguments]`; a receiver of -1 calls the static method. Methods that return several
 * tensors add as many nodes. "assign" and "setitem" replace the value of their receiver, "realize" adds no
 * node, and `["backward", loss, [leaves]]` adds the gradients of the leaves.
 */
export type Call = readonly [method: string, receiver: number, ...args: Arg[]];

export interface Program {
  /** the class that it was made in, one of CLASSES */
  readonly c: ClassName;
  readonly in: readonly Input[];
  readonly ops: readonly Call[];
  readonly out: readonly number[];
  /** 1: the sign of a zero counts too */
  readonly z?: 1;
}

export const CLASSES = [
  "elementwise",
  "integer",
  "reduce",
  "movement",
  "product",
  "window",
  "index",
  "order",
  "network",
  "special",
  "graph",
  "gradient",
] as const;
export type ClassName = (typeof CLASSES)[number];
/** The class of a seed: all of them in turn. */
export const classOf = (seed: number): ClassName => CLASSES[seed % CLASSES.length] as ClassName;

const SPECIAL: Readonly<Record<string, number>> = {
  "#nan": NaN,
  "#inf": Infinity,
  "#-inf": -Infinity,
  "#-0": -0,
};

export function toJson(x: Scalar): JsonScalar {
  if (typeof x === "bigint") return `#${x}n`;
  if (Object.is(x, -0)) return "#-0";
  if (Number.isFinite(x)) return x;
  return Number.isNaN(x) ? "#nan" : x > 0 ? "#inf" : "#-inf";
}
export function fromJson(x: JsonScalar): Scalar {
  if (typeof x === "number") return x;
  if (x.endsWith("n") && x !== "#nan") return BigInt(x.slice(1, -1));
  const found = SPECIAL[x];
  if (found === undefined)
    throw new Error(
      `program: "${x}" is not an element; expected a number or one of #nan, #inf, #-inf, #-0, #12n`,
    );
  return found;
}

/** Whether an argument is the name of a node, as in "$3". */
export const isNode = (x: Arg): x is `$${number}` => typeof x === "string" && /^\$\d+$/.test(x);
export const nodeOf = (x: string): number => Number(x.slice(1));
export const node = (i: number): string => `$${i}`;

/** The argument with its nodes and special numbers replaced; `T` is what stands for a tensor. */
export type Resolved<T> =
  | null
  | undefined
  | boolean
  | Scalar
  | string
  | T
  | readonly Resolved<T>[]
  | { readonly [name: string]: Resolved<T> };

export function resolve<T>(arg: Arg, tensorOf: (i: number) => T): Resolved<T> {
  if (isNode(arg)) return tensorOf(nodeOf(arg));
  if (typeof arg === "string") return arg.startsWith("#") ? fromJson(arg) : arg;
  if (arg === null || typeof arg !== "object") return arg;
  if (Array.isArray(arg)) return arg.map((a: Arg) => resolve(a, tensorOf));
  return Object.fromEntries(Object.entries(arg).map(([k, v]) => [k, resolve(v, tensorOf)]));
}

/** The nodes that an argument names. */
export function nodesIn(arg: Arg): number[] {
  if (isNode(arg)) return [nodeOf(arg)];
  if (arg === null || typeof arg !== "object") return [];
  return Object.values(arg).flatMap((a) => nodesIn(a as Arg));
}
/** The argument with the nodes it names numbered anew. */
export function renumber(arg: Arg, to: (i: number) => number): Arg {
  if (isNode(arg)) return node(to(nodeOf(arg)));
  if (arg === null || typeof arg !== "object") return arg;
  if (Array.isArray(arg)) return arg.map((a: Arg) => renumber(a, to));
  return Object.fromEntries(Object.entries(arg).map(([k, v]) => [k, renumber(v, to)]));
}

/** Methods that give several tensors, and how many; `split` and `chunk` depend on their arguments. */
export const SEVERAL: Readonly<Record<string, number>> = {
  sort: 2,
  topk: 2,
  kthvalue: 2,
  cummax: 2,
  cummin: 2,
  median: 2,
  maxWithIndices: 2,
  minWithIndices: 2,
  varMean: 2,
  maxPool1dWithIndices: 2,
  maxPool2dWithIndices: 2,
};

/** The program as a script that a person can run. */
export function snippet(p: Program, device: string, env: Readonly<Record<string, number>> = {}): string {
  const lines = ['import { Device, Tensor } from "gradloom";', `await Device.open("${device}");`];
  const names: string[] = [];
  const text = (a: Arg): string => {
    if (isNode(a)) return names[nodeOf(a)] ?? "?";
    if (typeof a === "string" && a.startsWith("#")) return number(a);
    if (a === null || typeof a !== "object") return JSON.stringify(a);
    if (Array.isArray(a)) return `[${a.map(text).join(", ")}]`;
    return `{ ${Object.entries(a)
      .map(([k, v]) => `${k}: ${text(v)}`)
      .join(", ")} }`;
  };
  const leaves = new Set(p.ops.flatMap((op) => (op[0] === "backward" ? (op[2] as number[]) : [])));
  p.in.forEach(([type, shape, values], i) => {
    names.push(`t${i}`);
    const options = `{ dtype: "${type}", device: "${device}"${leaves.has(i) ? ", requiresGrad: true" : ""} }`;
    lines.push(
      `const t${i} = new Tensor([${values.map(number).join(", ")}], ${options}).reshape(${JSON.stringify(shape)})${leaves.has(i) ? ".detach()" : ""};`,
    );
    if (leaves.has(i)) lines.push(`t${i}.requiresGrad = true;`);
  });
  for (const [method, receiver, ...args] of p.ops) {
    if (method === "realize") lines.push(`await ${names[receiver]}.realize();`);
    else if (method === "backward") {
      lines.push(`${names[receiver]}.backward();`);
      for (const leaf of args[0] as number[]) names.push(`${names[leaf]}.grad`);
    } else {
      const call = `${receiver < 0 ? "Tensor" : names[receiver]}.${method}(${args.map(text).join(", ")})`;
      const made = resultCount(method, args);
      const fresh = Array.from({ length: made }, (_, i) => `t${names.length + i}`);
      names.push(...fresh);
      lines.push(made === 1 ? `const ${fresh[0]} = ${call};` : `const [${fresh.join(", ")}] = ${call};`);
    }
  }
  const outs = p.out.map((i) => names[i]);
  lines.push(
    `await Tensor.realize(${outs.join(", ")});`,
    ...outs.map((o) => `console.log(await ${o}.tolist());`),
  );
  const settings = Object.entries(env).map(([k, v]) => `${k}=${v}`);
  return [`// ${settings.length > 0 ? `${settings.join(" ")} ` : ""}npx tsx program.ts`, ...lines].join("\n");
}
const number = (x: JsonScalar): string => {
  const v = fromJson(x);
  return typeof v === "bigint" ? `${v}n` : Object.is(v, -0) ? "-0" : String(v);
};

/** How many nodes a call adds. */
export function resultCount(method: string, args: readonly Arg[]): number {
  if (method === "realize") return 0;
  if (method === "backward") return (args[0] as readonly number[]).length;
  if (method === "split") return (args[0] as readonly number[]).length;
  if (method === "median" && args.length === 0) return 1;
  return SEVERAL[method] ?? 1;
}
