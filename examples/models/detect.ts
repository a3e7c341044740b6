// Finding objects with a YOLO model: a picture is fitted into the model's square, what the model says of its
// 8,400 places becomes boxes, and of boxes that overlap the surest one stays. In: rows of red, green and
// blue. Out: objects in pixels of the picture. A page and Node use it alike.

import { Tensor } from "gradloom";
import type { OnnxModel } from "gradloom/onnx";

/** Rows of red, green and blue, 0 to 255. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly rgb: Uint8Array | Uint8ClampedArray;
}

/** Where the picture is in the square: each pixel is `scale` wide, and it begins at (left, top). */
export interface Placed {
  readonly scale: number;
  readonly left: number;
  readonly top: number;
}

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}
export interface Found extends Box {
  /** number of the class */
  readonly kind: number;
  readonly name: string;
  /** 0 to 1 */
  readonly score: number;
}

export interface DetectOptions {
  /** what is less sure is left out; default: 0.25 */
  readonly score?: number;
  /** two boxes of a class that share more than this part of their area are one object; default: 0.45 */
  readonly overlap?: number;
}

// ---- the picture in the square ----

/** The grey around the picture that YOLO models were trained with. */
const GREY = 114 / 255;

/**
 * The picture in the middle of a grey square, as large as it fits: planes of red, green and blue, 0 to 1.
 * Pixels between pixels are blended from their four neighbours, as where the models were trained.
 */
export function letterbox(picture: Picture, side: number): { planes: Float32Array; placed: Placed } {
  const { width, height, rgb } = picture;
  const scale = Math.min(side / width, side / height);
  const [w, h] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  const [left, top] = [Math.floor((side - w) / 2), Math.floor((side - h) / 2)];
  const planes = new Float32Array(3 * side * side).fill(GREY);
  const [rows, columns] = [samples(h, height), samples(w, width)];
  for (let y = 0; y < h; y++) {
    const [above, below, down] = [rows.first[y]! * width, rows.second[y]! * width, rows.part[y]!];
    for (let x = 0; x < w; x++) {
      const [before, after, along] = [columns.first[x]!, columns.second[x]!, columns.part[x]!];
      for (let c = 0; c < 3; c++) {
        const upper = blend(rgb[3 * (above + before) + c]!, rgb[3 * (above + after) + c]!, along);
        const lower = blend(rgb[3 * (below + before) + c]!, rgb[3 * (below + after) + c]!, along);
        planes[(c * side + top + y) * side + left + x] = blend(upper, lower, down) / 255;
      }
    }
  }
  return { planes, placed: { scale, left, top } };
}

const blend = (a: number, b: number, part: number): number => a + (b - a) * part;

/** For each of `to` pixels: the two of `from` that its centre lies between, and how near to the second. */
function samples(to: number, from: number) {
  const [first, second, part] = [new Int32Array(to), new Int32Array(to), new Float64Array(to)];
  for (let i = 0; i < to; i++) {
    const at = Math.min(from - 1, Math.max(0, ((i + 0.5) * from) / to - 0.5));
    first[i] = Math.floor(at);
    second[i] = Math.min(from - 1, first[i]! + 1);
    part[i] = at - first[i]!;
  }
  return { first, second, part };
}

// ---- boxes ----

/**
 * The boxes that the output of a YOLO model holds: rows of [middle x, middle y, width, height, a score for
 * each class], one column a place. They are in pixels of the picture, inside of it.
 */
export function boxesOf(
  output: ArrayLike<number>,
  places: number,
  names: readonly string[],
  placed: Placed,
  picture: { readonly width: number; readonly height: number },
  least: number,
): Found[] {
  const classes = output.length / places - 4;
  const found: Found[] = [];
  for (let i = 0; i < places; i++) {
    let kind = 0;
    for (let k = 1; k < classes; k++)
      if ((output[(4 + k) * places + i] as number) > (output[(4 + kind) * places + i] as number)) kind = k;
    const score = output[(4 + kind) * places + i] as number;
    if (!(score >= least)) continue;
    const [x, y, w, h] = [0, 1, 2, 3].map((row) => output[row * places + i]) as [
      number,
      number,
      number,
      number,
    ];
    const inX = (at: number): number => within((at - placed.left) / placed.scale, picture.width);
    const inY = (at: number): number => within((at - placed.top) / placed.scale, picture.height);
    const box = { left: inX(x - w / 2), top: inY(y - h / 2), right: inX(x + w / 2), bottom: inY(y + h / 2) };
    found.push({ ...box, kind, name: names[kind] ?? `class ${kind}`, score });
  }
  return found;
}
const within = (x: number, most: number): number => Math.min(most, Math.max(0, x));

/** The area that both have, as a part of the area that at least one has. */
export function overlapOf(a: Box, b: Box): number {
  const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  if (width <= 0 || height <= 0) return 0;
  const area = (box: Box): number => (box.right - box.left) * (box.bottom - box.top);
  return (width * height) / (area(a) + area(b) - width * height);
}

/** Non-maximum suppression: the surest first, without those that overlap a surer one of their class. */
export function suppress<T extends Found>(boxes: readonly T[], overlap: number): T[] {
  const kept: T[] = [];
  for (const box of [...boxes].sort((a, b) => b.score - a.score))
    if (kept.every((other) => other.kind !== box.kind || overlapOf(other, box) <= overlap)) kept.push(box);
  return kept;
}

// ---- the model ----

/** The classes that exporters write into the file, as in {0: 'person', 1: "cow's bell"}. */
export function classNames(metadata: Readonly<Record<string, string>>): string[] {
  const names: string[] = [];
  for (const [, number, one, two] of (metadata.names ?? "").matchAll(/(\d+): (?:'([^']*)'|"([^"]*)")/g))
    names[Number(number)] = one ?? two ?? "";
  return names;
}

/** A YOLO model with one output of boxes, as versions 8 and 11 are exported. */
export class Detector {
  readonly names: readonly string[];
  readonly #model: OnnxModel;
  readonly #side: number;

  constructor(model: OnnxModel) {
    const [port, ...others] = model.inputs;
    const [, channels, height] = port?.dims ?? [];
    if (others.length > 0 || model.outputs.length !== 1 || channels !== 3)
      throw new Error(
        "this model does not detect objects: expected one picture in, and one tensor of boxes out",
      );
    this.#model = model;
    this.#side = typeof height === "number" ? height : 640;
    this.names = classNames(model.metadata);
  }

  /** What is in the picture, the surest first. */
  async find(picture: Picture, options: DetectOptions = {}): Promise<Found[]> {
    const { score = 0.25, overlap = 0.45 } = options;
    const { planes, placed } = letterbox(picture, this.#side);
    const output = await this.run(planes);
    const [places] = output.shape.slice(-1) as [number];
    const boxes = boxesOf((await output.data()) as Float32Array, places, this.names, placed, picture, score);
    return suppress(boxes, overlap);
  }

  /** The output for planes of red, green and blue. */
  async run(planes: Float32Array): Promise<Tensor> {
    const [input, output] = [this.#model.inputs[0]!.name, this.#model.outputs[0]!.name];
    const x = new Tensor(planes).reshape(1, 3, this.#side, this.#side);
    return (await this.#model.run({ [input]: x }))[output] as Tensor;
  }
}
