// Collects garbage by hand (the tests run with --expose-gc) and lets finalisers run, so that what nobody
// holds is given back before a test looks at the counters.

import { GlobalCounters } from "gradloom";

const nextTask = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export async function collect(): Promise<void> {
  const { gc } = globalThis;
  if (gc === undefined) throw new Error("run node with --expose-gc");
  let quiet = 0;
  // a finaliser may free what keeps another object alive: go on until nothing changes twice
  for (let i = 0; i < 50 && quiet < 2; i++) {
    const before = GlobalCounters.buffers;
    gc();
    await nextTask();
    await nextTask();
    quiet = GlobalCounters.buffers === before ? quiet + 1 : 0;
  }
}
