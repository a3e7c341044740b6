// Areas of Tensor that a page loads only if it asks for them. The class has their methods, and finds the
// functions here: `import "gradloom/conv"` puts those of an area in place, `import "gradloom/all"` puts
// all. In a page none is there by itself (browser.ts); in Node all are, with src/ from the start (node.ts),
// in the built package from the first use (built.ts). `#tensor/ondemand` is one of the three.

import { guard, guardMethods } from "../arguments.ts";
import { ArgumentError } from "../errors.ts";
import { AREAS, CORE, METHODS, STATICS } from "./signatures.ts";

/** The functions of each area; types only, so that nothing is loaded. */
interface Areas {
  readonly conv: typeof import("./conv/index.ts");
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
 * says what to import.
 */
export function guardTensor(type: { readonly prototype: object }): void {
  const rest = new Set<unknown>();
  for (const list of AREAS.split(";")) {
    const [name, ...methods] = list.split(" ") as [keyof Areas, ...string[]];
    methods.forEach((method, i) => {
      const key = method.replace(".", "");
      const isStatic = key !== method;
      const owner = (isStatic ? type : type.prototype) as Record<string, Method>;
      function call(this: unknown, ...args: unknown[]): unknown {
        const fn = (area(name) as unknown as Record<string, Method>)[key] as Method;
        return isStatic ? fn(...args) : fn(this, ...args);
      }
      const guarded = guard(key, owner[key] ?? call, () => {
        load(name);
        return signatures[name]?.[i];
      });
      Object.defineProperty(owner, key, { value: guarded, configurable: true, writable: true });
      rest.add(guarded);
    });
  }
  const core = CORE.split(";");
  const guardCore = (owner: object, numbers: readonly string[]): void =>
    guardMethods(owner, rest, (i) => core[Number(numbers[i])] as string);
  guardCore(type.prototype, METHODS.split(" "));
  guardCore(type, STATICS.split(" "));
}
type Method = (...args: unknown[]) => unknown;

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
