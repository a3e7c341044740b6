// Schedules of graphs of equal structure are made once. In: the nodes to compute. Out: the graph as a flat
// list (`structureSteps`), and for a list that is known the items of its schedule, bound to the buffers of
// this graph. Exact: the list holds all that a schedule depends on (ops, arguments, constants, shapes, views,
// types, devices, which buffers are the same memory, the age of nodes, the settings), and lists are compared
// element by element.

import { env } from "../env.ts";
import { each, getOrMake, mapEach, PORTION, type Step } from "../helpers.ts";
import type { LazyBuffer, Together } from "../lazy/lazybuffer.ts";
import { PAUSE } from "../pace.ts";
import { Buffer } from "../runtime/buffer.ts";
import type { Compiled } from "../runtime/device.ts";
import { Device } from "../runtime/registry.ts";
import { rememberMovements } from "../shape/movements.ts";
import type { ShapeTracker } from "../shape/shapetracker.ts";
import { type LazyOp, loopAst } from "./lazyop.ts";
import type { ScheduleItem } from "./schedule.ts";

/** A graph as a list, and its nodes in the order of the list. */
export interface Structure {
  readonly list: readonly unknown[];
  readonly hash: number;
  /** sources before users, realised ones included */
  readonly nodes: readonly LazyBuffer[];
  /** for each node, how many nodes of the graph read it */
  readonly users: readonly number[];
  readonly assigns: readonly LazyBuffer[];
  readonly places: ReadonlyMap<LazyBuffer, number>;
}

/** What of an item stays the same; buffers and nodes are given by position. */
interface ItemTemplate {
  /** undefined: a loop. Only its results matter here; the loop of each graph has its own kernels */
  readonly ast: readonly LazyOp[] | undefined;
  readonly varVals: ScheduleItem["varVals"];
  readonly outputs: readonly number[];
  readonly inputs: readonly number[];
  readonly lazies: readonly number[];
  readonly reads: readonly number[];
}
interface ScheduleTemplate {
  readonly list: readonly unknown[];
  readonly items: readonly ItemTemplate[];
  /** buffers between the halves of split reductions: new ones for each run; at positions -1, -2, … */
  readonly own: readonly Buffer[];
}

// a program that schedules much also moves its tensors in the same ways again and again
rememberMovements();

/** What all templates together may have: elements of lists, which also bounds their kernels. */
const MAX_ELEMENTS = 1 << 21;
/** Elements of a list are looked at this many at a time. */
const MANY_ELEMENTS = 1 << 12;
const templates = new Map<number, ScheduleTemplate>();
let elements = 0;
let limit = MAX_ELEMENTS;

/** Forgets all schedules (for measuring); `most`: how many elements are kept from now on. */
export function clearSchedules(most: number = MAX_ELEMENTS): void {
  templates.clear();
  elements = 0;
  limit = most;
}

const deviceIds = new WeakMap<Compiled, number>();
let devices = 0;
/** A number for the opened device: another one may be opened under the same name. */
const idOf = (name: string): number =>
  Device.isOpen(name) ? getOrMake(deviceIds, Device.get(name), () => ++devices) : 0;

/** A number for each view without symbolic sizes, by its key; lists hold it instead of the view. */
const viewIds = new Map<string, number>();
const MAX_VIEWS = 1 << 16;
let views = 0;
/** Below 0, so that it is not taken for a count of views; never given twice. */
function viewId(key: string): number {
  if (viewIds.size >= MAX_VIEWS) viewIds.clear();
  return getOrMake(viewIds, key, () => -++views);
}

/** undefined: something in the graph must be looked at every time. */
export function* structureSteps(wanted: readonly LazyBuffer[], since: number): Step<Structure | undefined> {
  const walk = new GraphWalk(since);
  for (const root of wanted) if (!(yield* walk.visit(root))) return undefined;
  return yield* walk.finish(wanted);
}

class GraphWalk {
  readonly #since: number;
  readonly #list: unknown[] = [env.FUSE];
  readonly #nodes: LazyBuffer[] = [];
  readonly #users: number[] = [];
  readonly #assigns: LazyBuffer[] = [];
  readonly #places = new Map<LazyBuffer, number>();
  readonly #buffers = new Map<Buffer, number>();
  readonly #loops = new Map<Together, number>();
  readonly #devices = new Set<string>();

  constructor(since: number) {
    this.#since = since;
  }

  /** Adds a node after its sources; false where the structure does not say everything. */
  *visit(root: LazyBuffer): Step<boolean> {
    const places = this.#places;
    if (places.has(root)) return true;
    const path: LazyBuffer[] = [root];
    const done: number[] = [0];
    while (path.length > 0) {
      const b = path[path.length - 1] as LazyBuffer;
      const at = done[done.length - 1] as number;
      const next = b.srcs?.[at];
      if (next !== undefined) {
        done[done.length - 1] = at + 1;
        const base = next._base ?? next;
        if (!places.has(base)) {
          path.push(base);
          done.push(0);
        }
        continue;
      }
      path.pop();
      done.pop();
      if (b.stale !== undefined || b.op === "CUSTOM") return false;
      this.#add(b);
      if (this.#nodes.length % PORTION === 0) yield PAUSE;
    }
    return true;
  }

  #add(b: LazyBuffer): void {
    const list = this.#list;
    this.#places.set(b, this.#nodes.length);
    this.#nodes.push(b);
    this.#users.push(0);
    const flags = (b.forcedRealize ? 1 : 0) + (b.id < this.#since ? 2 : 0);
    // an op on sources is where they are, and has their shape, as its kind and axes say
    if (b.srcs === undefined || b.isLoad) {
      list.push(b.op, b.dtype, b.device, flags, b.srcs === undefined);
      this.#devices.add(b.device);
      this.#addView(b.st);
    } else list.push(b.op, b.dtype, flags);
    if (b.srcs === undefined || b.op === "EMPTY") this.#addBuffer(b.buffer);
    if (b.srcs === undefined) return;
    if (b.op === "ASSIGN") this.#assigns.push(b);
    if (b.op === "SCAN") this.#addLoop(b);
    if (b.op === "CONST") list.push(b.arg);
    else if (b.isReduce) for (const axis of b.arg as readonly number[]) list.push(axis);
    const { srcs } = b;
    list.push(srcs.length);
    for (let i = 0; i < srcs.length; i++) {
      const s = srcs[i] as LazyBuffer;
      const base = s._base ?? s;
      const place = this.#places.get(base) as number;
      list.push(place);
      if (s !== base) this.#addView(s.st);
      let again = false;
      for (let k = 0; k < i; k++) again ||= srcs[k]?.base === base;
      if (!again) (this.#users[place] as number)++;
    }
  }

  /** Which result of which loop. The body does not matter: the loop itself knows its launches. */
  #addLoop(b: LazyBuffer): void {
    const loop = b.arg as Together;
    const place = getOrMake(this.#loops, loop, () => this.#loops.size + 1);
    this.#list.push(place, loop.results.indexOf(b), loop.results.length);
  }

  /** Which memory: the same buffer, or another part of the same memory. */
  #addBuffer(buffer: Buffer): void {
    const place = (b: Buffer): number => getOrMake(this.#buffers, b, () => this.#buffers.size + 1);
    this.#list.push(place(buffer), buffer.base === undefined ? 0 : place(buffer.base), buffer.size);
  }

  /** Symbolic sizes are interned, with the values that are bound: equal ones are the same object. */
  #addView(st: ShapeTracker): void {
    const { views } = st;
    const list = this.#list;
    if (views.every((v) => v.isNumeric)) {
      list.push(viewId(st.key));
      return;
    }
    list.push(views.length);
    for (const v of views) {
      list.push(v.contiguous ? -1 : -2, v.shape.length);
      for (const d of v.shape) list.push(d);
      if (v.contiguous) continue;
      for (const s of v.strides) list.push(s);
      list.push(v.offset, v.mask === undefined);
      if (v.mask !== undefined) for (const [lo, hi] of v.mask) list.push(lo, hi);
    }
  }

  *finish(wanted: readonly LazyBuffer[]): Step<Structure> {
    const list = this.#list;
    for (const b of wanted) list.push(this.#places.get(b));
    for (const name of this.#devices) list.push(idOf(name));
    let hash = list.length;
    for (let at = 0; at < list.length; ) {
      const end = Math.min(list.length, at + MANY_ELEMENTS);
      for (; at < end; at++) {
        const x = list[at];
        if (typeof x === "number") hash = Math.imul(hash ^ x, 0x9e3779b1) ^ (hash >>> 15);
      }
      yield PAUSE;
    }
    return {
      list,
      hash,
      nodes: this.#nodes,
      users: this.#users,
      assigns: this.#assigns,
      places: this.#places,
    };
  }
}

function* isSame(a: readonly unknown[], b: readonly unknown[]): Step<boolean> {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    if (!Object.is(a[i], b[i])) return false;
    if (i % MANY_ELEMENTS === MANY_ELEMENTS - 1) yield PAUSE;
  }
  return true;
}

/** The schedule of a graph of this structure, bound to the buffers of this one; undefined: there is none. */
export function* knownSchedule({ list, hash, nodes }: Structure): Step<ScheduleItem[] | undefined> {
  const found = templates.get(hash);
  if (found === undefined || !(yield* isSame(found.list, list))) return undefined;
  // the one used last goes last
  templates.delete(hash);
  templates.set(hash, found);
  const own = found.own.map((b) => new Buffer(b.device, b.size, b.dtype));
  const node = (i: number): LazyBuffer => nodes[i] as LazyBuffer;
  const buffer = (i: number): Buffer => (i < 0 ? (own[-1 - i] as Buffer) : node(i).buffer);
  return yield* mapEach(found.items, ({ ast, varVals, outputs, inputs, lazies, reads }) => ({
    ast: ast ?? loopAst(node(lazies[0] as number)),
    outputs: outputs.map(buffer),
    inputs: inputs.map(buffer),
    varVals,
    lazies: lazies.map(node),
    reads: reads.map(node),
  }));
}

/** Keeps the schedule of this structure; the one that was not used for longest goes. */
export function* keepSchedule({ list, hash, places }: Structure, items: readonly ScheduleItem[]): Step<void> {
  if (list.length > limit / 2) return;
  const where = new Map<Buffer, number>();
  const own: Buffer[] = [];
  // results of a loop that the graph does not read are not in it
  const isHere = (lb: LazyBuffer): boolean => places.has(lb);
  const place = (lb: LazyBuffer): number => places.get(lb) as number;
  yield* each(items, ({ lazies, reads = [] }) => {
    for (const lb of lazies.filter(isHere)) where.set(lb.buffer, place(lb));
    for (const lb of reads) where.set(lb.buffer, place(lb));
  });
  const buffer = (b: Buffer): number => getOrMake(where, b, () => -own.push(b));
  const made = yield* mapEach(
    items,
    ({ ast, varVals, outputs, inputs, lazies, reads = [] }): ItemTemplate => {
      const isLoop = ast[0]?.op === "SCAN";
      return {
        ast: isLoop ? undefined : ast,
        varVals,
        outputs: isLoop ? [] : outputs.map(buffer),
        inputs: isLoop ? [] : inputs.map(buffer),
        lazies: lazies.filter(isHere).map(place),
        reads: reads.map(place),
      };
    },
  );
  const before = templates.get(hash);
  if (before !== undefined) elements -= before.list.length;
  templates.delete(hash);
  const described = own.map((b) => new Buffer(b.device, b.size, b.dtype));
  templates.set(hash, { list, items: made, own: described });
  elements += list.length;
  for (const [old, template] of templates) {
    if (elements <= limit) break;
    templates.delete(old);
    elements -= template.list.length;
  }
}
