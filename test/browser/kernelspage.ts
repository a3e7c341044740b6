// The page of kernels.test.ts: one product with what follows it, and whether anything had to be lowered.

import { Tensor } from "gradloom";
import "gradloom/neural";
import { passTimes } from "../../src/codegen/pass.ts";
import { KernelStore } from "../../src/host/kernelstore.ts";

const DATABASE = "gradloom-kernels";
interface Record {
  readonly build: string;
  readonly kernel: { readonly code: Uint8Array };
}
const answered = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

const page = {
  /** What the page computes, and whether it lowered a kernel for it. */
  async compute(): Promise<{ value: number; lowered: boolean }> {
    const x = Tensor.arange(64 * 64)
      .reshape(64, 64)
      .mul(1e-3);
    const value = await x.matmul(x.transpose(0, 1)).softmax(1).mul(x).sum().item();
    return { value: value as number, lowered: passTimes().has("lower") };
  },
  /** Keeps so many kernels of a build of its own at once. */
  async keep(count: number): Promise<void> {
    let store: KernelStore | undefined;
    while (store === undefined) store = await KernelStore.open("many");
    const sizes = { globalSize: [1], localSize: [], globals: [0], ops: 1, bytes: 1, buffers: 1, vals: 0 };
    const code = new Uint8Array(8);
    for (let i = 0; i < count; i++)
      store.keep(`k${i}`, { name: "k", code, ...sizes, repeats: false, isPart: false, dynamicShared: 0 });
  },
  /** The builds of all kept kernels; `damage`: changes a byte of each. */
  async kept(damage = false): Promise<string[]> {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => void request.result.createObjectStore("kernels");
    const db = await answered(request);
    const store = db.transaction("kernels", "readwrite").objectStore("kernels");
    const [keys, all] = await Promise.all([answered(store.getAllKeys()), answered(store.getAll())]);
    const records = all as Record[];
    for (const [i, record] of records.entries()) {
      const { code } = record.kernel;
      if (!damage) continue;
      code[code.length >> 1] = 1 ^ (code[code.length >> 1] as number);
      await answered(store.put(record, keys[i]));
    }
    db.close();
    return records.map((r) => r.build);
  },
};
export type KernelsPage = typeof page;
Object.assign(globalThis, { gradloomKernels: page });
