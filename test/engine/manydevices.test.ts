// Random programs over one to four devices: tensors are made, computed with, moved and assigned to, the
// schedule is run from a random starting order, and every value is compared with plain arrays. A failure
// names its seed.

import { CommandQueue, createSchedule, Device, StaleError, Tensor } from "gradloom";
import { beforeAll, expect, test } from "vitest";
import { Random } from "../shape/random.ts";

const DEVICES = ["JS", "JS:1", "WASM", "WASM:1"];
const PROGRAMS = 400;

beforeAll(async () => {
  for (const d of DEVICES) await Device.open(d);
});

/** A tensor, what its elements must be, and the variables whose old value it was built on. */
interface Node {
  readonly t: Tensor;
  readonly xs: readonly number[];
  readonly on: ReadonlySet<Tensor>;
}

const wrap = (xs: readonly number[]) => xs.map((x) => x | 0);
const union = (...ns: readonly Node[]) => new Set(ns.flatMap((n) => [...n.on]));

class Program {
  readonly #r: Random;
  readonly #devices: readonly string[];
  readonly #size: number;
  readonly nodes: Node[] = [];
  /** realised tensors that may be assigned to */
  readonly variables: Node[] = [];

  constructor(r: Random) {
    this.#r = r;
    this.#devices = r.shuffled(DEVICES).slice(0, r.int(1, 4));
    this.#size = r.int(1, 5);
  }

  async build(): Promise<this> {
    for (let i = this.#r.int(1, 4); i > 0; i--) {
      const v = this.#leaf();
      await v.t.realize();
      this.variables.push({ ...v, on: new Set([v.t]) });
    }
    this.nodes.push(...this.variables);
    for (let i = this.#r.int(4, 16); i > 0; i--) this.nodes.push(this.#step());
    return this;
  }

  #leaf(): Node {
    const xs = Array.from({ length: this.#size }, () => this.#r.int(-9, 9));
    return { t: new Tensor(xs, { device: this.#r.pick(this.#devices) }), xs, on: new Set() };
  }
  #on(n: Node, device: string): Node {
    return n.t.device === device ? n : { ...n, t: n.t.to(device) };
  }

  #step(): Node {
    const [a, b] = [this.#r.pick(this.nodes), this.#r.pick(this.nodes)];
    const device = this.#r.pick(this.#devices);
    const here = this.#on(a, device);
    switch (this.#r.int(0, 6)) {
      case 0:
        return this.#leaf();
      case 1:
        return here;
      case 2: {
        const there = this.#on(b, device);
        return {
          t: here.t.add(there.t),
          xs: wrap(a.xs.map((x, i) => x + (b.xs[i] as number))),
          on: union(a, b),
        };
      }
      case 3: {
        const there = this.#on(b, device);
        const xs = a.xs.map((x, i) => Math.imul(x, b.xs[i] as number));
        return { t: here.t.mul(there.t), xs, on: union(a, b) };
      }
      case 4: {
        const sum = wrap([a.xs.reduce((x, y) => (x + y) | 0, 0)])[0] as number;
        return { t: here.t.sum(0, true).expand(this.#size), xs: a.xs.map(() => sum), on: a.on };
      }
      case 5:
        return { t: here.t.flip(0), xs: a.xs.toReversed(), on: a.on };
      default:
        return { ...a, t: a.t.contiguous() };
    }
  }

  /**
   * Some variables get new values, stored first so that two of them may swap; later readers see the new ones.
   */
  assign(): { assigned: Set<Tensor>; readers: Node[] } {
    const assigned = new Set<Tensor>();
    const readers: Node[] = [];
    const wanted = this.variables.filter(() => this.#r.chance(50));
    const values = wanted.map((v) => {
      const n = this.#on(this.#r.pick(this.nodes), v.t.device);
      return { v, n, value: wanted.length > 1 || this.#r.chance(50) ? n.t.add(1).contiguous() : n.t.add(1) };
    });
    for (const { v, n, value } of values) {
      // the node keeps the old tensor, and with it the old value
      const target = new Tensor(v.t.lazydata).assign(value);
      const xs = wrap(n.xs.map((x) => x + 1));
      assigned.add(v.t);
      readers.push({ t: target, xs, on: new Set() });
      if (this.#r.chance(60)) readers.push({ t: target.to(this.#r.pick(this.#devices)), xs, on: new Set() });
    }
    return { assigned, readers };
  }

  async run(): Promise<void> {
    const { assigned, readers } = this.assign();
    const outs = this.#r.shuffled([...readers, ...this.nodes.filter(() => this.#r.chance(40))]);
    const queue = new CommandQueue(createSchedule(outs.map((o) => o.t.lazydata)));
    await queue.run(this.#r.shuffled([...queue.q.keys()]));
    for (const [device, left] of queue.q) expect(left, `left on ${device}`).toEqual([]);
    const gone = new Set(this.variables.filter((v) => assigned.has(v.t)).map((v) => v.t.lazydata.base));
    for (const o of outs) {
      if (gone.has(o.t.lazydata.base)) continue; // a view of memory that has a new value
      expect(await o.t.tolist(), `${o.t.lazydata}`).toEqual(o.xs);
    }
    for (const n of this.nodes) if (!gone.has(n.t.lazydata.base)) await this.#checkRest(n, assigned);
  }

  /** What was not asked for is right all the same, or says that the value it was built on is gone. */
  async #checkRest(n: Node, assigned: ReadonlySet<Tensor>): Promise<void> {
    const value = await n.t.tolist().catch((e: unknown) => e);
    const mayBeStale = [...n.on].some((v) => assigned.has(v));
    if (mayBeStale && value instanceof StaleError) return;
    expect(value, `later: ${n.t.lazydata}`).toEqual(n.xs);
  }
}

test(`${PROGRAMS} random programs give what plain arrays give`, async () => {
  for (let seed = 1; seed <= PROGRAMS; seed++) {
    try {
      await (await new Program(new Random(seed)).build()).run();
    } catch (cause) {
      throw new Error(`seed ${seed}: ${(cause as Error).message}`, { cause });
    }
  }
});
