// A picture twice as large with Real-ESRGAN: the picture goes through the model in tiles of one size, whose
// kernels are compiled once. Tiles overlap, and of each only the middle is kept: at its edge a tile does not
// see what is around it. In: rows of red, green and blue. Out: the same, larger.

import { Tensor } from "gradloom";
import type { OnnxModel } from "gradloom/onnx";
import type { Picture } from "./detect.ts";

/** Pixels of a tile, and how many of them at each edge are only there to be seen. */
export const [TILE, EDGE] = [128, 8];

/** Runs a tile of planes [1, 3, TILE, TILE] from 0 to 1, and gives planes `scale` times as large. */
export type RunTile = (planes: Float32Array) => Promise<Float32Array>;

export function tileRunner(model: OnnxModel): RunTile {
  const [input, output] = [model.inputs[0]!.name, model.outputs[0]!.name];
  return async (planes) => {
    const outputs = await model.run({ [input]: new Tensor(planes).reshape(1, 3, TILE, TILE) });
    return (await (outputs[output] as Tensor).data()) as Float32Array;
  };
}

/** What is outside of the picture is like its edge. */
function tileAt({ width, height, rgb }: Picture, left: number, top: number): Float32Array {
  const planes = new Float32Array(3 * TILE * TILE);
  for (let y = 0; y < TILE; y++) {
    const row = Math.min(height - 1, Math.max(0, top + y)) * width;
    for (let x = 0; x < TILE; x++) {
      const from = 3 * (row + Math.min(width - 1, Math.max(0, left + x)));
      for (let c = 0; c < 3; c++) planes[(c * TILE + y) * TILE + x] = rgb[from + c]! / 255;
    }
  }
  return planes;
}

/** Where tiles begin, so that their middles are side by side and cover everything. */
export const tileStarts = (size: number): number[] =>
  Array.from({ length: Math.ceil(size / (TILE - 2 * EDGE)) }, (_, i) => i * (TILE - 2 * EDGE) - EDGE);

export async function upscale(
  picture: Picture,
  run: RunTile,
  onTile: (done: number, all: number) => void = () => {},
): Promise<Picture> {
  const [lefts, tops] = [tileStarts(picture.width), tileStarts(picture.height)];
  let made: { width: number; height: number; rgb: Uint8Array } | undefined;
  let done = 0;
  for (const top of tops)
    for (const left of lefts) {
      const planes = await run(tileAt(picture, left, top));
      const side = Math.sqrt(planes.length / 3);
      const scale = side / TILE;
      if (made === undefined) {
        const [width, height] = [picture.width * scale, picture.height * scale];
        made = { width, height, rgb: new Uint8Array(3 * width * height) };
      }
      const [x0, y0] = [(left + EDGE) * scale, (top + EDGE) * scale];
      const middle = (TILE - 2 * EDGE) * scale;
      for (let y = 0; y < Math.min(middle, made.height - y0); y++)
        for (let x = 0; x < Math.min(middle, made.width - x0); x++)
          for (let c = 0; c < 3; c++) {
            const value = planes[(c * side + y + EDGE * scale) * side + x + EDGE * scale]!;
            const shade = Math.round(Math.min(1, Math.max(0, value)) * 255);
            made.rgb[3 * ((y0 + y) * made.width + x0 + x) + c] = shade;
          }
      onTile(++done, lefts.length * tops.length);
    }
  if (made === undefined) throw new Error("a picture without pixels cannot be made larger");
  return made;
}
