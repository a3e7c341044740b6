// The intern table: one object per structure, so that structural equality is `===`. In: a freshly built
// candidate with its hash. Out: the one live object with that structure. The most recent objects are held
// strongly in a chained hash table, which is fast and needs no strings or WeakRefs. A full table is emptied
// into a weak table, whose dead entries are removed at the same time. Memory is bounded by the recent table
// plus what the program itself still holds.

export interface Internable {
  readonly hash: number;
  /** The link of a chain in the recent table; used only by the table. */
  next: Internable | undefined;
  sameAs(other: Internable): boolean;
}

const BUCKETS = 1 << 14;
const RECENT_LIMIT = 1 << 15;

export class InternTable {
  #buckets: (Internable | undefined)[] = new Array<Internable | undefined>(BUCKETS).fill(undefined);
  #recent = 0;
  readonly #old = new Map<number, WeakRef<Internable>[]>();

  /**
   * The number of objects in the table: recent ones, and old ones not yet swept. For tests and leak reports.
   */
  get size(): number {
    let n = this.#recent;
    for (const refs of this.#old.values()) n += refs.length;
    return n;
  }

  get<T extends Internable>(candidate: T): T {
    const slot = candidate.hash & (BUCKETS - 1);
    const head = this.#buckets[slot];
    for (let at = head; at !== undefined; at = at.next) {
      if (at.hash === candidate.hash && at.sameAs(candidate)) return at as T;
    }
    const found = this.#revive(candidate) ?? candidate;
    found.next = head;
    this.#buckets[slot] = found;
    if (++this.#recent > RECENT_LIMIT) this.#retire();
    return found;
  }

  #revive<T extends Internable>(candidate: T): T | undefined {
    const refs = this.#old.get(candidate.hash);
    if (refs === undefined) return undefined;
    for (let i = 0; i < refs.length; i++) {
      const old = refs[i]?.deref();
      if (old === undefined || !old.sameAs(candidate)) continue;
      refs.splice(i, 1);
      return old as T;
    }
    return undefined;
  }

  #retire(): void {
    for (const [hash, refs] of this.#old) {
      const live = refs.filter((ref) => ref.deref() !== undefined);
      if (live.length === 0) this.#old.delete(hash);
      else if (live.length < refs.length) this.#old.set(hash, live);
    }
    for (let at of this.#buckets) {
      while (at !== undefined) {
        const { next } = at;
        at.next = undefined; // a retired object must not keep its old chain alive
        const refs = this.#old.get(at.hash);
        if (refs === undefined) this.#old.set(at.hash, [new WeakRef(at)]);
        else refs.push(new WeakRef(at));
        at = next;
      }
    }
    this.#buckets = new Array<Internable | undefined>(BUCKETS).fill(undefined);
    this.#recent = 0;
  }
}
