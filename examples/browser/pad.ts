// A canvas to draw on, by mouse, pen or touch. In: pointer events. Out: the digit as MNIST
// has it; `onChange` is called with each new point.

import { digitOf, type Point, SIDE } from "./digit.ts";

/** The width of the pen as a part of the canvas. */
const PEN = 0.07;

export class Pad {
  readonly #canvas: HTMLCanvasElement;
  readonly #onChange: () => void;
  #strokes: Point[][] = [];
  /** the shades of a picture that is shown instead of strokes */
  #picture: Uint8Array | undefined;
  #isDown = false;

  constructor(canvas: HTMLCanvasElement, onChange: () => void) {
    this.#canvas = canvas;
    this.#onChange = onChange;
    canvas.addEventListener("pointerdown", (e) => this.#begin(e));
    canvas.addEventListener("pointermove", (e) => this.#move(e));
    for (const end of ["pointerup", "pointercancel"] as const)
      canvas.addEventListener(end, () => {
        this.#isDown = false;
      });
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  /** What is there, as MNIST has it; undefined: nothing. */
  get digit(): Uint8Array | undefined {
    return this.#picture ?? digitOf(this.#strokes);
  }
  get isPicture(): boolean {
    return this.#picture !== undefined;
  }

  clear(): void {
    [this.#strokes, this.#picture, this.#isDown] = [[], undefined, false];
    this.draw();
    this.#onChange();
  }
  /** Shows a picture of 28 x 28 shades instead of strokes. */
  show(pixels: Uint8Array): void {
    [this.#strokes, this.#picture] = [[], pixels];
    this.draw();
    this.#onChange();
  }

  #begin(e: PointerEvent): void {
    if (e.button !== 0) return;
    this.#picture = undefined;
    this.#canvas.setPointerCapture(e.pointerId);
    this.#isDown = true;
    this.#strokes.push([]);
    this.#add([e]);
  }
  #move(e: PointerEvent): void {
    if (!this.#isDown) return;
    const all = e.getCoalescedEvents?.() ?? [];
    this.#add(all.length > 0 ? all : [e]);
  }
  #add(events: readonly PointerEvent[]): void {
    const { left, top, width } = this.#canvas.getBoundingClientRect();
    const stroke = this.#strokes.at(-1);
    for (const e of events) stroke?.push({ x: (e.clientX - left) / width, y: (e.clientY - top) / width });
    this.draw();
    this.#onChange();
  }

  draw(): void {
    const { width, height } = this.#canvas.getBoundingClientRect();
    const ratio = globalThis.devicePixelRatio;
    [this.#canvas.width, this.#canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const context = this.#canvas.getContext("2d");
    if (context === null || width === 0) return;
    if (this.#picture !== undefined) {
      drawDigit(this.#canvas, this.#picture);
      return;
    }
    context.scale(this.#canvas.width, this.#canvas.width);
    context.strokeStyle = getComputedStyle(this.#canvas).color;
    context.lineWidth = PEN;
    context.lineCap = context.lineJoin = "round";
    for (const [first, ...more] of this.#strokes) {
      if (first === undefined) continue;
      context.beginPath();
      context.moveTo(first.x, first.y);
      context.lineTo(first.x, first.y); // a dot is a line as well
      for (const p of more) context.lineTo(p.x, p.y);
      context.stroke();
    }
  }
}

/** Fills a canvas with a digit of 28 x 28 shades, in the canvas's own colour. */
export function drawDigit(canvas: HTMLCanvasElement, pixels: Uint8Array | undefined): void {
  const context = canvas.getContext("2d");
  context?.clearRect(0, 0, canvas.width, canvas.height);
  if (context === null || pixels === undefined) return;
  const [r = 0, g = 0, b = 0] = (getComputedStyle(canvas).color.match(/[\d.]+/g) ?? []).map(Number);
  const picture = new ImageData(SIDE, SIDE);
  pixels.forEach((shade, i) => void picture.data.set([r, g, b, shade], 4 * i));
  const small = document.createElement("canvas");
  [small.width, small.height] = [SIDE, SIDE];
  small.getContext("2d")?.putImageData(picture, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
}
