// Plots without a library: curves, histograms and grids of images as SVG texts, for a file, a page or a
// notebook; curves and histograms also as lines of text for a terminal. In: numbers, or a Tensor of images.
// Out: texts.

import { ArgumentError, ShapeError } from "../errors.ts";
import { range } from "../helpers.ts";
import { encodePng } from "../tensor/image/pngwrite.ts";
import { showShape } from "../tensor/show.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { checkOptions } from "./options.ts";

export interface PlotOptions {
  readonly title?: string;
  /** in pixels, or in characters in a terminal; default: 640, or 72 */
  readonly width?: number;
  /** in pixels, or in lines in a terminal; default: 360, or 16 */
  readonly height?: number;
}
export interface HistogramOptions extends PlotOptions {
  /** default: 20 */
  readonly bins?: number;
}
export interface GridOptions {
  /** images in a row; default: about as many as rows */
  readonly columns?: number;
  /** pixels on the screen for each pixel of an image; default: 1 */
  readonly scale?: number;
  /** pixels between images; default: 2 */
  readonly gap?: number;
}
type Numbers = readonly number[] | Float32Array | Float64Array | Int32Array;
/** One curve, or several by name. */
export type Series = Numbers | Readonly<Record<string, Numbers>>;

const COLORS = ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2", "#97bbf5", "#9c6b4e"];
const KEYS = ["title", "width", "height"];
const isNumbers = (x: unknown): x is Numbers => Array.isArray(x) || ArrayBuffer.isView(x);

function curvesOf(who: string, series: Series): [string, number[]][] {
  const curves: [string, Numbers][] = isNumbers(series) ? [["", series]] : Object.entries(series ?? {});
  const bad = curves.find(([, xs]) => !isNumbers(xs) || ![...xs].every((x) => typeof x === "number"));
  if (curves.length > 0 && bad === undefined) return curves.map(([name, xs]) => [name, [...xs]]);
  const what = bad === undefined || bad[0] === "" ? "the data" : bad[0];
  throw new ArgumentError(`${who}: ${what} is not a list of numbers; for a Tensor use await t.tolist()`);
}
function sizeOf(who: string, options: PlotOptions, width: number, height: number): [number, number] {
  const [w, h] = [options.width ?? width, options.height ?? height];
  if (w > 0 && h > 0) return [w, h];
  throw new ArgumentError(`${who}: width ${w} and height ${h} must be above 0`);
}
/** The least and the largest finite number; a range of nothing is widened. */
function spanOf(xs: readonly number[]): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const x of xs) if (Number.isFinite(x)) [low, high] = [Math.min(low, x), Math.max(high, x)];
  if (low > high) return [0, 1];
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}
/**
 * Round numbers within a range: steps of 1, 2 or 5 times a power of ten.
 * @example
 * nn.plot.ticks(-3, 12) // => [0, 5, 10]
 */
export function ticks(low: number, high: number, most = 6): number[] {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((m) => m * power >= rough) as number);
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first + 1;
  return range(Math.max(0, count)).map((i) => Number(((first + i) * step).toPrecision(12)));
}
const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
const short = (x: number): string => String(Number(x.toPrecision(4)));

// ---- SVG ----

/** A frame with axes; `draw` gets functions from values to pixels. */
function framed(
  options: PlotOptions,
  [width, height]: readonly [number, number],
  [x0, x1]: readonly [number, number],
  [y0, y1]: readonly [number, number],
  draw: (x: (v: number) => number, y: (v: number) => number) => string[],
): string {
  const [left, right, top, bottom] = [56, 12, options.title === undefined ? 12 : 32, 28];
  const round = (v: number): number => Math.round(v * 100) / 100;
  const x = (v: number): number => round(left + ((v - x0) / (x1 - x0)) * (width - left - right));
  const y = (v: number): number => round(height - bottom - ((v - y0) / (y1 - y0)) * (height - top - bottom));
  const across = ticks(y0, y1).map(
    (v) =>
      `<line x1="${left}" x2="${width - right}" y1="${y(v)}" y2="${y(v)}" stroke="#ddd"/>` +
      `<text x="${left - 6}" y="${y(v) + 4}" text-anchor="end">${short(v)}</text>`,
  );
  const down = ticks(x0, x1, 8).map(
    (v) => `<text x="${x(v)}" y="${height - bottom + 16}" text-anchor="middle">${short(v)}</text>`,
  );
  const title =
    options.title === undefined
      ? []
      : [
          `<text x="${width / 2}" y="20" text-anchor="middle" font-size="15">${escaped(options.title)}</text>`,
        ];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11" fill="#333">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...title,
    ...across,
    ...down,
    ...draw(x, y),
    "</svg>",
  ].join("\n");
}

/**
 * Curves over the number of the step, such as losses, as an SVG text. Values that are not finite are gaps.
 * @example
 * nn.plot.line({ loss: [3, 2, 1.5], test: [3, 2.5, 2.4] }, { title: "training" }).slice(0, 4) // => "<svg"
 */
export function line(series: Series, options: PlotOptions = {}): string {
  const size = sizeOf("plot.line", checkOptions("plot.line", options, KEYS), 640, 360);
  const curves = curvesOf("plot.line", series);
  const longest = Math.max(2, ...curves.map(([, xs]) => xs.length));
  const span = spanOf(curves.flatMap(([, xs]) => xs));
  return framed(options, size, [0, longest - 1], span, (x, y) =>
    curves.flatMap(([name, xs], i) => {
      const color = COLORS[i % COLORS.length];
      const path = pathOf(xs, x, y);
      const label = `<text x="${size[0] - 16}" y="${46 + 16 * i}" text-anchor="end" fill="${color}">${escaped(name)}</text>`;
      return [
        `<path d="${path}" fill="none" stroke="${color}" stroke-width="1.5"/>`,
        ...(name === "" ? [] : [label]),
      ];
    }),
  );
}
function pathOf(xs: readonly number[], x: (v: number) => number, y: (v: number) => number): string {
  let isOpen = false;
  return xs
    .map((v, i) => {
      if (!Number.isFinite(v)) {
        isOpen = false;
        return "";
      }
      const step = `${isOpen ? "L" : "M"}${x(i)} ${y(v)}`;
      isOpen = true;
      return step;
    })
    .join("");
}

interface Bins {
  readonly low: number;
  readonly high: number;
  readonly counts: readonly number[];
}
function binsOf(who: string, values: Numbers, bins: number): Bins {
  const [[, xs]] = curvesOf(who, values) as [[string, number[]]];
  if (!Number.isInteger(bins) || bins < 1)
    throw new ArgumentError(`${who}: bins is ${bins}, expected an integer >= 1`);
  const [low, high] = spanOf(xs);
  const counts = new Array<number>(bins).fill(0);
  for (const v of xs.filter(Number.isFinite)) {
    const at = Math.min(bins - 1, Math.floor(((v - low) / (high - low)) * bins));
    counts[at] = (counts[at] as number) + 1;
  }
  return { low, high, counts };
}
/**
 * How often values occur, as an SVG text.
 * @example
 * nn.plot.histogram([1, 2, 2, 3], { bins: 3 }).match(/<rect/g).length // => 4
 */
export function histogram(values: Numbers, options: HistogramOptions = {}): string {
  const { bins = 20 } = checkOptions("plot.histogram", options, [...KEYS, "bins"]);
  const size = sizeOf("plot.histogram", options, 640, 360);
  const { low, high, counts } = binsOf("plot.histogram", values, bins);
  const step = (high - low) / bins;
  return framed(options, size, [low, high], [0, Math.max(1, ...counts)], (x, y) =>
    counts.map((n, i) => {
      const [from, to] = [x(low + i * step), x(low + (i + 1) * step)];
      const wide = Math.max(0.5, to - from - 1).toFixed(2);
      return `<rect x="${from}" y="${y(n)}" width="${wide}" height="${(y(0) - y(n)).toFixed(2)}" fill="${COLORS[0]}"/>`;
    }),
  );
}

/**
 * Images beside each other, as an SVG text: a Tensor [n, channels, height, width] of bytes, or of floats from
 * 0 to 1. Channels are grey, grey and alpha, RGB or RGBA.
 * @example
 * (await nn.plot.images(Tensor.rand(6, 1, 8, 8), { columns: 3 })).includes('width="32"') // => true
 */
export async function images(batch: Tensor, options: GridOptions = {}): Promise<string> {
  const { scale = 1, gap = 2, columns } = checkOptions("plot.images", options, ["columns", "scale", "gap"]);
  for (const [name, value, least] of [
    ["columns", columns ?? 1, 1],
    ["scale", scale, 1],
    ["gap", gap, 0],
  ] as const) {
    if (Number.isInteger(value) && value >= least) continue;
    throw new ArgumentError(`plot.images: ${name} is ${value}, expected a whole number of at least ${least}`);
  }
  const [n = 0, channels = 0, height = 0, width = 0] = batch.shape;
  if (batch.ndim !== 4 || channels < 1 || channels > 4 || n === 0) {
    throw new ShapeError(
      `plot.images: shape ${showShape(batch.shape)}, expected [n, channels, height, width] with 1 to 4 channels`,
    );
  }
  const bytes = batch.dtype.isFloat ? batch.detach().clamp(0, 1).mul(255).round() : batch.detach();
  const pixels = (await bytes.cast("uint8").permute(0, 2, 3, 1).contiguous().data()) as Uint8Array;
  const across = Math.min(n, columns ?? Math.ceil(Math.sqrt(n)));
  const each = height * width * channels;
  const picture = async (i: number): Promise<string> => {
    const png = await encodePng({
      width,
      height,
      channels,
      pixels: pixels.subarray(i * each, (i + 1) * each),
    });
    const [x, y] = [(i % across) * (width * scale + gap), Math.floor(i / across) * (height * scale + gap)];
    const data = btoa(Array.from(png, (b) => String.fromCharCode(b)).join(""));
    return `<image x="${x + gap}" y="${y + gap}" width="${width * scale}" height="${height * scale}" style="image-rendering:pixelated" href="data:image/png;base64,${data}"/>`;
  };
  const parts = await Promise.all(range(n).map(picture));
  const w = across * (width * scale + gap) + gap;
  const h = Math.ceil(n / across) * (height * scale + gap) + gap;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}">`;
  return [head, `<rect width="${w}" height="${h}" fill="#fff"/>`, ...parts, "</svg>"].join("\n");
}

// ---- the terminal ----

const MARKS = "*o+x#@%&";
/**
 * Curves as lines of text, for a terminal.
 * @example
 * nn.plot.textLine([1, 2, 3], { width: 3, height: 3 }).split("\n")[0] // => "3 |  *"
 */
export function textLine(series: Series, options: PlotOptions = {}): string {
  const [width, height] = sizeOf("plot.textLine", checkOptions("plot.textLine", options, KEYS), 72, 16);
  const curves = curvesOf("plot.textLine", series);
  const [low, high] = spanOf(curves.flatMap(([, xs]) => xs));
  const longest = Math.max(1, ...curves.map(([, xs]) => xs.length));
  const cells = range(height).map(() => new Array<string>(width).fill(" "));
  curves.forEach(([, xs], c) => {
    for (const [i, v] of xs.entries()) {
      if (!Number.isFinite(v)) continue;
      const column = longest === 1 ? 0 : Math.round((i / (longest - 1)) * (width - 1));
      const row = Math.round(((high - v) / (high - low)) * (height - 1));
      (cells[row] as string[])[column] = MARKS[c % MARKS.length] as string;
    }
  });
  const labels = range(height).map((r) => {
    const isEnd = r === 0 || r === height - 1 || r === Math.floor(height / 2);
    return isEnd ? short(high - ((high - low) * r) / Math.max(1, height - 1)) : "";
  });
  const wide = Math.max(...labels.map((l) => l.length));
  const names = curves.flatMap(([name], c) => (name === "" ? [] : [`${MARKS[c % MARKS.length]} ${name}`]));
  return [
    ...(options.title === undefined ? [] : [options.title]),
    ...cells.map((row, r) => `${(labels[r] as string).padStart(wide)} |${row.join("")}`.trimEnd()),
    ...(names.length === 0 ? [] : [names.join("   ")]),
  ].join("\n");
}
/**
 * How often values occur, as lines of text: a bar for each bin.
 * @example
 * nn.plot.textHistogram([0, 1, 1], { bins: 2, width: 4 }) // => "  0 | 1 ##\n0.5 | 2 ####"
 */
export function textHistogram(values: Numbers, options: HistogramOptions = {}): string {
  const { bins = 10 } = checkOptions("plot.textHistogram", options, [...KEYS, "bins"]);
  const [width] = sizeOf("plot.textHistogram", options, 60, 1);
  const { low, high, counts } = binsOf("plot.textHistogram", values, bins);
  const most = Math.max(1, ...counts);
  const labels = counts.map((_, i) => short(low + ((high - low) * i) / bins));
  const [wide, digits] = [Math.max(...labels.map((l) => l.length)), String(most).length];
  const bars = counts.map(
    (n, i) =>
      `${(labels[i] as string).padStart(wide)} | ${String(n).padStart(digits)} ${"#".repeat(Math.round((n / most) * width))}`,
  );
  return [...(options.title === undefined ? [] : [options.title]), ...bars.map((b) => b.trimEnd())].join(
    "\n",
  );
}
