// Areas of Tensor that a page loads only if it asks for them. The class has their methods, and finds the
// functions here: `import "gradloom/conv"` puts those of an area in place, `import "gradloom/all"` puts
// all. In a page none is there by itself (browser.ts); in Node all are, with src/ from the start (node.ts),
// in the built package from the first use (built.ts). `#tensor/ondemand` is one of the three.

import { guard, guardMethods } from "../arguments.ts";
import { ArgumentError } from "../errors.ts";
import { apart } from "./core.ts";
import { AREAS, CORE, METHODS, STATICS } from "./signatures.ts";
import type { Tensor } from "./tensor.ts";

/** The functions of each area; types only, so that nothing is loaded. */
interface Areas {
  readonly autocast: typeof import("./autocast/index.ts");
  readonly conv: typeof import("./conv/index.ts");
  readonly image: typeof import("./image/index.ts");
  readonly neural: typeof import("./neural/ondemand.ts");
  readonly linalg: typeof import("./linalg/ondemand.ts");
  readonly losses: typeof import("./losses/index.ts");
  readonly distances: typeof import("./losses/ondemand.ts");
  readonly movement: typeof import("./movement/rearrange.ts");
  readonly order: typeof import("./reduce/ondemand.ts");
  readonly random: typeof import("./random/distributions.ts");
  readonly shard: typeof import("./movement/shard.ts");
  readonly scatter: typeof import("./indexing/ondemand.ts");
  readonly special: typeof import("./math/ondemand.ts");
}
const loaded: { -readonly [K in keyof Areas]?: Areas[K] } = {};
/** The signatures of the methods of each area that is there, in the order of the class. */
const signatures: Record<string, readonly string[]> = {};

export function install<K extends keyof Areas>(name: K, functions: Areas[K], texts: string): void {
  loaded[name] = functions;
  signatures[name] = texts.split(";");
}
let loadAll: (() => void) | undefined;
/** Where code can be loaded at once, `area` does so when one is missing. */
export function loadWith(load: () => void): void {
  loadAll = load;
}
function load(name: string): void {
  if (signatures[name] === undefined) loadAll?.();
}
export function area<K extends keyof Areas>(name: K): Areas[K] {
  load(name);
  return loaded[name] ?? missing(name);
}

/**
 * Puts the check of arguments before all methods of Tensor. A method of an area that only calls its function
 * is left out of a page's build, and made here. If the area is not there, there is nothing to check: the call
 * says what to import. False: the class has other methods than signatures.ts.
 */
export function guardTensor(type: { readonly prototype: object }): boolean {
  const { prototype } = type;
  const rest = new Set<unknown>();
  // beside the class and not in it: engines copy the whole table of a class whenever a method is added
  const added = Object.create(Object.getPrototypeOf(prototype));
  for (const list of AREAS.split(";")) {
    const [name, ...methods] = list.split(" ") as [keyof Areas, ...string[]];
    methods.forEach((method, i) => {
      const key = method.replaceAll(/\W/g, "");
      const isStatic = method.startsWith(".");
      const owner = (isStatic ? type : prototype) as Record<string, AreaMethod>;
      function call(this: unknown, ...args: unknown[]): unknown {
        const fn = (area(name) as unknown as Record<string, AreaMethod>)[key] as AreaMethod;
        const made = isStatic ? fn(...args) : fn(this, ...args);
        if (!method.endsWith("'")) return made;
        const operands = (isStatic ? args[0] : [this]) as readonly Tensor[];
        const copy = (t: Tensor): Tensor => apart(t, ...operands);
        return Array.isArray(made) ? made.map(copy) : copy(made as Tensor);
      }
      const own = owner[key];
      const value = guard(key, own ?? call, () => {
        load(name);
        return signatures[name]?.[i];
      });
      rest.add(value);
      if (own !== undefined) owner[key] = value;
      else Object.defineProperty(isStatic ? type : added, key, { value, configurable: true, writable: true });
    });
  }
  const core = CORE.split(";");
  // signatures go by position: with another number of methods each would get that of a neighbour
  const guardCore = (owner: object, marks: string): boolean =>
    guardMethods(owner, rest, (i) => core[marks.charCodeAt(i) - 40] as string) === marks.length;
  const isWhole = [guardCore(prototype, METHODS), guardCore(type, STATICS)].every(Boolean);
  Object.setPrototypeOf(prototype, added);
  return isWhole;
}
type AreaMethod = (...args: unknown[]) => unknown;

/** In the place of an area that is not there: says which of its functions was wanted. */
function missing<K extends keyof Areas>(name: K): Areas[K] {
  const get = (_: object, method: string | symbol): never => {
    throw new ArgumentError(
      `${String(method)}: this method of Tensor is in an area that the page has not loaded; ` +
        `add: import "gradloom/${name}" (or "gradloom/all" for every area)`,
    );
  };
  return new Proxy({}, { get }) as Areas[K];
}
