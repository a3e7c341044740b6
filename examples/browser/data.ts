// The data of the pages, downloaded once and kept by the browser (nn.fetchCached): the digits of MNIST, and
// stories15M with its tokenizer. In: what to call while it comes. Out: plain arrays; no tensor is made here.

import { nn } from "gradloom";

/** The bytes that have come, and all that will, once that is known. */
export type OnProgress = (received: number, total: number | undefined) => void;

/** Images of 28 x 28 bytes, and the digit that each one shows. */
export interface Digits {
  readonly images: Uint8Array;
  readonly labels: Int32Array;
}

const DIGITS = ["train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"];

async function unzipped(file: Blob): Promise<Uint8Array> {
  const bytes = file.stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(bytes).arrayBuffer());
}

/** The digits to learn from and those to be tested on. */
export async function loadDigits(onProgress: OnProgress): Promise<{ train: Digits; test: Digits }> {
  const parts = DIGITS.map(() => ({ received: 0, total: undefined as number | undefined }));
  const tell = (): void => {
    const received = parts.reduce((sum, part) => sum + part.received, 0);
    const isKnown = parts.every((part) => part.total !== undefined);
    onProgress(received, isKnown ? parts.reduce((sum, part) => sum + (part.total ?? 0), 0) : undefined);
  };
  const load = async (name: string, i: number): Promise<Uint8Array> => {
    const file = await nn.fetchCached(`data/${name}-ubyte.gz`, {
      onProgress: (received, total) => {
        parts[i] = { received, total };
        tell();
      },
    });
    return nn.datasets.parseIdx(await unzipped(file), name).data;
  };
  const [x, y, xTest, yTest] = (await Promise.all(DIGITS.map(load))) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ];
  return {
    train: { images: x, labels: Int32Array.from(y) },
    test: { images: xTest, labels: Int32Array.from(yTest) },
  };
}

/** The file of stories15M. */
export const loadStoriesFile = (onProgress: OnProgress): Promise<Blob> =>
  nn.fetchCached("data/stories15m.bin", { onProgress });
