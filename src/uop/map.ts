// UOpMap and UOpSet: a map from the nodes of one kernel, and a set of them, as arrays indexed by node id.
// They are several times as fast as Map and Set. Nodes made later than the map may be added.

import type { UOp } from "./node.ts";

/** The ids of the nodes: `size` of them so far, starting with `first`. */
interface Ids {
  readonly first: number;
  readonly size: number;
}

export class UOpMap<V> {
  readonly #first: number;
  readonly #values: (V | undefined)[];

  constructor({ first, size }: Ids) {
    this.#first = first;
    this.#values = new Array(size);
  }
  get(u: UOp): V | undefined {
    return this.#values[u.id - this.#first];
  }
  has(u: UOp): boolean {
    return this.#values[u.id - this.#first] !== undefined;
  }
  set(u: UOp, value: V): void {
    this.#values[u.id - this.#first] = value;
  }
  delete(u: UOp): void {
    this.#values[u.id - this.#first] = undefined;
  }
}
/** Nodes of one kernel. */
export class UOpSet {
  readonly #first: number;
  readonly #isIn: boolean[];

  constructor({ first, size }: Ids) {
    this.#first = first;
    this.#isIn = new Array(size);
  }
  has(u: UOp): boolean {
    return this.#isIn[u.id - this.#first] === true;
  }
  add(u: UOp): void {
    this.#isIn[u.id - this.#first] = true;
  }
}
