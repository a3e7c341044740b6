// The work of `npm run bench -- scatter`: what goes by an index, runs along a row or is put in order, with
// random shapes, as tensors and as plain loops over typed arrays. In: a source of random numbers. Out: for
// each work a function that makes the lazy results and one that computes the same with loops.

import { type DTypeName, Tensor } from "../../src/index.ts";

export interface Work {
  readonly name: string;
  /** what is realised; a value that the host needs on the way is awaited */
  readonly ours: () => Promise<Tensor>;
  readonly plain: () => ArrayLike<number>;
}
export type Pick = (least: number, most: number) => number;

/** Numbers from `least` to `most`, the same for the same seed. */
export function picker(seed: number): Pick {
  let state = seed >>> 0;
  return (least, most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return least + Math.floor((state / 2 ** 32) * (most - least + 1));
  };
}

const floats = (n: number, pick: Pick): Float32Array =>
  Float32Array.from({ length: n }, () => pick(-(2 ** 22), 2 ** 22) / 2 ** 20);
const ints = (n: number, most: number, pick: Pick): Int32Array =>
  Int32Array.from({ length: n }, () => pick(0, most - 1));
async function tensor(
  values: Float32Array | Int32Array,
  shape: readonly number[],
  dtype: DTypeName = values instanceof Float32Array ? "float32" : "int32",
): Promise<Tensor> {
  return await new Tensor(values, { dtype }).reshape(shape).contiguous().realize();
}

/** Rows added where an index says, to zeros or to a table. */
function addRows(to: Float32Array, index: Int32Array, rows: Float32Array, width: number): Float32Array {
  for (let i = 0; i < index.length; i++) {
    const [at, from] = [(index[i] as number) * width, i * width];
    for (let j = 0; j < width; j++) to[at + j] = (to[at + j] as number) + (rows[from + j] as number);
  }
  return to;
}

async function embedding(pick: Pick): Promise<Work> {
  const [rows, width, n] = [pick(5_000, 60_000), 4 * pick(8, 100), pick(1_000, 10_000)];
  const [index, g] = [ints(n, rows, pick), floats(n * width, pick)];
  const [i, weight, gradient] = [
    await tensor(index, [n]),
    await tensor(floats(rows * width, pick), [rows, width]),
    await tensor(g, [n, width]),
  ];
  weight.requiresGrad = true;
  return {
    name: `gradient of an embedding, ${n} rows of ${rows} x ${width}`,
    ours: async () => {
      weight.grad = undefined;
      i.embedding(weight).mul(gradient).sum().backward();
      return weight.grad as unknown as Tensor;
    },
    plain: () => addRows(new Float32Array(rows * width), index, g, width),
  };
}
async function gatherGradient(pick: Pick): Promise<Work> {
  const [batch, n, k] = [pick(50, 500), pick(200, 3000), pick(200, 2000)];
  const [index, g] = [ints(batch * k, n, pick), floats(batch * k, pick)];
  const [i, x, gradient] = [
    await tensor(index, [batch, k]),
    await tensor(floats(batch * n, pick), [batch, n]),
    await tensor(g, [batch, k]),
  ];
  x.requiresGrad = true;
  return {
    name: `gradient of gather(1), [${batch}, ${k}] of [${batch}, ${n}]`,
    ours: async () => {
      x.grad = undefined;
      x.gather(1, i).mul(gradient).sum().backward();
      return x.grad as unknown as Tensor;
    },
    plain: () => {
      const out = new Float32Array(batch * n);
      for (let b = 0; b < batch; b++)
        for (let j = 0; j < k; j++) {
          const at = b * n + (index[b * k + j] as number);
          out[at] = (out[at] as number) + (g[b * k + j] as number);
        }
      return out;
    },
  };
}
async function indexAdd(pick: Pick): Promise<Work> {
  const [rows, width, n] = [pick(1_000, 30_000), pick(10, 300), pick(5_000, 30_000)];
  const [index, x, y] = [ints(n, rows, pick), floats(rows * width, pick), floats(n * width, pick)];
  const [i, to, from] = [
    await tensor(index, [n]),
    await tensor(x, [rows, width]),
    await tensor(y, [n, width]),
  ];
  return {
    name: `indexAdd(0), ${n} rows to ${rows} x ${width}`,
    ours: async () => to.indexAdd(0, i, from),
    plain: () => addRows(x.slice(), index, y, width),
  };
}
async function vector(pick: Pick) {
  const [n, k] = [pick(10_000, 2_000_000), pick(500_000, 3_000_000)];
  const [index, x, y] = [ints(k, n, pick), floats(n, pick), floats(k, pick)];
  const tensors = [await tensor(index, [k]), await tensor(x, [n]), await tensor(y, [k])] as const;
  return { n, k, index, x, y, tensors };
}
async function scatterAdd(pick: Pick): Promise<Work> {
  const { n, k, index, x, y, tensors } = await vector(pick);
  const [i, to, from] = tensors;
  return {
    name: `scatterAdd(0), ${k} to ${n}`,
    ours: async () => to.scatterAdd(0, i, from),
    plain: () => addRows(x.slice(), index, y, 1),
  };
}
async function scatterSet(pick: Pick): Promise<Work> {
  const { n, k, index, x, y, tensors } = await vector(pick);
  const [i, to, from] = tensors;
  return {
    name: `scatter(0), ${k} to ${n}`,
    ours: async () => to.scatter(0, i, from),
    plain: () => {
      const out = x.slice();
      for (let j = 0; j < k; j++) out[index[j] as number] = y[j] as number;
      return out;
    },
  };
}
async function scatterMax(pick: Pick): Promise<Work> {
  const { n, k, index, x, y, tensors } = await vector(pick);
  const [i, to, from] = tensors;
  return {
    name: `scatterReduce(0, amax), ${k} to ${n}`,
    ours: async () => to.scatterReduce(0, i, from, "amax"),
    plain: () => {
      const out = x.slice();
      for (let j = 0; j < k; j++) {
        const at = index[j] as number;
        out[at] = Math.max(out[at] as number, y[j] as number);
      }
      return out;
    },
  };
}
async function putItems(pick: Pick): Promise<Work> {
  const [rows, columns, k] = [pick(100, 2000), pick(100, 2000), pick(200_000, 1_000_000)];
  const [a, b] = [ints(k, rows, pick), ints(k, columns, pick)];
  const [x, y] = [floats(rows * columns, pick), floats(k, pick)];
  const [i, j] = [await tensor(a, [k]), await tensor(b, [k])];
  const [to, from] = [await tensor(x, [rows, columns]), await tensor(y, [k])];
  return {
    name: `indexPut([i, j], accumulate), ${k} to ${rows} x ${columns}`,
    ours: async () => to.indexPut([i, j], from, { accumulate: true }),
    plain: () => {
      const out = x.slice();
      for (let r = 0; r < k; r++) {
        const at = (a[r] as number) * columns + (b[r] as number);
        out[at] = (out[at] as number) + (y[r] as number);
      }
      return out;
    },
  };
}
async function histogram(pick: Pick): Promise<Work> {
  const [bins, k] = [pick(50, 5_000), pick(500_000, 4_000_000)];
  const index = ints(k, bins, pick);
  const [i, zeros, ones] = [
    await tensor(index, [k]),
    Tensor.zeros([bins], { dtype: "int32" }),
    Tensor.ones([k], { dtype: "int32" }),
  ];
  return {
    name: `histogram of ${k} in ${bins}`,
    ours: async () => zeros.scatterAdd(0, i, ones),
    plain: () => {
      const out = new Int32Array(bins);
      for (let j = 0; j < k; j++) {
        const at = index[j] as number;
        out[at] = (out[at] as number) + 1;
      }
      return out;
    },
  };
}

async function cumsum(pick: Pick): Promise<Work> {
  const n = pick(2 ** 20, 2 ** 24);
  const x = floats(n, pick);
  const t = await tensor(x, [n]);
  return {
    name: `cumsum of ${n}`,
    ours: async () => t.cumsum(0),
    plain: () => {
      const out = new Float32Array(n);
      let sum = 0;
      for (let i = 0; i < n; i++) {
        sum += x[i] as number;
        out[i] = sum;
      }
      return out;
    },
  };
}
async function cumsumOfColumns(pick: Pick): Promise<Work> {
  const [rows, columns] = [pick(300, 3000), pick(300, 3000)];
  const x = floats(rows * columns, pick);
  const t = await tensor(x, [rows, columns]);
  return {
    name: `cumsum(0) of ${rows} x ${columns}`,
    ours: async () => t.cumsum(0),
    plain: () => {
      const out = x.slice();
      for (let i = columns; i < out.length; i++) out[i] = (out[i] as number) + (out[i - columns] as number);
      return out;
    },
  };
}
async function cummax(pick: Pick): Promise<Work> {
  const [rows, columns] = [pick(10, 1000), pick(1000, 8000)];
  const x = floats(rows * columns, pick);
  const t = await tensor(x, [rows, columns]);
  return {
    name: `cummax(1) of ${rows} x ${columns}, values`,
    ours: async () => t.cummax(1)[0],
    plain: () => {
      const out = x.slice();
      for (let r = 0; r < rows; r++)
        for (let i = r * columns + 1; i < (r + 1) * columns; i++)
          out[i] = Math.max(out[i] as number, out[i - 1] as number);
      return out;
    },
  };
}
async function sort(pick: Pick): Promise<Work> {
  const n = pick(2 ** 16, 2 ** 20);
  const x = floats(n, pick);
  const t = await tensor(x, [n]);
  return {
    name: `sort of ${n}`,
    ours: async () => t.sort()[0],
    plain: () => x.slice().sort(),
  };
}
async function nonzero(pick: Pick): Promise<Work> {
  const n = pick(2 ** 18, 2 ** 21);
  const x = ints(n, 3, pick);
  const t = await tensor(x, [n]);
  return {
    name: `nonzero of ${n}`,
    ours: async () => t.nonzero(),
    plain: () => {
      const found = new Int32Array(n);
      let count = 0;
      for (let i = 0; i < n; i++) if (x[i] !== 0) found[count++] = i;
      return found.slice(0, count);
    },
  };
}

export const WORKS: Readonly<Record<string, (pick: Pick) => Promise<Work>>> = {
  embedding,
  gather: gatherGradient,
  indexAdd,
  scatterAdd,
  scatter: scatterSet,
  amax: scatterMax,
  indexPut: putItems,
  histogram,
  cumsum,
  columns: cumsumOfColumns,
  cummax,
  sort,
  nonzero,
};
