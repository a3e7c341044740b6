// How a torch call becomes one of ours. Most operators need only the names of their parameters in torch's
// order; a spec says which of them we take by position and which in the options at the end:
//   "dim keepdim *dtype ~out"   t.method(dim, keepdim, { dtype }); `out` is accepted and left alone.

import { Tensor } from "gradloom";
import type { Arg } from "./sample.ts";

export type Result = Tensor | boolean | readonly Tensor[] | Unset;
/** A result whose values nobody knows: its shape and type count. */
export class Unset {
  readonly tensor: Tensor;
  constructor(tensor: Tensor) {
    this.tensor = tensor;
  }
}
export type Handler = (call: Call) => Result | Promise<Result>;
/** torch's name -> handler, or a spec for the method of the same name in camelCase. */
export type Table = Readonly<Record<string, Handler | string>>;

/** A sample that we cannot run, with the reason. */
export class Unsupported extends Error {}

export const camel = (name: string): string =>
  name.replaceAll(/_+([a-z0-9])/g, (_, c: string) => c.toUpperCase()).replace(/_$/, "");

type Method = (this: unknown, ...args: unknown[]) => Result | Promise<Result>;

/** The arguments of one call by their torch names. */
export class Call {
  readonly input: Arg;
  readonly variant: string;
  readonly #args: readonly Arg[];
  readonly #kwargs: Readonly<Record<string, Arg>>;
  constructor(input: Arg, args: readonly Arg[], kwargs: Readonly<Record<string, Arg>>, variant = "") {
    this.input = input;
    this.#args = args;
    this.#kwargs = kwargs;
    this.variant = variant;
  }

  /**
   * The arguments under the given names (those of the parameters after the input); an unknown one is refused.
   */
  named<K extends string>(...names: readonly K[]): Record<K, Arg> {
    if (this.#args.length > names.length) {
      throw new Unsupported(
        `${this.#args.length} positional arguments, we know ${names.length} (${names.join(", ")})`,
      );
    }
    const odd = Object.keys(this.#kwargs).find((k) => !(names as readonly string[]).includes(k));
    if (odd !== undefined) throw new Unsupported(`argument ${odd} is not mapped`);
    const pairs = names.map((n, i) => [n, i < this.#args.length ? this.#args[i] : this.#kwargs[n]] as const);
    return Object.fromEntries(pairs) as Record<K, Arg>;
  }
  /** How many arguments came by position. */
  get positional(): number {
    return this.#args.length;
  }
  has(kwarg: string): boolean {
    return this.#kwargs[kwarg] !== undefined;
  }
  get tensor(): Tensor {
    if (this.input instanceof Tensor) return this.input;
    throw new Unsupported("the input is not a tensor");
  }
  get tensors(): readonly Tensor[] {
    return Array.isArray(this.input) ? (this.input as Tensor[]) : [this.tensor];
  }
}

/** Calls a method by its name, so that a missing one is counted as unsupported and nothing else breaks. */
export function invoke(
  target: object,
  method: string,
  ...args: readonly unknown[]
): Result | Promise<Result> {
  const fn = (target as Record<string, unknown>)[method];
  if (typeof fn !== "function") {
    throw new Unsupported(`Tensor has no ${typeof target === "function" ? "static " : ""}method ${method}`);
  }
  const last = args.findLastIndex((a) => a !== undefined);
  return (fn as Method).apply(target, args.slice(0, last + 1));
}

/** The handler that a spec describes. */
export function bySpec(
  spec: string,
  method: string,
  target: (call: Call) => object,
  first: (call: Call) => Arg[],
): Handler {
  const parts = spec.split(" ").filter((p) => p !== "");
  const names = parts.map((p) => p.replace(/^[*~]/, ""));
  return (call) => {
    const given = call.named(...names);
    const positional = parts.filter((p) => /^\w/.test(p)).map((p) => given[p]);
    const options = parts
      .filter((p) => p.startsWith("*"))
      .flatMap((p) => {
        const value = given[p.slice(1)];
        return value === undefined ? [] : [[camel(p.slice(1)), value] as const];
      });
    const tail = options.length === 0 ? [] : [Object.fromEntries(options)];
    const all = [...first(call), ...positional];
    return invoke(target(call), method, ...all, ...tail);
  };
}
/** A method of the input. */
export const method = (name: string, spec = ""): Handler =>
  bySpec(
    spec,
    name,
    (c) => c.tensor,
    () => [],
  );
/** A static method of Tensor that takes the input (a list of tensors, a number, a shape) first. */
export const statically = (name: string, spec = ""): Handler =>
  bySpec(
    spec,
    name,
    () => Tensor,
    (c) => [c.input],
  );
