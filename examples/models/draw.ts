// Boxes and words drawn into a picture, where there is no canvas. In: rows of red, green and blue. The
// letters are capitals of 5 x 7 pixels, written larger in larger pictures.

import type { Found, Picture } from "./detect.ts";

type Colour = readonly [red: number, green: number, blue: number];

/** Seven rows of five pixels for each character: a digit of base 32 is a row. */
// biome-ignore format: a table
const LETTERS: Readonly<Record<string, string>> = {
  A: "ehhvhhh", B: "uhhuhhu", C: "ehggghe", D: "uhhhhhu", E: "vgguggv", F: "vgguggg", G: "ehgnhhe",
  H: "hhhvhhh", I: "e44444e", J: "72222ic", K: "hikokih", L: "ggggggv", M: "hrllhhh", N: "hpljhhh",
  O: "ehhhhhe", P: "uhhuggg", Q: "ehhhlid", R: "uhhukih", S: "fgge11u", T: "v444444", U: "hhhhhhe",
  V: "hhhhha4", W: "hhhllrh", X: "hha4ahh", Y: "hha4444", Z: "v1248gv", 0: "ehjlphe", 1: "4c4444e",
  2: "eh168gv", 3: "eh161he", 4: "26aiv22", 5: "vgu11he", 6: "68guhhe", 7: "v124888", 8: "ehhehhe",
  9: "ehhf12c", "%": "op248j3", ".": "00000cc", "-": "000v000", " ": "0000000",
};
/** What stands for a character that is not there. */
const UNKNOWN = "vhhhhhv";
const [WIDTH, HEIGHT] = [5, 7];

/** Colours that differ from their neighbours; classes take them in order. */
const COLOURS: readonly Colour[] = [
  [230, 57, 70],
  [29, 120, 116],
  [244, 140, 6],
  [69, 90, 200],
  [106, 153, 36],
  [199, 62, 170],
  [0, 130, 200],
  [140, 86, 60],
  [94, 60, 153],
];
export const colourOf = (kind: number): Colour => COLOURS[kind % COLOURS.length] as Colour;
/** Dark letters on light colours, light ones on dark. */
export const inkOn = ([r, g, b]: Colour): Colour =>
  0.3 * r + 0.59 * g + 0.11 * b > 140 ? [20, 20, 20] : [255, 255, 255];

export const labelOf = ({ name, score }: Found): string => `${name} ${Math.round(100 * score)}%`;

/** A picture that is drawn into. What is outside of it is left out. */
export class Canvas implements Picture {
  readonly width: number;
  readonly height: number;
  readonly rgb: Uint8Array;

  constructor({ width, height, rgb }: Picture) {
    [this.width, this.height, this.rgb] = [width, height, Uint8Array.from(rgb)];
  }

  fill(left: number, top: number, width: number, height: number, colour: Colour): void {
    const [x0, x1] = [Math.max(0, left), Math.min(this.width, left + width)];
    const [y0, y1] = [Math.max(0, top), Math.min(this.height, top + height)];
    for (let y = y0; y < y1; y++)
      for (let x = x0; x < x1; x++) this.rgb.set(colour, 3 * (y * this.width + x));
  }

  /** Letters of 5 x 7 dots, each dot `size` pixels wide. */
  write(text: string, left: number, top: number, size: number, colour: Colour): void {
    [...text.toUpperCase()].forEach((character, i) => {
      const rows = Object.hasOwn(LETTERS, character) ? (LETTERS[character] as string) : UNKNOWN;
      [...rows].forEach((digit, y) => {
        const bits = Number.parseInt(digit, 32);
        for (let x = 0; x < WIDTH; x++)
          if ((bits >> (WIDTH - 1 - x)) & 1)
            this.fill(left + (i * (WIDTH + 1) + x) * size, top + y * size, size, size, colour);
      });
    });
  }
}

/** The picture with a frame and a label for each object, the surest on top. */
export function drawn(picture: Picture, objects: readonly Found[]): Canvas {
  const canvas = new Canvas(picture);
  const line = Math.max(2, Math.round(Math.max(picture.width, picture.height) / 400));
  const size = Math.max(1, Math.round(line * 0.7));
  for (const object of [...objects].reverse()) {
    const colour = colourOf(object.kind);
    const [left, top] = [Math.round(object.left), Math.round(object.top)];
    const [width, height] = [Math.round(object.right) - left, Math.round(object.bottom) - top];
    canvas.fill(left, top, width, line, colour);
    canvas.fill(left, top + height - line, width, line, colour);
    canvas.fill(left, top, line, height, colour);
    canvas.fill(left + width - line, top, line, height, colour);
    const label = labelOf(object);
    const [w, h] = [([...label].length * (WIDTH + 1) - 1 + 4) * size, (HEIGHT + 4) * size];
    // above the frame, or inside of it where there is no room
    const [x, y] = [Math.min(left, Math.max(0, picture.width - w)), top >= h ? top - h : top];
    canvas.fill(x, y, w, h, colour);
    canvas.write(label, x + 2 * size, y + 2 * size, size, inkOn(colour));
  }
  return canvas;
}
