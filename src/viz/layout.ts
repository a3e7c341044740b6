// A layered drawing of a directed acyclic graph. In: the width of each box and which box points to which,
// sources before users. Out: the positions of the boxes, row by row from the top, and the lines between them.
// Knows nothing about what the boxes mean; graph.ts draws them.

import { range } from "../helpers.ts";

interface Link {
  readonly from: number;
  readonly to: number;
  /** where on the top of its user the link arrives, relative to the middle of the box */
  readonly shift: number;
}

/** A vertical segment of a line. */
interface Stop {
  readonly x: number;
  readonly top: number;
  readonly bottom: number;
}

/** Segments from the top down, with curves between them. The links of one box share lines where they can. */
export interface Line {
  readonly stops: readonly Stop[];
  /** the link that ends here; undefined for the part that several links share */
  readonly link: number | undefined;
  /** its source is so far away that only the last segment is drawn */
  readonly leaps: boolean;
}

export interface Drawing {
  /** the upper left corner of each box */
  readonly boxes: readonly { readonly x: number; readonly y: number }[];
  readonly lines: readonly Line[];
  readonly width: number;
  readonly height: number;
}

export const BOX_HEIGHT = 38;
const BOX_GAP = 22;
const LANE = 9;
const ROW_GAP = 50;
const ROW_GAP_MAX = 150;
/** The last segment of a line is vertical, with room for a label on it. */
const ENTRY = 16;
/** Nobody follows a line over more rows than this, so longer links are not drawn in full. */
const MAX_REACH = 40;
/** Bends cost as much as boxes; beyond this many, shorter links are cut off too. */
const MAX_BENDS = 20_000;
const MIN_REACH = 4;
const SWEEPS = 14;
/** the first passes reduce crossings, the others only straighten lines */
const SORTING_SWEEPS = 8;
/** How strongly a joint is pulled to the vertical. Lanes should be straight, and so should long paths. */
const PULL = { loose: 1, bend: 2, lane: 16, spine: (length: number) => Math.min(length, 64) ** 2 } as const;

/** A box, or the point in a row that a long link passes through. `x` is the middle. */
interface Item {
  readonly row: number;
  readonly width: number;
  readonly bend: boolean;
  readonly above: Joint[];
  readonly below: Joint[];
  x: number;
  /** its index in the row */
  at: number;
  /** the position its neighbours prefer, and how strongly */
  wish: number;
  pull: number;
}

/** A connection between two items of neighbouring rows. */
interface Joint {
  readonly upper: Item;
  readonly lower: Item;
  readonly shift: number;
  readonly pull: number;
}

/** The last segment of a link: from its source, or the bend above its user, to the user. */
interface End {
  readonly upper: Item;
  readonly lower: Item;
  readonly shift: number;
}

interface Net {
  readonly rows: readonly Item[][];
  readonly boxes: readonly Item[];
  /** by box: the box and the bends below it */
  readonly chains: readonly (readonly Item[])[];
  /** by link */
  readonly ends: readonly End[];
}

export function layout(widths: readonly number[], links: readonly Link[]): Drawing {
  const net = connect(widths, links);
  arrange(net.rows);
  straightenLanes(net);
  return measure(net);
}

interface Ranks {
  readonly row: readonly number[];
  /**
   * by box: the user, if any, that should be straight below it, and the length of the path that this makes
   */
  readonly spine: readonly (number | undefined)[];
  readonly length: readonly number[];
}

/**
 * Longest path from the sources; then boxes, above all leaves, move down to their users if that costs
 * nothing.
 */
function rank(count: number, links: readonly Link[]): Ranks {
  const sources: number[][] = range(count).map(() => []);
  const users: number[][] = range(count).map(() => []);
  for (const { from, to } of links) {
    sources[to]!.push(from);
    users[from]!.push(to);
  }
  const depth = new Array<number>(count).fill(0);
  const height = new Array<number>(count).fill(0);
  for (let i = 0; i < count; i++) for (const s of sources[i]!) depth[i] = Math.max(depth[i]!, depth[s]! + 1);
  for (let i = count - 1; i >= 0; i--)
    for (const u of users[i]!) height[i] = Math.max(height[i]!, height[u]! + 1);

  const row = [...depth];
  for (let i = count - 1; i >= 0; i--) {
    // the links of one source share a lane, so moving costs one lane per source and saves one lane
    if (users[i]!.length === 0 || new Set(sources[i]).size > 1) continue;
    row[i] = users[i]!.reduce((first, u) => Math.min(first, row[u]!), Number.POSITIVE_INFINITY) - 1;
  }
  return { row, ...spines(sources, depth, height) };
}

/** Paths that are worth drawing straight: from a box to the user whose deepest source it is. */
function spines(sources: readonly number[][], depth: readonly number[], height: readonly number[]) {
  const spine = new Array<number | undefined>(sources.length).fill(undefined);
  const source = new Array<number | undefined>(sources.length).fill(undefined);
  for (const [i, all] of sources.entries()) {
    const most = all.reduce((max, s) => Math.max(max, depth[s]!), -1);
    const [deepest, equal] = new Set(all.filter((s) => depth[s] === most));
    // below sources of equal depth the user belongs in the middle
    if (deepest === undefined || equal !== undefined) continue;
    const rival = spine[deepest];
    if (rival === undefined || height[i]! > height[rival]!) spine[deepest] = i;
  }
  spine.forEach((to, from) => {
    if (to !== undefined) source[to] = from;
  });
  const length = new Array<number>(sources.length).fill(0);
  for (const [i, from] of source.entries()) if (from !== undefined) length[i] = length[from]! + 1;
  for (let i = spine.length - 1; i >= 0; i--) if (spine[i] !== undefined) length[i] = length[spine[i]!]!;
  return { spine, length };
}

/** Connects every box with its users, through one shared chain of bends if they are more than a row apart. */
function connect(widths: readonly number[], links: readonly Link[]): Net {
  const { row, spine, length } = rank(widths.length, links);
  const rows: Item[][] = range(row.reduce((count, r) => Math.max(count, r + 1), 0)).map(() => []);
  const add = (r: number, width: number, bend: boolean): Item => {
    const item: Item = { row: r, width, bend, above: [], below: [], x: 0, at: 0, wish: 0, pull: 0 };
    rows[r]!.push(item);
    return item;
  };
  const join = (upper: Item, lower: Item, shift: number, pull: number): void => {
    const joint = { upper, lower, shift, pull };
    upper.below.push(joint);
    lower.above.push(joint);
  };
  const boxes = widths.map((width, i) => add(row[i]!, width, false));
  const chains = boxes.map((box) => [box]);
  const reach = lanesReach(row, links);
  const ends = links.map(({ from, to, shift }): End => {
    const bends = row[to]! - row[from]! - 1;
    const chain = chains[from]!;
    const lower = boxes[to]!;
    if (bends > reach) return { upper: boxes[from]!, lower, shift };
    while (chain.length <= bends) {
      const last = chain.at(-1)!;
      chain.push(add(last.row + 1, LANE, true));
      join(last, chain.at(-1)!, 0, last.bend ? PULL.lane : PULL.bend);
    }
    const upper = chain[bends]!;
    // a line may leave its source anywhere, so a path is straight if its boxes are, wherever the line arrives
    if (spine[from] === to && bends === 0) join(upper, lower, 0, PULL.spine(length[from]!));
    else join(upper, lower, shift, upper.bend ? PULL.bend : PULL.loose);
    return { upper, lower, shift };
  });
  return { rows, boxes, chains, ends };
}

/** How many rows a link may pass through and still get a lane. */
function lanesReach(row: readonly number[], links: readonly Link[]): number {
  const longest = new Array<number>(row.length).fill(0);
  for (const { from, to } of links) {
    const bends = row[to]! - row[from]! - 1;
    if (bends <= MAX_REACH) longest[from] = Math.max(longest[from]!, bends);
  }
  const bends = longest.reduce((a, b) => a + b, 0);
  return bends <= MAX_BENDS
    ? MAX_REACH
    : Math.max(MIN_REACH, Math.min(MAX_REACH, Math.floor(MAX_BENDS / row.length)));
}

/** Gives every item its x, and every row its order. */
function arrange(rows: readonly Item[][]): void {
  for (const row of rows) place(row);
  const upwards = [...rows].reverse();
  for (let i = 0; i < SWEEPS; i++) {
    const up = i % 2 === 0;
    for (const row of up ? upwards : rows) {
      if (i < SORTING_SWEEPS) {
        for (const item of row) listen(item, !up || item.below.length === 0, up || item.above.length === 0);
        row.sort((a, b) => a.wish - b.wish);
      }
      for (const item of row) listen(item, true, true);
      place(row);
    }
  }
}

/** Computes the position that the neighbours of an item prefer: their barycentre. */
function listen(item: Item, toAbove: boolean, toBelow: boolean): void {
  let sum = 0;
  let pull = 0;
  for (const j of toAbove ? item.above : []) {
    sum += j.pull * (j.upper.x - j.shift);
    pull += j.pull;
  }
  for (const j of toBelow ? item.below : []) {
    sum += j.pull * (j.lower.x + j.shift);
    pull += j.pull;
  }
  item.wish = pull === 0 ? item.x : sum / pull;
  item.pull = pull;
}

/**
 * Places a row's items, in their order, as close to their preferred positions as their widths allow. After
 * subtracting the minimum distances this is isotonic regression: blocks that would overlap are pooled at
 * their mean.
 */
function place(row: readonly Item[]): void {
  const blocks: { sum: number; pull: number; count: number }[] = [];
  const offsets: number[] = [];
  let offset = 0;
  for (const [i, item] of row.entries()) {
    item.at = i;
    if (i > 0) offset += distance(row[i - 1]!, item);
    offsets.push(offset);
    const pull = Math.max(item.pull, 1e-3);
    const block = { sum: pull * (item.wish - offset), pull, count: 1 };
    for (let top = blocks.at(-1); top !== undefined; top = blocks.at(-1)) {
      if (top.sum / top.pull <= block.sum / block.pull) break;
      blocks.pop();
      block.sum += top.sum;
      block.pull += top.pull;
      block.count += top.count;
    }
    blocks.push(block);
  }
  let next = 0;
  for (const { sum, pull, count } of blocks) {
    for (const end = next + count; next < end; next++) row[next]!.x = sum / pull + offsets[next]!;
  }
}

const distance = (a: Item, b: Item): number => (a.width + b.width) / 2 + (a.bend || b.bend ? LANE : BOX_GAP);

/** Makes each lane one straight line, or few, if its neighbours leave room; the outermost lanes go first. */
function straightenLanes({ rows, chains }: Net): void {
  const lanes = chains.map((chain) => chain.slice(1)).filter((lane) => lane.length > 0);
  const middle = (lane: readonly Item[]): number => lane.reduce((sum, b) => sum + b.x, 0) / lane.length;
  const centre = middle(rows.flat());
  const outside = new Map(lanes.map((lane) => [lane, Math.abs(middle(lane) - centre)]));
  lanes.sort((a, b) => outside.get(b)! - outside.get(a)!);
  for (const lane of lanes) {
    let from = 0;
    let [lo, hi] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
    lane.forEach((bend, i) => {
      const row = rows[bend.row]!;
      const [left, right] = [row[bend.at - 1], row[bend.at + 1]];
      const min = left === undefined ? Number.NEGATIVE_INFINITY : left.x + distance(left, bend);
      const max = right === undefined ? Number.POSITIVE_INFINITY : right.x - distance(bend, right);
      if (Math.max(lo, min) > Math.min(hi, max)) {
        align(lane.slice(from, i), lo, hi);
        [from, lo, hi] = [i, min, max];
      } else [lo, hi] = [Math.max(lo, min), Math.min(hi, max)];
    });
    align(lane.slice(from), lo, hi);
  }
}

function align(run: readonly Item[], lo: number, hi: number): void {
  const mean = run.reduce((sum, b) => sum + b.x, 0) / run.length;
  for (const bend of run) bend.x = Math.max(lo, Math.min(hi, mean));
}

/** Converts middles and rows to coordinates of the picture, whose corner is 0, 0. */
function measure({ rows, boxes, chains, ends }: Net): Drawing {
  let left = Number.POSITIVE_INFINITY;
  let right = Number.NEGATIVE_INFINITY;
  for (const row of rows) {
    for (const { x, width } of [row[0]!, row.at(-1)!]) {
      left = Math.min(left, x - width / 2);
      right = Math.max(right, x + width / 2);
    }
  }
  const tops: number[] = [];
  let y = 0;
  for (const row of rows) {
    tops.push(y);
    // lines that go far to the side need height, or they run flat through their neighbours
    const aside = row.reduce((most, item) => item.below.reduce((m, j) => Math.max(m, reachOf(j)), most), 0);
    y += BOX_HEIGHT + Math.max(ROW_GAP, Math.min(ROW_GAP_MAX, ROW_GAP / 2 + aside * 0.15));
  }
  const stop = ({ bend, row }: Item, x: number): Stop => {
    const bottom = tops[row]! + BOX_HEIGHT;
    return { x: x - left, top: bend ? tops[row]! : bottom, bottom };
  };
  const lanes = chains
    .filter((chain) => chain.length > 1)
    .map((chain): Line => {
      const [box, ...bends] = chain as [Item, ...Item[]];
      const stops = [stop(box, leave(box, bends[0]!.x)), ...bends.map((b) => stop(b, b.x))];
      return { stops: merge(stops), link: undefined, leaps: false };
    });
  const heads = ends.map(({ upper, lower, shift }, link): Line => {
    const top = tops[lower.row]!;
    const to = { x: lower.x + shift - left, top: top - ENTRY, bottom: top };
    if (lower.row > upper.row + 1) return { stops: [to], link, leaps: true };
    const from = stop(upper, upper.bend ? upper.x : leave(upper, lower.x + shift));
    return { stops: [{ ...from, top: from.bottom }, to], link, leaps: false };
  });
  return {
    boxes: boxes.map((b) => ({ x: b.x - b.width / 2 - left, y: tops[b.row]! })),
    lines: [...lanes, ...heads],
    width: rows.length === 0 ? 0 : right - left,
    height: rows.length === 0 ? 0 : tops.at(-1)! + BOX_HEIGHT,
  };
}

const reachOf = ({ upper, lower, shift }: Joint): number => Math.abs(upper.x - lower.x - shift);

/** Where a line to `x` leaves the bottom of a box: straight down if possible. */
const leave = (box: Item, x: number): number =>
  box.x + Math.max(-0.36 * box.width, Math.min(0.36 * box.width, x - box.x));

/** Merges segments directly below each other, which keeps the SVG short. */
function merge(stops: readonly Stop[]): Stop[] {
  const merged: Stop[] = [];
  for (const stop of stops) {
    const last = merged.at(-1);
    if (last !== undefined && Math.abs(last.x - stop.x) < 0.5)
      merged.push({ ...merged.pop()!, bottom: stop.bottom });
    else merged.push(stop);
  }
  return merged;
}
