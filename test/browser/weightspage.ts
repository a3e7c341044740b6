// The page of weights.test.ts: weights that are fetched once and kept.

import { nn } from "gradloom";

const page = {
  /** The values of a file of weights, and how often it was fetched. */
  async weights(address: string, options?: { revalidate: boolean }): Promise<number[]> {
    const { w } = await nn.safeLoad(await nn.fetchCached(address, options));
    return Array.from((await w?.data()) ?? [], Number);
  },
  /** What onProgress is told of a download: the bytes so far, and all of them. */
  async progress(address: string): Promise<[number, number | undefined][]> {
    const told: [number, number | undefined][] = [];
    const onProgress = (received: number, total: number | undefined) => void told.push([received, total]);
    await nn.fetchCached(address, { onProgress });
    return told;
  },
  forget: (address?: string) => nn.forgetCached(address),
  /** Cuts off what is kept. */
  async damage(): Promise<void> {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("gradloom-files");
    for await (const [name, handle] of (
      folder as unknown as { entries(): AsyncIterable<[string, FileSystemFileHandle]> }
    ).entries()) {
      if (!name.endsWith(".bin")) continue;
      const written = await handle.createWritable();
      await written.write("x");
      await written.close();
    }
  },
};
export type WeightsPage = typeof page;
Object.assign(globalThis, { gradloomWeights: page });
