// The gradient of a weight that a scan uses in every step, without a sum that every step reads and writes.
// In: what one step adds to the gradient, as a traced node. Out: which values of the step are to be stacked,
// and the gradient of all steps as one reduction over the stacks, which runs after the loop.

import type { LazyBuffer } from "../lazy/lazybuffer.ts";
import { ShapeTracker } from "../shape/shapetracker.ts";
import type { Sint } from "../shape/symbolic.ts";
import { type Interval, View } from "../shape/view.ts";

/** What is known of the trace. */
export interface StepFacts {
  readonly length: number;
  /** nodes of the trace have ids from here on */
  readonly since: number;
  /** nodes of the trace of which all steps are stacked anyway */
  readonly stacked: ReadonlySet<LazyBuffer>;
}
/** The sum of a value over all steps, made of the stacks of `leaves`. */
export interface Total {
  readonly leaves: ReadonlySet<LazyBuffer>;
  sum(stackOf: (leaf: LazyBuffer) => LazyBuffer): LazyBuffer;
}

/**
 * How `step` is summed after the loop; undefined where the loop has to do it. A contraction over a dim of the
 * step becomes one over that dim and the steps; its operands are what is stacked.
 */
export function totalOf(step: LazyBuffer, facts: StepFacts): Total | undefined {
  const leaves = new Set<LazyBuffer>();
  const made = new TotalPlanner(facts, leaves).plan(step);
  return made === undefined ? undefined : { leaves, sum: made };
}

/** Makes a node, when the stacks are there. */
type Make = (stackOf: (leaf: LazyBuffer) => LazyBuffer) => LazyBuffer;

class TotalPlanner {
  readonly #facts: StepFacts;
  readonly #leaves: Set<LazyBuffer>;
  constructor(facts: StepFacts, leaves: Set<LazyBuffer>) {
    this.#facts = facts;
    this.#leaves = leaves;
  }

  /** The sum over all steps: of a view it is the view of the sum, of a reduction one over more elements. */
  plan(node: LazyBuffer): Make | undefined {
    const { base, st } = node;
    const whole = this.#planBase(base);
    if (whole === undefined || node === base) return whole;
    return (stackOf) => whole(stackOf).seen(st);
  }
  #planBase(base: LazyBuffer): Make | undefined {
    if (this.#isOwn(base) && base.op === "SUM") {
      const [src] = base.sources as [LazyBuffer];
      const lifted = this.#factor(src);
      const axes = [0, ...(base.arg as readonly number[]).map((a) => a + 1)];
      return (stackOf) => lifted(stackOf).r("SUM", axes).reshape(base.shape);
    }
    if (this.#isOwn(base) && base.op === "ADD") {
      const [a, b] = base.sources.map((s) => this.plan(s));
      return a && b && ((stackOf) => a(stackOf).e("ADD", b(stackOf)));
    }
    // an outer product, or a value as it is
    if (base.op !== "MUL" && !this.#facts.stacked.has(base)) return undefined;
    const lifted = this.#factor(base);
    return (stackOf) => lifted(stackOf).r("SUM", [0]).reshape(base.shape);
  }
  #isOwn(base: LazyBuffer): boolean {
    return base.id >= this.#facts.since && base.realized === undefined && !this.#facts.stacked.has(base);
  }

  /** A product of two stacks, or a stack. */
  #factor(node: LazyBuffer): Make {
    const { base } = node;
    if (!this.#isOwn(base) || base.op !== "MUL") return this.#stack(node);
    const [a, b] = base.sources.map((s) => this.#stack(s)) as [Make, Make];
    return (stackOf) => this.#lifted(node, a(stackOf).e("MUL", b(stackOf)));
  }
  #stack(node: LazyBuffer): Make {
    const { base } = node;
    const { since, stacked, length } = this.#facts;
    if (base.isUnrealizedConst || (base.id < since && !stacked.has(base))) {
      return () => node.reshape([1, ...node.shape]).expand([length, ...node.shape]);
    }
    this.#leaves.add(base);
    return (stackOf) => this.#lifted(node, stackOf(base));
  }
  /** `stack` has a row for each step, as `node.base` is in that step; every row is seen as `node` sees it. */
  #lifted({ base, st }: LazyBuffer, stack: LazyBuffer): LazyBuffer {
    if (st === base.st) return stack;
    const { length } = this.#facts;
    const views = st.views.map((v, i) =>
      inRows(v, length, i === 0 ? base.size : (st.views[i - 1] as View).size),
    );
    const rows = ShapeTracker.fromViews(views);
    return stack.seen(stack.st.add(rows));
  }
}

/** The same view of each row of a stack, where a row has `size` elements. */
function inRows({ shape, strides, offset, mask }: View, length: number, size: Sint): View {
  const all: Interval = [0, length];
  return View.create([length, ...shape], [size, ...strides], offset, mask && [all, ...mask]);
}
