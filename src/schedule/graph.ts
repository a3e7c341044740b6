// The graph as fusion sees it: a record for each node, linked to those of its sources and users, so that the
// many walks of fuse.ts and split.ts look nothing up. In: the nodes to compute. Out: the records of all nodes
// that are not computed yet, sources first.

import { PORTION, type Step } from "../helpers.ts";
import type { LazyBuffer } from "../lazy/lazybuffer.ts";
import { PAUSE } from "../pace.ts";
import { smax, sprod } from "../shape/symbolic.ts";
import type { Shape } from "../shape/view.ts";

/** One use of a node: the user, and the view through which it reads. */
export interface Use {
  readonly by: GraphNode;
  readonly through: LazyBuffer;
}
/**
 * Where a node is computed and how many of its elements. A key names the kernel (shape and loops) and the
 * view.
 */
export type Evaluations = ReadonlyMap<string, number>;

export const elements = (shape: Shape): number => smax(sprod(shape));

/** A concrete node, and what has been found out about it. */
export class GraphNode {
  readonly lb: LazyBuffer;
  readonly elements: number;
  readonly isRealized: boolean;
  /** the bases of its sources, in their order */
  readonly srcs: GraphNode[] = [];
  readonly uses: Use[] = [];
  /** the position among all nodes that are not computed yet */
  at = -1;
  /** stored whatever else is decided */
  mustStore = false;
  /** stored, as far as has been decided */
  stored = false;
  /** a reduction that is computed inside the kernel in which it is expanded back */
  fused = false;
  /** the last search that visited this node */
  search = 0;
  /** how many fused reductions are stacked up to here */
  height = 0;
  /** the length of the longest path of fused nodes that ends here */
  depth = 0;
  /** the stored node in whose kernel this one is computed; null: several kernels */
  kernel: GraphNode | null | undefined;
  evaluations: Evaluations | undefined;

  constructor(lb: LazyBuffer) {
    this.lb = lb;
    this.elements = elements(lb.shape);
    this.isRealized = lb.realized !== undefined;
  }
  /** Whether a kernel that needs this value reads it from memory. */
  get isRead(): boolean {
    return this.isRealized || this.stored;
  }
}

let searches = 0;
/** The number of a new search, which marks the nodes that it visits. Only one search runs at a time. */
export const newSearch = (): number => ++searches;

export interface Graph {
  /** not computed yet, sources before users */
  readonly all: readonly GraphNode[];
  /** how many nodes are read, computed ones included */
  readonly used: number;
}

/** `roots` are concrete and not computed yet. */
export function* graphSteps(roots: readonly LazyBuffer[]): Step<Graph> {
  const nodes = new Map<LazyBuffer, GraphNode>();
  const all: GraphNode[] = [];
  let used = 0;
  // iterative, because a graph may be deeper than the call stack
  const path: GraphNode[] = [];
  const enter = (lb: LazyBuffer): GraphNode => {
    const made = new GraphNode(lb);
    nodes.set(lb, made);
    if (!made.isRealized) path.push(made);
    return made;
  };
  for (const root of roots) {
    if (!nodes.has(root)) enter(root);
    for (let moves = 1; path.length > 0; moves++) {
      if (moves % PORTION === 0) yield PAUSE;
      const node = path[path.length - 1] as GraphNode;
      const through = node.lb.srcs?.[node.srcs.length];
      if (through === undefined) {
        node.at = all.push(node) - 1;
        path.pop();
        continue;
      }
      const { base } = through;
      const source = nodes.get(base) ?? enter(base);
      if (source.uses.push({ by: node, through }) === 1) used++;
      node.srcs.push(source);
    }
  }
  return { all, used };
}
