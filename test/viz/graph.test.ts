// The picture of the lazy graph: what is collected, the DOT and SVG texts of the dot product, escaping, and
// the geometry of the layout: no box on another, every edge drawn where it should be, large graphs fast.
import "../../src/engine/devices.ts";
import { describe, expect, test } from "vitest";
import { dtypes } from "../../src/dtype.ts";
import { LazyBuffer } from "../../src/lazy/lazybuffer.ts";
import { Buffer } from "../../src/runtime/buffer.ts";
import { collectGraph, type DrawnNode, type LazyGraph, toDot, toSvg } from "../../src/viz/graph.ts";

const host = (shape: number[], dtype = dtypes.int32): LazyBuffer => {
  const size = shape.reduce((a, b) => a * b, 1);
  const buffer = new Buffer("EXT", size, dtype).allocate(new Uint8Array(size * dtype.itemsize));
  return LazyBuffer.fromBuffer(buffer, shape);
};
const load = (...shape: number[]): LazyBuffer => host(shape).copyToDevice("WASM");
const dotProduct = (): LazyBuffer => load(2).e("MUL", load(2)).r("SUM", [0]);

const node = (id: number, over: Partial<DrawnNode> = {}): DrawnNode => ({
  id,
  op: "NEG",
  arg: "",
  shape: "[2]",
  dtype: "int32",
  device: "WASM",
  realized: false,
  stored: false,
  ...over,
});
const edge = (from: number, to: number, label = "") => ({ from, to, label, view: label });
const nasty = `<&>"'\\ ]]> \u0000\u001b\ud800 a\nb`;

// ---- readers of the two formats, strict enough to fail on what a real one would refuse ----

const unescapeXml = (text: string): string =>
  text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => {
    return { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" }[name]!;
  });

/** Fails on what is not well-formed; gives the names of all elements. */
function checkXml(xml: string): string[] {
  const open: string[] = [];
  const names: string[] = [];
  const text = (part: string): void => {
    const forbidden = /[^\t\n\r -\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]|[<>]|&(?!(amp|lt|gt|quot|#39);)/u;
    if (forbidden.test(part)) throw new Error(`not well-formed: ${JSON.stringify(part)}`);
  };
  const tag = /<(\/?)([A-Za-z][\w-]*)((?:\s+[A-Za-z][\w:-]*="[^"<]*")*)\s*(\/?)>/y;
  let at = 0;
  while (at < xml.length) {
    const next = xml.indexOf("<", at);
    text(xml.slice(at, next < 0 ? undefined : next));
    if (next < 0) break;
    tag.lastIndex = next;
    const found = tag.exec(xml);
    if (found === null) throw new Error(`no tag: ${xml.slice(next, next + 60)}`);
    const [whole, closing, name, attributes, single] = found as unknown as [
      string,
      string,
      string,
      string,
      string,
    ];
    const keys = [...attributes.matchAll(/([\w:-]+)="([^"]*)"/g)].map(([, key, value]) => {
      text(value!);
      return key;
    });
    if (new Set(keys).size < keys.length) throw new Error(`an attribute twice: ${whole}`);
    if (closing) {
      if (open.pop() !== name) throw new Error(`closes what is not open: ${whole}`);
    } else {
      names.push(name);
      if (!single) open.push(name);
    }
    at = next + whole.length;
    if (open.length === 0) break;
  }
  expect(open).toEqual([]);
  expect(xml.slice(at).trim()).toBe("");
  return names;
}

interface Box {
  readonly id: number;
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

const boxesOf = (svg: string): Box[] =>
  [
    ...svg.matchAll(
      /data-node="(\d+)">.*?<rect x="([-\d.]+)" y="([-\d.]+)" width="([\d.]+)" height="([\d.]+)"/gs,
    ),
  ].map((m) => {
    const [id, x, y, w, h] = m.slice(1).map(Number) as [number, number, number, number, number];
    return { id, x, y, w, h };
  });

function expectNoOverlap(boxes: readonly Box[]): void {
  const sorted = [...boxes].sort((a, b) => a.y - b.y || a.x - b.x);
  sorted.forEach((a, i) => {
    for (const b of sorted.slice(i + 1)) {
      if (b.y >= a.y + a.h) break; // rows are sorted, the rest is lower still
      const apart = b.x >= a.x + a.w || a.x >= b.x + b.w;
      if (!apart) throw new Error(`boxes ${a.id} and ${b.id} overlap: ${JSON.stringify([a, b])}`);
    }
  });
}

/** Every edge ends on the top of its user, operands from left to right, and sources are above users. */
function expectEdges(svg: string, graph: LazyGraph): void {
  const boxes = new Map(boxesOf(svg).map((b) => [b.id, b]));
  const heads = [...svg.matchAll(/data-edge="(\d+) (\d+)" d="[^"]*?([-\d.]+) [-\d.]+V([-\d.]+)"/g)];
  expect(heads.map((m) => [Number(m[1]), Number(m[2])])).toEqual(graph.edges.map((e) => [e.from, e.to]));
  const arrived = new Map<number, number>();
  for (const [from, to, x, y] of heads.map(
    (m) => m.slice(1).map(Number) as [number, number, number, number],
  )) {
    const user = boxes.get(to)!;
    const source = boxes.get(from)!;
    if (source.y + source.h >= user.y) throw new Error(`${from} is not above its user ${to}`);
    if (x < user.x || x > user.x + user.w || Math.abs(y - user.y) > 0.11)
      throw new Error(`${from} misses ${to}`);
    if (x <= (arrived.get(to) ?? Number.NEGATIVE_INFINITY))
      throw new Error(`${to}: operands are out of order`);
    arrived.set(to, x);
  }
}

function expectGoodSvg(graph: LazyGraph): string {
  const svg = toSvg(graph);
  checkXml(svg);
  const boxes = boxesOf(svg);
  expect(boxes.map((b) => b.id)).toEqual(graph.nodes.map((n) => n.id));
  expectNoOverlap(boxes);
  expectEdges(svg, graph);
  const [width, height] = /width="(\d+)" height="(\d+)"/.exec(svg)!.slice(1).map(Number) as [number, number];
  for (const b of boxes) {
    if (b.x < 0 || b.y < 0 || b.x + b.w > width || b.y + b.h > height) throw new Error(`${b.id} is outside`);
  }
  return svg;
}

/** The statements of a DOT text of our shape; throws on anything else. */
function readDot(dot: string): { nodes: Map<string, Record<string, string>>; edges: string[] } {
  const string = String.raw`"(?:[^"\\\n]|\\.)*"`;
  const list = String.raw`\[((?:\s*\w+=(?:${string}|\w+))*)\]`;
  const attributes = (text = ""): Record<string, string> =>
    Object.fromEntries(
      [...text.matchAll(new RegExp(`(\\w+)=(${string}|\\w+)`, "g"))].map((m) => [m[1], m[2]]),
    );
  const lines = dot.split("\n");
  expect([lines[0], ...lines.slice(-2)]).toEqual(["digraph lazy {", "}", ""]);
  const nodes = new Map<string, Record<string, string>>();
  const edges: string[] = [];
  for (const line of lines.slice(1, -2)) {
    const found = new RegExp(`^  (\\w+)(?: -> (\\w+))?(?: ${list})?;$`).exec(line);
    if (found === null) throw new Error(`not a statement: ${line}`);
    const [, name, to, text] = found;
    if (to !== undefined) edges.push(`${name} ${to} ${attributes(text).label ?? ""}`.trim());
    else if (!["graph", "node", "edge"].includes(name!)) nodes.set(name!, attributes(text));
  }
  return { nodes, edges };
}

// ---- collecting ----

describe("collectGraph", () => {
  test("the dot product", () => {
    const out = dotProduct();
    const { nodes, edges } = collectGraph([out], new Set([out]));
    expect(nodes.map((n) => `${n.op} ${n.arg} ${n.shape} ${n.dtype} ${n.device}`)).toEqual([
      "EMPTY EXT [2] int32 EXT",
      "COPY EXT → WASM [2] int32 WASM",
      "EMPTY EXT [2] int32 EXT",
      "COPY EXT → WASM [2] int32 WASM",
      "MUL  [2] int32 WASM",
      "SUM axis 0 [1] int32 WASM",
    ]);
    expect(nodes.map((n) => n.realized)).toEqual([true, false, true, false, false, false]);
    expect(nodes.map((n) => n.stored)).toEqual([false, false, false, false, false, true]);
    expect(edges).toEqual([edge(0, 1), edge(2, 3), edge(1, 4), edge(3, 4), edge(4, 5)]);
  });

  test("a view is an edge that says the shape, its node is the base", () => {
    const a = load(2, 3);
    const { nodes, edges } = collectGraph([
      a.permute([1, 0]).e("NEG").reshape([6]).r("SUM", [0]).reshape([]),
    ]);
    expect(nodes.map((n) => n.op)).toEqual(["EMPTY", "COPY", "NEG", "SUM"]);
    expect(edges.map((e) => e.label)).toEqual(["", "[3,2]", "[6]"]);
    expect(edges[1]!.view).toContain("strides=[1, 3]");
  });

  test("a realised node has no sources, and a node used twice is drawn once", () => {
    const a = load(2);
    const { nodes, edges } = collectGraph([a.e("MUL", a), a.e("NEG")]);
    expect(nodes.map((n) => n.op)).toEqual(["EMPTY", "COPY", "MUL", "NEG"]);
    expect(edges).toEqual([edge(0, 1), edge(1, 2), edge(1, 2), edge(1, 3)]);
    a.markRealized();
    expect(collectGraph([a.e("NEG")]).nodes.map((n) => [n.op, n.realized])).toEqual([
      ["COPY", true],
      ["NEG", false],
    ]);
  });

  test("every use of a constant has its own, labelled only where the shape is news, and never stored", () => {
    const x = host([4], dtypes.float32).copyToDevice("WASM");
    const tenth = x.const(0.1);
    const padded = LazyBuffer.constant("WASM", [2], dtypes.float32, 1).pad([[1, 1]]);
    const out = x
      .e("MUL", tenth)
      .e("ADD", tenth)
      .e("ADD", padded)
      .e("ADD", x.const(3).r("SUM", [0]).expand([4]));
    const { nodes, edges } = collectGraph([out], new Set([out, tenth.base]));
    const constants = nodes.filter((n) => n.op === "CONST");
    expect(constants.map((n) => n.arg)).toEqual(["0.1", "0.1", "1", "3"]);
    expect(constants.some((n) => n.stored)).toBe(false);
    const labels = constants.map((c) => edges.filter((e) => e.from === c.id).map((e) => e.label));
    expect(labels).toEqual([[""], [""], ["[4]"], ["[4]"]]);
  });

  test("says what casts, reduces over several axes and other values are", () => {
    const x = load(2, 3);
    const wide = x.const(2n ** 40n, dtypes.int64);
    const infinite = x.const(Number.NEGATIVE_INFINITY, dtypes.float32);
    const outs = [x.cast(dtypes.float16), x.r("REDUCE_MAX", [0, 1]), wide, infinite];
    const all = collectGraph(outs).nodes.map((n) => `${n.op} ${n.arg}`.trim());
    expect(all.slice(2)).toEqual([
      "CAST float16",
      "REDUCE_MAX axes 0,1",
      "CONST 1099511627776",
      "CONST -Infinity",
    ]);
  });

  test("nothing gives an empty picture, which is still a picture", () => {
    const graph = collectGraph([]);
    expect(graph).toEqual({ nodes: [], edges: [] });
    expectGoodSvg(graph);
    expect(readDot(toDot(graph)).nodes.size).toBe(0);
  });
});

// ---- the texts ----

describe("toDot", () => {
  test("the dot product", () => {
    const out = dotProduct();
    const { nodes, edges } = readDot(toDot(collectGraph([out], new Set([out]))));
    expect([...nodes].map(([name, a]) => `${name} ${a.label}`)).toEqual([
      String.raw`n0 "EMPTY EXT\n[2] int32"`,
      String.raw`n1 "COPY EXT → WASM\n[2] int32"`,
      String.raw`n2 "EMPTY EXT\n[2] int32"`,
      String.raw`n3 "COPY EXT → WASM\n[2] int32"`,
      String.raw`n4 "MUL\n[2] int32"`,
      String.raw`n5 "SUM axis 0\n[1] int32"`,
    ]);
    expect(nodes.get("n5")!.penwidth).toBe("3");
    expect(nodes.get("n4")!.penwidth).toBeUndefined();
    expect(nodes.get("n0")!.shape).toBe("cylinder");
    expect(edges).toEqual(["n0 n1", "n2 n3", "n1 n4", "n3 n4", "n4 n5"]);
  });

  test("escapes quotes, backslashes and line ends, and replaces what cannot be written", () => {
    const graph = { nodes: [node(0, { op: "CUSTOM", arg: nasty }), node(1)], edges: [edge(0, 1, 'a"\\')] };
    const { nodes, edges } = readDot(toDot(graph));
    expect(nodes.get("n0")!.label).toBe(
      String.raw`"CUSTOM <&>\"'\\ ]]> ${"\ufffd".repeat(3)} a\nb\n[2] int32"`,
    );
    expect(edges).toEqual([String.raw`n0 n1 "a\"\\"`]);
  });
});

describe("toSvg", () => {
  test("the dot product: boxes with two lines, groups, bold where stored, no reference to elsewhere", () => {
    const out = dotProduct();
    const svg = expectGoodSvg(collectGraph([out], new Set([out])));
    const texts = [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map((m) => unescapeXml(m[1]!));
    expect(texts).toEqual(
      expect.arrayContaining(["EMPTY EXT", "COPY EXT → WASM", "MUL", "SUM axis 0", "[1] int32"]),
    );
    expect(svg).toContain('<g class="node load" data-node="0">');
    expect(svg).toContain('<g class="node elementwise" data-node="4">');
    expect(svg).toContain('<g class="node reduce stored" data-node="5">');
    expect(svg).toContain('<g class="legend">');
    expect(svg).toContain("prefers-color-scheme:dark");
    expect(svg.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(/https?:|href|<script|@import/);
  });

  test("the labels of views stand beside each other", () => {
    const a = load(64, 128);
    const b = load(128, 256);
    const seen = [64, 256, 128];
    const left = a.reshape([64, 1, 128]).expand(seen);
    const right = b.permute([1, 0]).reshape([1, 256, 128]).expand(seen);
    const svg = expectGoodSvg(collectGraph([left.e("MUL", right).r("SUM", [2])]));
    const labels = [
      ...svg.matchAll(/<text class="label" x="([\d.]+)"[^>]*><title>[^<]*<\/title>(\[.*?\])</g),
    ];
    expect(labels.map((m) => m[2])).toEqual(["[64,256,128]", "[64,256,128]"]);
    expect(Number(labels[1]![1]) - Number(labels[0]![1])).toBeGreaterThan("[64,256,128]".length * 6);
  });

  test("escapes, and stays well-formed and unbroken whatever the texts are", () => {
    const long = `DISK:/${"very-long-path/".repeat(20)}model.safetensors`;
    const nodes = [
      node(0, { op: "CUSTOM", arg: nasty, device: nasty }),
      node(1, { op: "EMPTY", arg: long }),
      node(2, { op: "ADD", arg: "😀".repeat(60) }),
    ];
    const svg = expectGoodSvg({ nodes, edges: [edge(0, 2, nasty), edge(1, 2, "[2]")] });
    expect(svg).toContain("&lt;&amp;&gt;&quot;&#39;");
    expect(svg).toMatch(/>EMPTY DISK:\/very[^<]*…[^<]*safetensors</);
    expect(Math.max(...boxesOf(svg).map((b) => b.w))).toBeLessThan(700);
  });
});

// ---- the layout ----

function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function randomGraph(seed: number): LazyGraph {
  const next = random(seed);
  const count = 2 + Math.floor(next() * 120);
  const near = 1 + Math.floor(next() * count);
  const nodes = Array.from({ length: count }, (_, i) =>
    node(i, { arg: "x".repeat(Math.floor(next() * 20)) }),
  );
  const edges = nodes.flatMap(({ id }) =>
    Array.from({ length: Math.min(id, Math.floor(next() * 4)) }, () =>
      edge(Math.max(0, id - 1 - Math.floor(next() * near)), id, next() < 0.2 ? "[32,128]" : ""),
    ),
  );
  return { nodes, edges };
}

describe("layout", () => {
  test("150 random graphs: no overlap, every edge arrives", () => {
    for (let seed = 1; seed <= 150; seed++) expectGoodSvg(randomGraph(seed));
  });

  test("a source used near and far: near by a line, far by its number", () => {
    const count = 60;
    const nodes = Array.from({ length: count }, (_, i) => node(i));
    const chain = nodes.slice(1).map(({ id }) => edge(id - 1, id));
    const svg = expectGoodSvg({ nodes, edges: [...chain, edge(0, 20), edge(0, 59)] });
    expect([...svg.matchAll(/<text class="label number"[^>]*>([^<]*)/g)].map((m) => m[1])).toEqual(["#0"]);
    expect(svg.split("</title>#0<").length - 1).toBe(1);
  });

  test("a path stays straight and side inputs do not push it away, however long it is", () => {
    let x = load(4);
    for (let i = 0; i < 500; i++) x = x.e("ADD", load(2).pad([[1, 1]]));
    const graph = collectGraph([x]);
    const boxes = boxesOf(expectGoodSvg(graph));
    const spine = boxes.filter((b) => graph.nodes[b.id]!.op === "ADD").map((b) => b.x);
    const all = boxes.map((b) => b.x);
    expect(Math.max(...spine) - Math.min(...spine)).toBeLessThan(600);
    expect(Math.max(...all) - Math.min(...all)).toBeLessThan(1200);
  });

  const large: Record<string, () => LazyBuffer[]> = {
    "a chain": () => {
      let x = load(4);
      for (let i = 0; i < 2000; i++) x = x.e("NEG");
      return [x];
    },
    "a chain that always looks back at its start": () => {
      const start = load(4);
      let x = start;
      for (let i = 0; i < 2000; i++) x = x.e("ADD", start);
      return [x];
    },
    "a thousand things side by side": () => Array.from({ length: 1000 }, () => load(4).e("NEG")),
    "a thousand users of one": () => {
      const one = load(4);
      return [...Array(2000).keys()].map(() => one.e("NEG"));
    },
    "forward and backward": () => {
      const kept: LazyBuffer[] = [];
      let x = load(4);
      for (let i = 0; i < 700; i++) {
        x = x.e("MUL", load(4));
        kept.push(x);
      }
      for (const k of kept.reverse()) x = x.e("MUL", k);
      return [x];
    },
    "fifty paths that cross": () => {
      let row = Array.from({ length: 50 }, () => load(4));
      for (let r = 0; r < 40; r++) row = row.map((x, i) => x.e("ADD", row[(i * 7 + 3 * r) % 50]!));
      return row;
    },
  };
  test.each(Object.entries(large))("2000 nodes are drawn in seconds at most: %s", (_, make) => {
    const outs = make();
    const began = performance.now();
    const graph = collectGraph(outs);
    const svg = toSvg(graph);
    const took = performance.now() - began;
    expect(graph.nodes.length).toBeGreaterThanOrEqual(2000);
    expect(svg.length).toBeLessThan(3_000_000);
    expectGoodSvg(graph);
    expect(readDot(toDot(graph)).edges.length).toBe(graph.edges.length);
    expect(took).toBeLessThan(10_000); // 0.1 s on a quiet machine
  });
});
