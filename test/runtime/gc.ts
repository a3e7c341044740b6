// Collects garbage by hand (the tests run with --expose-gc) and lets finalisers run, so that what nobody
// holds is given back before a test looks at the counters.

import { GlobalCounters } from "gradloom";

// Finalisers are tasks that the engine posts when it likes: a timer lets tasks of every kind come first.
const nextTask = (): Promise<void> => new Promise((resolve) => setTimeout(() => setImmediate(resolve), 1));

export async function collect(): Promise<void> {
  const { gc } = globalThis;
  if (gc === undefined) throw new Error("run node with --expose-gc");
  let quiet = 0;
  // a finaliser may free what keeps another object alive: go on until nothing changes three times
  for (let i = 0; i < 50 && quiet < 3; i++) {
    const before = GlobalCounters.buffers;
    gc();
    await nextTask();
    await nextTask();
    quiet = GlobalCounters.buffers === before ? quiet + 1 : 0;
  }
}
