// The curve of a loss over the steps, on a logarithmic scale: each step as it was, and a smooth line through
// them. In: losses one by one. Out: an SVG that fills its box.

const NS = "http://www.w3.org/2000/svg";
/** Beyond this many points two neighbours become one. */
const MOST = 600;
const TICKS = [5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];
const MARGIN = { left: 38, right: 10, top: 12, bottom: 24 };
/** Part of the old value that the smooth line keeps at each point. */
const KEEP = 0.85;

function element(name: string, attributes: Readonly<Record<string, string | number>>, text = ""): SVGElement {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.textContent = text;
  return made;
}

export class Chart {
  readonly #svg: SVGSVGElement;
  /** means of `#stride` steps each, and the sum of the steps that do not fill one yet */
  #points: number[] = [];
  #stride = 1;
  #rest: number[] = [];
  steps = 0;

  constructor(svg: SVGSVGElement) {
    this.#svg = svg;
    new ResizeObserver(() => this.draw()).observe(svg);
  }

  push(loss: number): void {
    this.steps++;
    this.#rest.push(loss);
    if (this.#rest.length < this.#stride) return;
    this.#points.push(mean(this.#rest));
    this.#rest = [];
    if (this.#points.length <= MOST) return;
    this.#points = Array.from({ length: MOST / 2 }, (_, i) => mean(this.#points.slice(2 * i, 2 * i + 2)));
    this.#stride *= 2;
  }

  clear(): void {
    [this.#points, this.#rest, this.#stride, this.steps] = [[], [], 1, 0];
    this.draw();
  }

  draw(): void {
    const { width, height } = this.#svg.getBoundingClientRect();
    if (width === 0) return;
    const smooth = smoothed(this.#points);
    const finite = this.#points.filter((x) => Number.isFinite(x) && x > 0);
    const top = Math.log(Math.max(3, ...finite));
    const bottom = Math.log(Math.min(0.5, ...finite)) - 0.1;
    const steps = Math.max(50, this.steps);
    const x = (step: number): number => MARGIN.left + (step / steps) * (width - MARGIN.left - MARGIN.right);
    const y = (loss: number): number =>
      MARGIN.top + ((top - Math.log(loss)) / (top - bottom)) * (height - MARGIN.top - MARGIN.bottom);
    const path = (points: readonly number[]): string =>
      points
        .map((p, i) => (p > 0 ? `${x((i + 0.5) * this.#stride).toFixed(1)},${y(p).toFixed(1)}` : ""))
        .filter(Boolean)
        .join(" ");
    const ticks = TICKS.filter((t) => Math.log(t) < top && Math.log(t) > bottom);
    const sparse = ticks.length > 6 ? ticks.filter((t) => /^0*\.?0*1/.test(String(t))) : ticks;
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.#svg.replaceChildren(
      ...sparse.flatMap((t) => [
        element("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(t), y2: y(t) }),
        element("text", { class: "tick", x: MARGIN.left - 8, y: y(t) + 4, "text-anchor": "end" }, String(t)),
      ]),
      ...this.#stepTicks(steps).map((s) =>
        element(
          "text",
          { class: "tick", x: x(s), y: height - 5, "text-anchor": s === 0 ? "start" : "middle" },
          s.toLocaleString("en"),
        ),
      ),
      element("polyline", { class: "raw", points: path(this.#points) }),
      element("polyline", { class: "smooth", points: path(smooth) }),
    );
    this.#svg.setAttribute(
      "aria-label",
      smooth.length === 0
        ? "The loss of each step of training; nothing is trained yet"
        : `The loss over ${this.steps} steps of training, now ${smooth.at(-1)?.toPrecision(2)}`,
    );
  }

  /** Round numbers of steps, at most six of them. */
  #stepTicks(steps: number): number[] {
    const raw = steps / 5;
    const power = 10 ** Math.floor(Math.log10(raw));
    const round = [1, 2, 2.5, 5, 10].map((f) => f * power).find((f) => f >= raw) ?? raw;
    // the last one is left out where it would stick out of the box
    return Array.from({ length: 6 }, (_, i) => i * round).filter((s) => s <= steps * 0.97);
  }
}

const mean = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0) / xs.length;

/** A mean over the neighbours on both sides, the nearer the more: it does not lag behind. */
function smoothed(points: readonly number[]): number[] {
  const logs = points.map((p) => Math.log(Math.max(p, 1e-6)));
  return faded(faded(logs).reverse()).reverse().map(Math.exp);
}
function faded(points: readonly number[]): number[] {
  let [sum, weight] = [0, 0];
  return points.map((p) => {
    [sum, weight] = [KEEP * sum + p, KEEP * weight + 1];
    return sum / weight;
  });
}
