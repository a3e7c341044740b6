// Singular vectors are determined up to their sign: a pair of ours that points the other way than torch's is
// turned before it is compared and before the loss is taken of it. Those of full matrices that belong to no
// singular value are any basis of what is left.

import { Tensor } from "gradloom";
import { isTensor, type Raw, type Sample, toNumber } from "./sample.ts";

export async function aligned(
  sample: Sample,
  outs: readonly Tensor[],
  wants: readonly Raw[],
): Promise<readonly Tensor[]> {
  const [u, s, vh] = outs;
  const [want] = wants;
  if (sample.op !== "linalg.svd" || u === undefined || s === undefined || vh === undefined) return outs;
  if (want === undefined || !isTensor(want) || u.size === 0 || u.shape.join() !== want.s.join()) return outs;
  const [rows, columns] = u.shape.slice(-2) as [number, number];
  const data = await u.data();
  const signs = Array.from({ length: u.size / rows }, (_, i) => {
    const start = Math.floor(i / columns) * rows * columns + (i % columns);
    let dot = 0;
    for (let r = 0; r < rows; r++) {
      dot += Number(data[start + r * columns]) * toNumber(want.v[start + r * columns] as number);
    }
    return dot < 0 ? -1 : 1;
  });
  const lead = u.shape.slice(0, -2);
  const turn = new Tensor(signs, { dtype: u.dtype, device: u.device }).reshape([...lead, columns]);
  const k = vh.shape.at(-2) as number;
  const pairs = s.shape.at(-1) as number;
  const upTo = turn.narrow(-1, 0, pairs).pad([0, k - pairs], 1);
  return [
    nullAligned(u.mul(turn.unsqueeze(-2)), wants[0] as Raw, pairs),
    s,
    nullAligned(vh.mul(upTo.unsqueeze(-1)).transpose(-1, -2), wants[2] as Raw, pairs, true).transpose(-1, -2),
  ];
}

/**
 * The vectors beyond the singular values span a space in which any basis will do: ours becomes what torch's
 * is in that space. Where the spaces differ the result differs from torch's.
 */
function nullAligned(vectors: Tensor, want: Raw, pairs: number, transposed = false): Tensor {
  const columns = vectors.shape.at(-1) as number;
  if (columns === pairs || !isTensor(want)) return vectors;
  const flat = new Tensor(
    want.v.map((v) => toNumber(v as number)),
    { dtype: "float32", device: vectors.device },
  );
  const theirs = transposed ? flat.reshape(want.s).transpose(-1, -2) : flat.reshape(want.s);
  const ours = vectors.narrow(-1, pairs, columns - pairs);
  const basis = ours.matmul(
    ours
      .transpose(-1, -2)
      .matmul(theirs.narrow(-1, pairs, columns - pairs))
      .detach(),
  );
  return vectors.narrow(-1, 0, pairs).cat(basis, -1);
}
