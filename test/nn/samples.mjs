// A dataset for worker threads; `args` says what it does.

import { threadId } from "node:worker_threads";

const all = new Float32Array(40).map((_, i) => i);

export default function dataset(args = {}) {
  if (args.fails) throw new RangeError("no such data");
  return {
    length: args.length ?? 10,
    get(i) {
      if (args.exit === i) process.exit(3);
      if (args.throws === i) return lost(i);
      if (args.hangs === i) for (;;);
      if (args.log !== undefined) Atomics.add(args.log, 0, 1);
      if (args.clones === i) return () => i;
      // later samples are quicker: the order must be kept all the same
      const sample = { i, x: all.subarray(4 * i, 4 * i + 4), b: Buffer.from([i]), name: `s${i}`, threadId };
      return args.slow ? new Promise((done) => setTimeout(done, (10 - i) * 2, sample)) : sample;
    },
  };
}
function lost(i) {
  throw new RangeError(`sample ${i} is lost`);
}
