// Remembers the movements of ShapeTrackers: every layer and every training step moves its tensors in the same
// way. In: the class ShapeTracker. Out: its methods give the same object for the same movement, so that what
// is derived from a view (its key, views merged with it) is derived once. Programs that schedule little do
// not need it: pages load this together with schedule/reuse.ts.

import { arraysEqual } from "../helpers.ts";
import { areSizesWatched } from "./guards.ts";
import { ShapeTracker } from "./shapetracker.ts";
import type { Shape } from "./view.ts";

interface Movement {
  readonly name: string;
  readonly arg: readonly unknown[];
  readonly made: ShapeTracker;
}
/** How many movements of one tracker are remembered, and how many trackers. */
const MAX_MOVEMENTS = 8;
const MAX_TRACKERS = 2048;
const movements = new Map<ShapeTracker, Movement[]>();
const contiguous = new Map<string, ShapeTracker>();

const isSameArgument = (a: readonly unknown[], b: readonly unknown[]): boolean => {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i], b[i]];
    if (x !== y && !(Array.isArray(x) && Array.isArray(y) && arraysEqual(x, y))) return false;
  }
  return true;
};

function keep(st: ShapeTracker, name: string, arg: readonly unknown[], made: ShapeTracker): ShapeTracker {
  let known = movements.get(st);
  if (known === undefined) {
    if (movements.size >= MAX_TRACKERS) movements.clear();
    known = [];
    movements.set(st, known);
  }
  if (known.length >= MAX_MOVEMENTS) known.shift();
  // the caller may change its arrays later
  known.push({ name, arg: arg.map((x) => (Array.isArray(x) ? [...x] : x)), made });
  return made;
}

/** The method, for arguments that are lists of sizes, axes or intervals. */
function remembered<A extends readonly unknown[]>(
  name: string,
  move: (this: ShapeTracker, arg: A) => ShapeTracker,
): (this: ShapeTracker, arg: A) => ShapeTracker {
  return function (arg) {
    if (areSizesWatched()) return move.call(this, arg);
    const known = movements.get(this);
    if (known !== undefined)
      for (const m of known) if (m.name === name && isSameArgument(m.arg, arg)) return m.made;
    const made = move.call(this, arg);
    return made === this ? made : keep(this, name, arg, made);
  };
}

let isOn = false;
/** From now on ShapeTracker remembers. */
export function rememberMovements(): void {
  if (isOn) return;
  isOn = true;
  const { prototype: methods } = ShapeTracker;
  methods.reshape = remembered("reshape", methods.reshape);
  methods.permute = remembered("permute", methods.permute);
  methods.expand = remembered("expand", methods.expand);
  methods.pad = remembered("pad", methods.pad);
  methods.shrink = remembered("shrink", methods.shrink);
  methods.flip = remembered("flip", methods.flip);
  const { add } = methods;
  const addOne = remembered("add", function ([other]: readonly [ShapeTracker]) {
    return add.call(this, other);
  });
  methods.add = function (other) {
    return other.contiguous && other.shape === this.shape ? this : addOne.call(this, [other]);
  };
  const { fromShape, repeating } = ShapeTracker;
  ShapeTracker.fromShape = (shape: Shape): ShapeTracker => {
    const key = shape.join();
    const known = contiguous.get(key);
    // different symbolic sizes may look the same as text
    if (known !== undefined && arraysEqual(shape, known.shape)) return known;
    const made = fromShape(shape);
    if (contiguous.size >= MAX_TRACKERS) contiguous.clear();
    contiguous.set(key, made);
    return made;
  };
  const repeat = remembered("repeating", function () {
    return repeating(this.shape);
  });
  ShapeTracker.repeating = (shape: Shape): ShapeTracker => repeat.call(ShapeTracker.fromShape(shape), []);
}
