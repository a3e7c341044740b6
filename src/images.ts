// Images as types: float32 values that lie in a 2-D image of a device, four to a pixel, as 16-bit floats
// (`imageh`) or as they are (`imagef`). In goes the shape [height, width, 4], out comes a DType. A device
// without images has the same bytes in a buffer, row by row. Only Node has this module (devices/node.ts): it
// adds the types to the tables of dtype.ts.

import { ACCESS, DType, dtypes, type ImageShape, numberToFloat16, Pointer, pointers, WRAP } from "./dtype.ts";
import { ArgumentError } from "./errors.ts";
import { NARROW } from "./hostarrays.ts";

/** The tuple as Python prints it, which the seeds' listings do. */
export const showTuple = (xs: readonly unknown[]): string =>
  `(${xs.join(", ")}${xs.length === 1 ? "," : ""})`;

/** Elements of an image; kernels read and write them as pixels, vectors of four float32. */
export class ImageDType extends DType {
  static override readonly name: string = "ImageDType";
  override readonly image: ImageShape;
  /** how an element lies in memory: float16 or float32 */
  readonly memory: DType;

  constructor(kind: "imageh" | "imagef", shape: ImageShape) {
    const memory = kind === "imageh" ? dtypes.float16 : dtypes.float32;
    const name = `${kind}(${showTuple(shape)})`;
    super(name, name, "float", memory.bits, memory.storage);
    this.image = shape;
    this.memory = memory;
  }
  get shape(): ImageShape {
    return this.image;
  }
  /** the type of its values */
  get base(): DType {
    return dtypes.float32;
  }
}

/** What a kernel is given for an image: not a pointer, but it stands where pointers do. */
class ImagePointer extends Pointer {
  override readonly image: DType;
  constructor(image: ImageDType) {
    super(image.base, false);
    this.image = image;
  }
  override toString(): string {
    return `${this.image}`;
  }
}

/** One object for each shape. */
const made = new Map<string, ImageDType>();
/** Whether the program has named an image so far: those that have none pay nothing. */
export const hasImages = (): boolean => made.size > 0;

function imageOf(kind: "imageh" | "imagef", shape: readonly number[]): ImageDType {
  const isImage =
    Array.isArray(shape) &&
    shape.length === 3 &&
    shape.every((d) => Number.isInteger(d) && d > 0) &&
    shape[2] === 4;
  if (!isImage) {
    throw new ArgumentError(
      `${kind}: got the shape [${shape}], expected [height, width, 4]: an image has rows of pixels, each of four values`,
    );
  }
  const key = `${kind} ${shape}`;
  const known = made.get(key);
  if (known !== undefined) return known;
  const dtype = new ImageDType(kind, [shape[0] as number, shape[1] as number, 4]);
  const memory = dtype.memory.name;
  WRAP[dtype.name] = WRAP[memory] as (x: number) => number;
  ACCESS[dtype.name] = ACCESS[memory] as (typeof ACCESS)[string];
  if (kind === "imageh") NARROW.set(dtype, numberToFloat16);
  pointers[0].set(dtype, new ImagePointer(dtype));
  made.set(key, dtype);
  return dtype;
}

/** Adds `dtypes.imageh` and `dtypes.imagef`. */
export function addImages(): void {
  Object.assign(dtypes, {
    imageh: (shape: readonly number[]) => imageOf("imageh", shape),
    imagef: (shape: readonly number[]) => imageOf("imagef", shape),
  });
}
