// What was given up while the GPU may still use it. It is freed when a mark that was set afterwards is
// reached. A mark costs a submission on each channel, so one serves all that was given up since the last.

/** A point that all submissions so far come before: whether it is reached. */
export type Mark = () => boolean;

/** So many wait for a mark before a second one is set. */
const BATCH = 64;

export class Retired {
  readonly #mark: () => Mark;
  #fresh: (() => void)[] = [];
  readonly #marked: { readonly passed: Mark; readonly frees: readonly (() => void)[] }[] = [];

  constructor(mark: () => Mark) {
    this.#mark = mark;
  }
  add(free: () => void): void {
    this.#fresh.push(free);
  }
  /** Frees what can be freed, and sets a mark for what was added since the last. */
  reclaim(): void {
    for (let first = this.#marked[0]; first?.passed(); first = this.#marked[0]) {
      this.#marked.shift();
      for (const free of first.frees) free();
    }
    if (this.#fresh.length === 0) return;
    if (this.#marked.length > 0 && this.#fresh.length < BATCH) return;
    const frees = this.#fresh;
    this.#fresh = [];
    this.#marked.push({ passed: this.#mark(), frees });
  }
  /** Frees all of it; `block` waits for a mark. */
  drain(block: (passed: Mark) => void): void {
    block(this.#mark());
    for (const { passed, frees } of this.#marked.splice(0)) {
      // a mark gives back what it lies in when it is asked
      passed();
      for (const free of frees) free();
    }
    for (const free of this.#fresh.splice(0)) free();
  }
}
