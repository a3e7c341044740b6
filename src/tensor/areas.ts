// Areas of Tensor that a page loads only if it asks for them. The class has their methods, and finds the
// functions here: `import "gradloom/conv"` puts those of an area in place, `import "gradloom/all"` puts
// all. In a page none is there by itself (browser.ts); in Node all are, with src/ from the start (node.ts),
// in the built package from the first use (built.ts). `#tensor/ondemand` is one of the three.

import { ArgumentError } from "../errors.ts";

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

export function install<K extends keyof Areas>(name: K, functions: Areas[K]): void {
  loaded[name] = functions;
}
let loadAll: (() => void) | undefined;
/** Where code can be loaded at once, `area` does so when one is missing. */
export function loadWith(load: () => void): void {
  loadAll = load;
}
export function area<K extends keyof Areas>(name: K): Areas[K] {
  if (loaded[name] === undefined) loadAll?.();
  return loaded[name] ?? missing(name);
}

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
