// The page of samples.test.ts: a DataLoader whose samples web workers read.

import type { Tensor } from "gradloom";
import { DataLoader } from "gradloom/nn";

interface Sample {
  readonly x: Float32Array;
  readonly i: number;
}
const page = {
  async read() {
    const seen: unknown[] = [];
    const url = new URL("/samples.js", location.href);
    const loader = new DataLoader<URL, Sample>(url, { batchSize: 2, workers: 2, args: { length: 5 } });
    for await (const { x, i } of loader) seen.push([await i.tolist(), await (x as Tensor).tolist()]);
    return seen;
  },
  async problems() {
    const why = (options: object, address = "/samples.js") =>
      (async () => {
        for await (const _ of new DataLoader(address, options)) {
        }
        return "read";
      })().catch((e: Error) => `${e.name}: ${e.message}`);
    return [await why({ args: { length: 2, throws: 1 } }), await why({}, "/none.js")];
  },
};
export type SamplesPage = typeof page;
Object.assign(globalThis, { gradloomSamples: page });
