// A layered drawing of a directed acyclic graph. In: how wide each box is and which box points at which, sources
// before users. Out: where the boxes go, row by row from the top, and the strands that connect them. Knows nothing
// of what the boxes mean; graph.ts draws them.

import { range } from "../helpers.ts";

export interface Link {
  readonly from: number;
  readonly to: number;
  /** where on the top of its user the link arrives, counted from the middle of the box */
  readonly shift: number;
}

/** A piece of a link, from the bottom of one row to the top of a lower one. */
export interface Strand {
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
  /** below its start the strand keeps to a free lane down to here, or is already at a box (then it is y1) */
  readonly lane: number;
  /** the link that ends here; undefined where the strand goes on in another one */
  readonly link: number | undefined;
  /** jumps over rows without a lane of its own, so boxes may lie on top of it */
  readonly leaps: boolean;
}

export interface Layout {
  /** the upper left corner of each box */
  readonly boxes: readonly { readonly x: number; readonly y: number }[];
  readonly strands: readonly Strand[];
  readonly width: number;
  readonly height: number;
}

export const BOX_HEIGHT = 38;
const BOX_GAP = 22;
const LANE = 9;
const ROW_GAP = 46;
const ROW_GAP_MAX = 150;
/** Lanes of long links cost as much as boxes; beyond this many of them the longest links leap. */
const MAX_BENDS = 30_000;
const SORTING_SWEEPS = 6;
const STRAIGHTENING_SWEEPS = 8;

/** A box, or the place in a row that a long link passes through. `x` is the middle. */
interface Item {
  readonly row: number;
  readonly width: number;
  readonly bend: boolean;
  x: number;
  readonly above: Joint[];
  readonly below: Joint[];
}

interface Joint {
  readonly upper: Item;
  readonly lower: Item;
  readonly shift: number;
  readonly link: number | undefined;
  /** how much the drawing wants this joint to be vertical */
  readonly weight: number;
}

export function layout(widths: readonly number[], links: readonly Link[]): Layout {
  const rowOf = assignRows(widths.length, links);
  const boxes = widths.map((width, i): Item => ({ ...fresh(rowOf[i]!), width, bend: false }));
  const rows: Item[][] = range(rowOf.reduce((count, row) => Math.max(count, row + 1), 0)).map(() => []);
  for (const box of boxes) rows[box.row]!.push(box);
  const joints = connect(boxes, links, rows);
  arrange(rows);
  return measure(boxes, rows, joints);
}

const fresh = (row: number) => ({ row, x: 0, above: [], below: [] });

/** Longest path from the sources; then what loses nothing by it moves down to its users, leaves above all. */
function assignRows(count: number, links: readonly Link[]): number[] {
  const sources: number[][] = range(count).map(() => []);
  const users: number[][] = range(count).map(() => []);
  for (const { from, to } of links) {
    sources[to]!.push(from);
    users[from]!.push(to);
  }
  const row = new Array<number>(count).fill(0);
  for (let i = 0; i < count; i++) for (const s of sources[i]!) row[i] = Math.max(row[i]!, row[s]! + 1);
  for (let i = count - 1; i >= 0; i--) {
    // the links of one source share a lane, so one source is the price and one lane is the gain
    if (users[i]!.length === 0 || new Set(sources[i]).size > 1) continue;
    let first = Number.POSITIVE_INFINITY;
    for (const u of users[i]!) first = Math.min(first, row[u]!);
    row[i] = first - 1;
  }
  return row;
}

/** Ties every box to its users, through one shared chain of bends where they are more than a row apart. */
function connect(boxes: readonly Item[], links: readonly Link[], rows: Item[][]): Joint[] {
  const longest = new Array<number>(boxes.length).fill(0);
  const bendsTo = ({ from, to }: Link): number => boxes[to]!.row - boxes[from]!.row - 1;
  for (const link of links) longest[link.from] = Math.max(longest[link.from]!, bendsTo(link));
  const total = longest.reduce((a, b) => a + b, 0);
  const reach = total <= MAX_BENDS ? Number.POSITIVE_INFINITY : Math.floor(MAX_BENDS / boxes.length);

  const joints: Joint[] = [];
  const join = (upper: Item, lower: Item, shift: number, link?: number): void => {
    const weight = upper.bend && lower.bend ? 8 : upper.bend || lower.bend ? 2 : 1;
    const joint = { upper, lower, shift, link, weight };
    joints.push(joint);
    if (lower.row !== upper.row + 1) return; // it leaps, and pulls at nothing
    upper.below.push(joint);
    lower.above.push(joint);
  };
  const chains = boxes.map((box) => [box]);
  links.forEach((link, index) => {
    const chain = chains[link.from]!;
    const bends = bendsTo(link);
    const leaps = bends > reach;
    while (!leaps && chain.length <= bends) {
      const last = chain[chain.length - 1]!;
      const bend: Item = { ...fresh(last.row + 1), width: LANE, bend: true };
      rows[bend.row]!.push(bend);
      chain.push(bend);
      join(last, bend, 0);
    }
    join(chain[leaps ? 0 : bends]!, boxes[link.to]!, link.shift, index);
  });
  return joints;
}

/** Gives every item its x, and every row its order. */
function arrange(rows: Item[][]): void {
  for (const row of rows)
    place(
      row,
      row.map(() => 0),
    );
  const upwards = [...rows].reverse();
  for (let i = 0; i < SORTING_SWEEPS; i++) {
    const up = i % 2 === 0;
    for (const row of up ? upwards : rows) {
      const wanted = new Map<Item, number>();
      for (const item of row) {
        const near = up ? item.below : item.above;
        wanted.set(
          item,
          near.length > 0 ? barycentre(near, item) : barycentre(up ? item.above : item.below, item),
        );
      }
      row.sort((a, b) => wanted.get(a)! - wanted.get(b)!);
      place(
        row,
        row.map((item) => wanted.get(item)!),
      );
    }
  }
  for (let i = 0; i < STRAIGHTENING_SWEEPS; i++) {
    for (const row of i % 2 === 0 ? upwards : rows) {
      place(
        row,
        row.map((item) => barycentre([...item.above, ...item.below], item)),
      );
    }
  }
}

/** Where an item would be if only these neighbours mattered. */
function barycentre(joints: readonly Joint[], item: Item): number {
  let sum = 0;
  let weight = 0;
  for (const j of joints) {
    sum += j.weight * (j.lower === item ? j.upper.x - j.shift : j.lower.x + j.shift);
    weight += j.weight;
  }
  return weight === 0 ? item.x : sum / weight;
}

/**
 * Puts a row's items, in their order, as near to where they want to be as their widths allow. With the least
 * distances taken off this is isotonic regression, so blocks that would overlap are pooled at their mean.
 */
function place(row: readonly Item[], wanted: readonly number[]): void {
  const blocks: { sum: number; weight: number; count: number }[] = [];
  const offsets: number[] = [];
  let offset = 0;
  row.forEach((item, i) => {
    const before = row[i - 1];
    if (before !== undefined) offset += distance(before, item);
    offsets.push(offset);
    const weight = item.bend ? 2 : 1;
    let block = { sum: weight * (wanted[i]! - offset), weight, count: 1 };
    for (let top = blocks.at(-1); top !== undefined; top = blocks.at(-1)) {
      if (top.sum / top.weight <= block.sum / block.weight) break;
      blocks.pop();
      block = { sum: top.sum + block.sum, weight: top.weight + block.weight, count: top.count + block.count };
    }
    blocks.push(block);
  });
  let next = 0;
  for (const { sum, weight, count } of blocks) {
    for (const end = next + count; next < end; next++) row[next]!.x = sum / weight + offsets[next]!;
  }
}

const distance = (a: Item, b: Item): number => (a.width + b.width) / 2 + (a.bend || b.bend ? LANE : BOX_GAP);

/** From middles and rows to the coordinates of the picture, whose corner is 0, 0. */
function measure(boxes: readonly Item[], rows: readonly Item[][], joints: readonly Joint[]): Layout {
  let left = Number.POSITIVE_INFINITY;
  let right = Number.NEGATIVE_INFINITY;
  for (const row of rows) {
    for (const item of row) {
      left = Math.min(left, item.x - item.width / 2);
      right = Math.max(right, item.x + item.width / 2);
    }
  }
  // links that go far to the side need height, or they run flat through their neighbours
  const gaps = rows.map(() => ROW_GAP);
  for (const { upper, lower, shift } of joints) {
    if (lower.row !== upper.row + 1) continue;
    const aside = Math.abs(upper.x - lower.x - shift);
    gaps[upper.row] = Math.max(gaps[upper.row]!, Math.min(ROW_GAP_MAX, ROW_GAP / 2 + aside * 0.15));
  }
  const tops: number[] = [];
  let y = 0;
  for (const gap of gaps) {
    tops.push(y);
    y += BOX_HEIGHT + gap;
  }
  const strands = joints.map(({ upper, lower, shift, link }): Strand => {
    const y1 = tops[upper.row]! + (upper.bend ? 0 : BOX_HEIGHT);
    const lane = tops[upper.row]! + BOX_HEIGHT;
    const leaps = lower.row !== upper.row + 1;
    return { x1: upper.x - left, y1, x2: lower.x + shift - left, y2: tops[lower.row]!, lane, link, leaps };
  });
  return {
    boxes: boxes.map((b) => ({ x: b.x - b.width / 2 - left, y: tops[b.row]! })),
    strands,
    width: rows.length === 0 ? 0 : right - left,
    height: rows.length === 0 ? 0 : y - gaps.at(-1)!,
  };
}
