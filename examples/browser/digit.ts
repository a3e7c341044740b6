// A drawn digit as MNIST has them: fitted into 20 x 20 pixels, with its centre of mass in the middle of
// 28 x 28. In: strokes, in any units. Out: 784 shades, 0 to 255.

export interface Point {
  readonly x: number;
  readonly y: number;
}
export type Stroke = readonly Point[];

export const SIDE = 28;
const BOX = 20;
/** Half the width of the pen in pixels: what most writers of MNIST had. */
const PEN = 1.25;

/** How far `p` is from the line between `a` and `b`. */
function distance(p: Point, a: Point, b: Point): number {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const length = dx * dx + dy * dy;
  const along = length === 0 ? 0 : ((p.x - a.x) * dx + (p.y - a.y) * dy) / length;
  const t = Math.min(1, Math.max(0, along));
  return Math.hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

/** Each pixel by its distance to the nearest stroke; the edge of the pen is one pixel of grey. */
function ink(strokes: readonly Stroke[]): Uint8Array {
  const pixels = new Uint8Array(SIDE * SIDE);
  for (let i = 0; i < pixels.length; i++) {
    const centre = { x: (i % SIDE) + 0.5, y: Math.floor(i / SIDE) + 0.5 };
    let nearest = Number.POSITIVE_INFINITY;
    for (const stroke of strokes)
      for (let k = 0; k < stroke.length; k++)
        nearest = Math.min(nearest, distance(centre, stroke[Math.max(0, k - 1)]!, stroke[k]!));
    pixels[i] = Math.round(255 * Math.min(1, Math.max(0, PEN + 0.5 - nearest)));
  }
  return pixels;
}

function massCentre(pixels: Uint8Array): Point {
  let [mass, x, y] = [0, 0, 0];
  pixels.forEach((shade, i) => {
    mass += shade;
    x += shade * ((i % SIDE) + 0.5);
    y += shade * (Math.floor(i / SIDE) + 0.5);
  });
  return { x: x / mass, y: y / mass };
}

const moved = (strokes: readonly Stroke[], place: (p: Point) => Point): Stroke[] =>
  strokes.map((stroke) => stroke.map(place));

/** undefined: nothing is drawn. */
export function digitOf(strokes: readonly Stroke[]): Uint8Array | undefined {
  const points = strokes.flat();
  if (points.length === 0) return undefined;
  const [xs, ys] = [points.map((p) => p.x), points.map((p) => p.y)];
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
  // the pen is as wide in a small drawing as in a large one
  const size = Math.max(right - left, bottom - top);
  const scale = size === 0 ? 0 : (BOX - 2 * PEN) / size;
  const fitted = moved(strokes, (p) => ({
    x: (p.x - (left + right) / 2) * scale + SIDE / 2,
    y: (p.y - (top + bottom) / 2) * scale + SIDE / 2,
  }));
  const centre = massCentre(ink(fitted));
  return ink(moved(fitted, (p) => ({ x: p.x + SIDE / 2 - centre.x, y: p.y + SIDE / 2 - centre.y })));
}
