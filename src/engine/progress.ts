// How far compiling is, for a person who waits: a bar, once it has taken a second in all. The host says where
// it is shown, if anywhere (`showProgress`): a terminal, the lines of DEBUG, a function of the page.

import { showProgress } from "#host";
import { timestamp } from "../helpers.ts";

/** No bar is shown before this many milliseconds. */
const PATIENCE = 1000;
/** Milliseconds between two updates of the bar. */
const PAUSE = 100;
const WIDTH = 20;

export class Progress {
  readonly #total: number;
  #done = 0;
  /** milliseconds of compiling so far, and when the part that goes on began */
  #spent = 0;
  #since = 0;
  #shownAt: number | undefined;

  /** So many kernels are wanted. */
  constructor(total: number) {
    this.#total = total;
  }
  /** From here on time counts as compiling. */
  begin(): void {
    this.#since = timestamp();
  }
  /** One more kernel is there. */
  step(): void {
    const now = timestamp();
    this.#done++;
    this.#spent += now - this.#since;
    this.#since = now;
    if (this.#spent < PATIENCE || now - (this.#shownAt ?? -Infinity) < PAUSE) return;
    this.#shownAt = now;
    showProgress(this.toString());
  }
  /** Takes the bar away, if there is one. */
  end(): void {
    if (this.#shownAt !== undefined) showProgress("");
    this.#shownAt = undefined;
  }

  toString(): string {
    const bar = "=".repeat(Math.floor((WIDTH * this.#done) / this.#total)).padEnd(WIDTH);
    const seconds = (this.#spent / 1000).toFixed(1);
    return `compiling [${bar}] ${this.#done} of ${this.#total} kernels, ${seconds} s`;
  }
}
