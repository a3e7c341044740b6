// How far a loop is, for a person at a terminal: a bar with the time left and figures of your choice. In: any
// iterable, or an async one. Out: its elements, untouched. The host decides where a bar is shown: in a
// terminal, and nowhere else.

import { showProgress } from "#host";
import { ArgumentError } from "../errors.ts";
import { timestamp } from "../helpers.ts";
import { checkOptions } from "./options.ts";

const WIDTH = 24;
/** Milliseconds between two updates of the bar. */
const PAUSE = 100;

export interface ProgressOptions {
  /** how many elements there will be; default: `length` or `size` of the iterable, if it has one */
  readonly total?: number;
  /** what is in front of the bar */
  readonly label?: string;
  /** gets each new line of the bar instead of the terminal, and an empty one at the end */
  readonly show?: (line: string) => void;
}

const seconds = (ms: number): string => {
  const s = Math.round(ms / 1000);
  const [h, m] = [Math.floor(s / 3600), Math.floor((s % 3600) / 60)];
  const two = (n: number): string => String(n).padStart(2, "0");
  return h > 0 ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`;
};
const figure = (x: unknown): string =>
  typeof x === "number" && !Number.isInteger(x) ? x.toPrecision(4) : String(x);

/**
 * A bar that you move yourself: `nn.progress` moves one over an iterable.
 * @example
 * const bar = new nn.ProgressBar({ total: 4, label: "epoch 1", show: () => {} });
 * bar.step({ loss: 0.25 });
 * bar.line(2000) // => "epoch 1 [======                  ] 1/4 0:02<0:06, loss 0.2500"
 */
export class ProgressBar {
  readonly #total: number | undefined;
  readonly #label: string;
  readonly #show: (line: string) => void;
  readonly #start = timestamp();
  #shownAt = -Infinity;
  #figures = "";
  #done = 0;

  constructor(options: ProgressOptions = {}) {
    const {
      total,
      label = "",
      show = showProgress,
    } = checkOptions("ProgressBar", options, ["total", "label", "show"]);
    if (total !== undefined && !(total >= 0)) {
      throw new ArgumentError(`ProgressBar: total is ${total}, expected a number of elements`);
    }
    this.#total = total;
    this.#label = label;
    this.#show = show;
  }
  get done(): number {
    return this.#done;
  }
  /** One more element is done; `figures` are shown behind the bar. */
  step(figures?: Readonly<Record<string, unknown>>): void {
    this.#done++;
    if (figures !== undefined) this.set(figures);
    const now = timestamp();
    if (now - this.#shownAt < PAUSE && this.#done !== this.#total) return;
    this.#shownAt = now;
    this.#show(this.line(now - this.#start));
  }
  /** What is shown behind the bar, such as the loss. */
  set(figures: Readonly<Record<string, unknown>>): void {
    this.#figures = Object.entries(figures)
      .map(([name, x]) => `, ${name} ${figure(x)}`)
      .join("");
  }
  /** Takes the bar away. */
  end(): void {
    this.#show("");
  }
  /** The bar as a text, after so many milliseconds. */
  line(ms: number): string {
    const head = this.#label === "" ? "" : `${this.#label} `;
    const [done, total] = [this.#done, this.#total];
    if (total === undefined) return `${head}${done}, ${seconds(ms)}${this.#figures}`;
    const part = total === 0 ? 1 : Math.min(1, done / total);
    const bar = "=".repeat(Math.floor(WIDTH * part)).padEnd(WIDTH);
    const left = done === 0 ? "?" : seconds((ms / done) * Math.max(0, total - done));
    return `${head}[${bar}] ${done}/${total} ${seconds(ms)}<${left}${this.#figures}`;
  }
}

/**
 * The elements of an iterable, with a bar in the terminal while a loop goes through them. Nothing is written
 * where there is no terminal, or with PROGRESS=0.
 * @example
 * let sum = 0;
 * for await (const x of nn.progress([1, 2, 3], { label: "adding" })) sum += x;
 * sum // => 6
 */
export async function* progress<T>(
  items: Iterable<T> | AsyncIterable<T>,
  options: ProgressOptions = {},
): AsyncGenerator<T, void, undefined> {
  if (!(Symbol.iterator in Object(items) || Symbol.asyncIterator in Object(items))) {
    throw new ArgumentError(
      `progress: got ${typeof items}, expected an array or another iterable, such as a DataLoader`,
    );
  }
  const { length, size } = items as { length?: unknown; size?: unknown };
  const total = [options.total, length, size].find((n) => typeof n === "number") as number | undefined;
  const bar = new ProgressBar({ ...options, ...(total !== undefined && { total }) });
  try {
    for await (const item of items) {
      yield item;
      bar.step();
    }
  } finally {
    bar.end();
  }
}
