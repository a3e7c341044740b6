// Divides one growing address range into blocks: best fit by size class, neighbours join when freed. Used by
// devices whose memory is one piece (WASM). Knows nothing of what is stored.

const ALIGN = 64;
const classOf = (size: number): number => Math.floor(Math.log2(size));

export class AddressSpace {
  /** free blocks: start -> size, end -> start, and starts by the power of two below their size */
  readonly #sizes = new Map<number, number>();
  readonly #ends = new Map<number, number>();
  readonly #classes: Set<number>[] = [];
  #top: number;

  constructor(start: number) {
    this.#top = Math.ceil(start / ALIGN) * ALIGN;
  }

  /** One past the last address in use: how far the memory must reach. */
  get top(): number {
    return this.#top;
  }

  static rounded(nbytes: number): number {
    return Math.max(ALIGN, Math.ceil(nbytes / ALIGN) * ALIGN);
  }

  /**
   * A start address. The caller makes sure that memory reaches `top`; `fresh` says it was never used before.
   */
  alloc(nbytes: number): { at: number; fresh: boolean } {
    const size = AddressSpace.rounded(nbytes);
    const found = this.#find(size);
    if (found !== undefined) {
      const had = this.#remove(found);
      if (had > size) this.#insert(found + size, had - size);
      return { at: found, fresh: false };
    }
    const at = this.#top;
    this.#top += size;
    return { at, fresh: true };
  }

  free(at: number, nbytes: number): void {
    let start = at;
    let size = AddressSpace.rounded(nbytes);
    const after = this.#sizes.get(start + size);
    if (after !== undefined) size += this.#remove(start + size);
    const before = this.#ends.get(start);
    if (before !== undefined) {
      size += this.#remove(before);
      start = before;
    }
    if (start + size === this.#top) this.#top = start;
    else this.#insert(start, size);
  }

  #find(size: number): number | undefined {
    let best: number | undefined;
    for (let c = classOf(size); c < this.#classes.length && best === undefined; c++) {
      for (const start of this.#classes[c] ?? []) {
        const has = this.#sizes.get(start) as number;
        if (has >= size && (best === undefined || has < (this.#sizes.get(best) as number))) best = start;
        if (has === size) break;
      }
    }
    return best;
  }
  #insert(start: number, size: number): void {
    this.#sizes.set(start, size);
    this.#ends.set(start + size, start);
    const c = classOf(size);
    while (this.#classes.length <= c) this.#classes.push(new Set());
    this.#classes[c]?.add(start);
  }
  #remove(start: number): number {
    const size = this.#sizes.get(start) as number;
    this.#sizes.delete(start);
    this.#ends.delete(start + size);
    this.#classes[classOf(size)]?.delete(start);
    return size;
  }
}
