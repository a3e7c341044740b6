// The lazy graph as a picture, for GRAPH=1: the concrete nodes below some LazyBuffers, as Graphviz text or as
// an SVG that any browser shows. layout.ts computes where the nodes go; the engine writes the files.

import type { DType, Value } from "../dtype.ts";
import { toposort } from "../helpers.ts";
import type { LazyBuffer, LazyOpName } from "../lazy/lazybuffer.ts";
import { isLoadOp, isReduceOp } from "../ops.ts";
import type { Shape } from "../shape/view.ts";
import { BOX_HEIGHT, type Drawing, type Line, layout } from "./layout.ts";

export interface DrawnNode {
  /** its index in `nodes` */
  readonly id: number;
  readonly op: LazyOpName;
  /** a constant's value, a reduction's axes, a cast's dtype, … as text; empty if the op says it all */
  readonly arg: string;
  readonly shape: string;
  readonly dtype: string;
  readonly device: string;
  /** its value is in memory already */
  readonly realized: boolean;
  /** its value will be stored: a kernel ends here */
  readonly stored: boolean;
}

interface GraphEdge {
  readonly from: number;
  readonly to: number;
  /** the shape in which the user sees the source if that is a view; otherwise empty */
  readonly label: string;
  /** the whole view: strides, offset, mask */
  readonly view: string;
}

/** Nodes are sorted sources first; the edges into one node are in the order of its operands. */
export interface LazyGraph {
  readonly nodes: readonly DrawnNode[];
  readonly edges: readonly GraphEdge[];
}

// ---- collecting ----

/** What `outs` are computed from. `realizes` are the nodes that the schedule stores. */
export function collectGraph(outs: readonly LazyBuffer[], realizes?: ReadonlySet<LazyBuffer>): LazyGraph {
  const nodes: DrawnNode[] = [];
  const edges: GraphEdge[] = [];
  const ids = new Map<LazyBuffer, number>();
  const add = (b: LazyBuffer, stored: boolean): number => nodes.push(describe(b, nodes.length, stored)) - 1;
  const roots = outs.map((out) => out.base);
  // every use of a constant draws its own node: lines from one 0 to all over the picture tell nothing
  const order = toposort(roots, (b) => (b.srcs ?? []).map((s) => s.base).filter((s) => !s.isUnrealizedConst));
  for (const b of order) {
    const sources = (b.srcs ?? []).map((s) => (s.isUnrealizedConst ? add(s.base, false) : ids.get(s.base)!));
    const to = add(b, realizes?.has(b) ?? false);
    ids.set(b, to);
    b.srcs?.forEach((s, i) => {
      const viewed = s !== s.base && !isPlainConstant(s, b);
      edges.push({
        from: sources[i]!,
        to,
        label: viewed ? list(s.shape) : "",
        view: viewed ? `${s.st}` : "",
      });
    });
  }
  return { nodes, edges };
}

/** A constant expanded to the shape of its user: the view needs no label. */
const isPlainConstant = (s: LazyBuffer, user: LazyBuffer): boolean =>
  s.isUnrealizedConst && list(s.shape) === list(user.shape) && !s.st.views.some((v) => v.mask);

function describe(b: LazyBuffer, id: number, stored: boolean): DrawnNode {
  return {
    id,
    op: b.op!,
    arg: summary(b),
    shape: list(b.shape),
    dtype: b.dtype.name,
    device: b.device,
    realized: b.realized !== undefined,
    stored,
  };
}

const list = (shape: Shape): string => `[${shape.join(",")}]`;

function summary(b: LazyBuffer): string {
  const { op, arg } = b;
  if (op === "CONST") return number(arg as Value, b.dtype);
  if (op === "CAST" || op === "BITCAST") return (arg as DType).name;
  if (op === "EMPTY") return b.device;
  if (op === "COPY") return b.srcs?.[0] === undefined ? b.device : `${b.srcs[0].device} → ${b.device}`;
  if (Array.isArray(arg)) return `${arg.length === 1 ? "axis" : "axes"} ${arg.join(",")}`;
  return typeof arg === "function" ? arg.name : "";
}

/** Seven digits are enough for a float32: 0.1 and not 0.10000000149011612. */
const number = (value: Value, d: DType): string =>
  typeof value === "number" && d.isFloat ? `${Number(value.toPrecision(7))}` : `${value}`;

type OpGroup = "load" | "elementwise" | "reduce";
const groupOf = (op: LazyOpName): OpGroup =>
  isLoadOp(op) ? "load" : isReduceOp(op) ? "reduce" : "elementwise";

interface Paint {
  readonly fill: string;
  readonly line: string;
}
const LIGHT: Record<OpGroup, Paint> = {
  load: { fill: "#fdf1cf", line: "#a87b00" },
  elementwise: { fill: "#dfebfd", line: "#3b73c4" },
  reduce: { fill: "#fbdfe0", line: "#c0404c" },
};
const DARK: Record<OpGroup, Paint> = {
  load: { fill: "#423512", line: "#d9a92f" },
  elementwise: { fill: "#1d3557", line: "#6ea3ee" },
  reduce: { fill: "#552329", line: "#f0808a" },
};

const title = (n: DrawnNode): string => (n.arg === "" ? n.op : `${n.op} ${n.arg}`);
const subtitle = (n: DrawnNode): string => `${n.shape} ${n.dtype}`;

// ---- Graphviz ----

export function toDot(graph: LazyGraph): string {
  const nodes = graph.nodes.map((n) => {
    const { fill, line } = LIGHT[groupOf(n.op)];
    const shape = n.realized ? " shape=cylinder style=filled" : "";
    const pen = n.stored ? " penwidth=3" : "";
    const look = `fillcolor="${fill}" color="${line}"${shape}${pen}`;
    return `  n${n.id} [label=${quote(`${title(n)}\n${subtitle(n)}`)} tooltip=${quote(n.device)} ${look}];`;
  });
  const edges = graph.edges.map((e) => {
    const label = e.label === "" ? "" : ` [label=${quote(e.label)} tooltip=${quote(e.view)}]`;
    return `  n${e.from} -> n${e.to}${label};`;
  });
  return [
    "digraph lazy {",
    "  graph [ordering=in];", // operands stay in order, from left to right
    '  node [shape=box style="rounded,filled" fontname="monospace" fontsize=11];',
    '  edge [fontname="monospace" fontsize=9 color="#777777"];',
    ...nodes,
    ...edges,
    "}\n",
  ].join("\n");
}

const quote = (text: string): string =>
  `"${printable(text).replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;

/** XML cannot contain these characters, escaped or not, and a DOT string ends at a NUL. */
const printable = (text: string): string =>
  text.replace(/[^\t\n\r -\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd");

// ---- SVG ----

const MARGIN = 20;
const FONT = 12;
const SMALL = 10;
/**
 * The width of a letter relative to its height, in the fonts named below; an SVG cannot measure its own text.
 */
const LETTER = 0.61;
const LONGEST = 44;
const LEGEND_WIDTH = 215;
const LEGEND_ROW = 30;

export function toSvg(graph: LazyGraph): string {
  const into = graph.nodes.map((): number[] => []);
  graph.edges.forEach((e, i) => void into[e.to]!.push(i));
  const slots = graph.edges.map((e) => (e.label === "" ? 14 : textWidth(clip(e.label), SMALL) + 8));
  const widths = graph.nodes.map((n, i) => {
    const text = Math.max(textWidth(clip(title(n)), FONT), textWidth(clip(subtitle(n)), SMALL));
    return Math.ceil(
      Math.max(
        text + 20,
        into[i]!.reduce((sum, e) => sum + slots[e]!, 0),
      ),
    );
  });
  const shifts = graph.nodes.map((_, i) =>
    spread(
      widths[i]!,
      into[i]!.map((e) => slots[e]!),
    ),
  );
  const shift = new Map(into.flatMap((edges, i) => edges.map((e, k) => [e, shifts[i]![k]!])));
  const plan = layout(
    widths,
    graph.edges.map(({ from, to }, i) => ({ from, to, shift: shift.get(i)! })),
  );
  return draw(graph, plan, widths);
}

/** Spreads the links that arrive at the top of a box, so that their labels fit side by side. */
function spread(width: number, slots: readonly number[]): number[] {
  const extra = (width - slots.reduce((a, b) => a + b, 0)) / slots.length;
  let x = -width / 2;
  return slots.map((slot) => {
    x += slot + extra;
    return x - (slot + extra) / 2;
  });
}

const textWidth = (text: string, size: number): number => text.length * size * LETTER;
/** Removes the middle of long texts: paths differ at their ends. */
function clip(text: string): string {
  const letters = [...text];
  if (letters.length <= LONGEST) return text;
  return `${letters.slice(0, LONGEST - 16).join("")}…${letters.slice(-15).join("")}`;
}

function draw(graph: LazyGraph, plan: Drawing, widths: readonly number[]): string {
  const far = new Set(plan.lines.filter((line) => line.leaps).map((line) => graph.edges[line.link!]!.from));
  const left = MARGIN + LEGEND_WIDTH + MARGIN;
  const width = Math.ceil(left + plan.width + MARGIN);
  const height = Math.ceil(Math.max(plan.height, LEGEND.length * LEGEND_ROW) + 2 * MARGIN);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" class="gradloom" width="${width}" height="${height}" ` +
      `viewBox="0 0 ${width} ${height}">`,
    `<style>${STYLE}</style>`,
    '<defs><marker id="gradloom-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" ' +
      'markerHeight="7" ' +
      'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>',
    `<rect class="paper" width="${width}" height="${height}"/>`,
    drawLegend(),
    `<g transform="translate(${left} ${MARGIN})">`,
    ...plan.lines.map((s) => drawLine(s, graph)),
    ...graph.nodes.map((n, i) => drawNode(n, plan.boxes[i]!.x, plan.boxes[i]!.y, widths[i]!)),
    // on top of everything, because a line may cross them
    ...plan.lines.map((line) => drawLabels(line, graph)).filter((text) => text !== ""),
    ...graph.nodes
      .filter((n) => far.has(n.id))
      .map((n) => drawNumber(n, plan.boxes[n.id]!.x, plan.boxes[n.id]!.y)),
    "</g>",
    "</svg>\n",
  ].join("\n");
}

function drawNode(n: DrawnNode, x: number, y: number, width: number): string {
  const mid = round(x + width / 2);
  return (
    `<g class="${classes(n)}" data-node="${n.id}"><title>${escapeXml(hintOf(n))}</title>` +
    box(n.realized, x, y, width) +
    `<text x="${mid}" y="${round(y + 16)}">${escapeXml(clip(title(n)))}</text>` +
    `<text class="small" x="${mid}" y="${round(y + 30)}">${escapeXml(clip(subtitle(n)))}</text></g>`
  );
}

function hintOf(n: DrawnNode): string {
  const state = n.realized ? ", realised" : n.stored ? ", stored by a kernel" : "";
  return `#${n.id} ${title(n)}, ${subtitle(n)} on ${n.device}${state}`;
}

const classes = (n: DrawnNode): string => `node ${groupOf(n.op)}${n.stored ? " stored" : ""}`;
const box = (realized: boolean, x: number, y: number, width: number, height = BOX_HEIGHT): string =>
  `<rect x="${round(x)}" y="${round(y)}" width="${width}" height="${height}" ` +
  `rx="${realized ? height / 2 : 6}"/>`;
const round = (x: number): number => Math.round(x * 10) / 10;

function drawLine({ stops, link }: Line, graph: LazyGraph): string {
  let path = "";
  for (const [i, { x, top, bottom }] of stops.entries()) {
    const before = stops[i - 1];
    if (before === undefined) path += `M${round(x)} ${round(top)}`;
    else {
      const bow = (before.bottom + top) / 2;
      path += `C${round(before.x)} ${round(bow)} ${round(x)} ${round(bow)} ${round(x)} ${round(top)}`;
    }
    if (bottom > top) path += `V${round(bottom)}`;
  }
  if (link === undefined) return `<path class="edge" d="${path}"/>`;
  const { from, to } = graph.edges[link]!;
  return `<path class="edge head" data-edge="${from} ${to}" d="${path}"/>`;
}

/** The shape seen through a view, and the number of the source if no line is drawn to it. */
function drawLabels({ stops, link, leaps }: Line, graph: LazyGraph): string {
  const edge = link === undefined ? undefined : graph.edges[link]!;
  if (edge === undefined) return "";
  const { x, bottom } = stops.at(-1)!;
  const text = (up: number, words: string, hint: string): string =>
    `<text class="label" x="${round(x)}" y="${round(bottom - up)}"><title>${escapeXml(hint)}</title>` +
    `${escapeXml(words)}</text>`;
  const label = edge.label === "" ? "" : text(11, clip(edge.label), edge.view);
  const tag = leaps ? text(22, `#${edge.from}`, hintOf(graph.nodes[edge.from]!)) : "";
  return label + tag;
}

/** The number that `drawLabels` refers to. */
const drawNumber = (n: DrawnNode, x: number, y: number): string =>
  `<text class="label number" x="${round(x + 4)}" y="${round(y + BOX_HEIGHT + 12)}">#${n.id}</text>`;

const LEGEND: readonly { readonly sample: string; readonly text: string }[] = [
  { sample: `<g class="node load">${box(false, 0, 0, 30, 18)}</g>`, text: "load, copy, constant" },
  { sample: `<g class="node elementwise">${box(false, 0, 0, 30, 18)}</g>`, text: "elementwise" },
  { sample: `<g class="node reduce">${box(false, 0, 0, 30, 18)}</g>`, text: "reduce" },
  { sample: `<g class="node stored">${box(false, 0, 0, 30, 18)}</g>`, text: "stored: a kernel ends here" },
  { sample: `<g class="node">${box(true, 0, 0, 30, 18)}</g>`, text: "realised: in memory already" },
  { sample: '<text class="label" x="15" y="13">[2,3]</text>', text: "seen as, through a view" },
  { sample: '<path class="edge head" d="M15 0V18"/>', text: "operands, left to right" },
  { sample: '<text class="label" x="15" y="13">#12</text>', text: "far away: look for #12" },
];

function drawLegend(): string {
  const rows = LEGEND.map(
    ({ sample, text }, i) =>
      `<g transform="translate(${MARGIN} ${MARGIN + i * LEGEND_ROW})">${sample}` +
      `<text x="42" y="13">${text}</text></g>`,
  );
  return `<g class="legend">${rows.join("")}</g>`;
}

/** Rules apply to .gradloom only, so that the picture can be pasted into a page. */
const STYLE = [
  ".gradloom{color-scheme:light dark;font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}",
  `.gradloom .node text{font-size:${FONT}px;text-anchor:middle}.gradloom .node .small{font-size:${SMALL}px}`,
  ".gradloom .legend text{font-family:system-ui,sans-serif;font-size:12px}",
  ".gradloom .node rect{stroke-width:1}.gradloom .stored rect{stroke-width:3.5}",
  ".gradloom .edge{fill:none;stroke-width:1.2}",
  ".gradloom .head{marker-end:url(#gradloom-arrow)}",
  `.gradloom .label{font-size:${SMALL}px;text-anchor:middle}`,
  ".gradloom .label{paint-order:stroke;stroke-width:4;stroke-linejoin:round}",
  ".gradloom .number{text-anchor:start}",
  ...theme(LIGHT, { paper: "#ffffff", ink: "#1b1f24", soft: "#59636e", edge: "#8b949e" }),
  "@media (prefers-color-scheme:dark){",
  ...theme(DARK, { paper: "#14171b", ink: "#e6e9ed", soft: "#a9b3bd", edge: "#7d8790" }),
  "}",
].join("\n");

interface Inks {
  readonly paper: string;
  readonly ink: string;
  readonly soft: string;
  readonly edge: string;
}

function theme(groups: Record<OpGroup, Paint>, { paper, ink, soft, edge }: Inks): string[] {
  return [
    `.gradloom .paper{fill:${paper}}.gradloom text{fill:${ink}}.gradloom .node .small{fill:${soft}}`,
    `.gradloom .node rect{fill:${paper};stroke:${soft}}`,
    ...Object.entries(groups).map(
      ([g, { fill, line }]) => `.gradloom .${g} rect{fill:${fill};stroke:${line}}`,
    ),
    `.gradloom .edge{stroke:${edge}}.gradloom marker path{fill:${edge}}`,
    `.gradloom .label{fill:${ink};stroke:${paper}}`,
  ];
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
const escapeXml = (text: string): string => printable(text).replace(/[&<>"']/g, (c) => ENTITIES[c]!);
