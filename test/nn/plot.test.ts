// Plots: where curves and bars are, what images are in the PNG of a grid, lines for a terminal, bad data.

import { nn, Tensor } from "gradloom";
import { expect, test } from "vitest";
import { decodePng } from "../../src/tensor/image/png.ts";

const { plot } = nn;
const attributes = (svg: string, tag: string, name: string): string[] =>
  [...svg.matchAll(new RegExp(`<${tag} [^>]*?\\b${name}="([^"]*)"`, "g"))].map((m) => m[1] as string);

test("line: a path for each curve, gaps where values are not finite, a title and names", () => {
  const svg = plot.line(
    { loss: [4, 2, NaN, 1], "a<b": new Float32Array([1, 3]) },
    { title: "T & U", width: 400, height: 200 },
  );
  const [first, second] = attributes(svg, "path", "d") as [string, string];
  expect(first.match(/[ML]/g)?.join("")).toBe("MLM");
  expect(second.match(/[ML]/g)?.join("")).toBe("ML");
  // the largest value is at the top, the least at the bottom, the last step at the right
  expect(first.startsWith("M56 32L")).toBe(true);
  expect(first.endsWith("M388 172")).toBe(true);
  expect(svg).toContain("T &amp; U");
  expect(svg).toContain("a&lt;b");
  expect(plot.line([])).toContain("<svg");
  expect(attributes(plot.line([4, NaN, 1]), "path", "d")[0]?.match(/[ML]/g)).toEqual(["M", "M"]);
  expect(plot.line([2, 2])).not.toContain("NaN");
});
test("ticks are round numbers", () => {
  expect(plot.ticks(0, 1)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
  expect(plot.ticks(-3, 12)).toEqual([0, 5, 10]);
  expect(plot.ticks(0.001, 0.0034)).toEqual([0.001, 0.0015, 0.002, 0.0025, 0.003]);
});
test("histogram: bars as high as their counts", () => {
  const svg = plot.histogram([0, 0.1, 0.9, 1, 1, Infinity], { bins: 2, height: 100 });
  const heights = attributes(svg, "rect", "height").slice(1).map(Number);
  expect(heights[1]).toBe(60);
  expect(heights[0]).toBeCloseTo(40, 1);
});
test("images: each is a PNG with its pixels", async () => {
  const batch = new Tensor(Uint8Array.from({ length: 2 * 3 * 2 * 2 }, (_, i) => i * 10)).reshape(2, 3, 2, 2);
  const svg = await plot.images(batch, { columns: 2, scale: 4, gap: 1 });
  expect(attributes(svg, "svg", "width")).toEqual(["19"]);
  const [, second] = attributes(svg, "image", "href").map((h) =>
    Uint8Array.from(atob(h.split(",")[1] as string), (c) => c.charCodeAt(0)),
  );
  const { width, height, channels, pixels } = await decodePng(second as Uint8Array);
  expect([width, height, channels]).toEqual([2, 2, 3]);
  expect([...pixels]).toEqual([120, 160, 200, 130, 170, 210, 140, 180, 220, 150, 190, 230]);
  const floats = await plot.images(new Tensor([[[[0, 0.5, 2]]]]));
  const png = Uint8Array.from(
    atob((attributes(floats, "image", "href")[0] as string).split(",")[1] as string),
    (c) => c.charCodeAt(0),
  );
  expect([...(await decodePng(png)).pixels]).toEqual([0, 128, 255]);
});
test("text for a terminal", () => {
  expect(plot.textLine({ a: [0, 1, 2], b: [2, NaN, 0] }, { width: 5, height: 3, title: "t" })).toBe(
    ["t", "2 |o   *", "1 |  *", "0 |*   o", "* a   o b"].join("\n"),
  );
  expect(plot.textHistogram([0, 1, 1], { bins: 2, width: 4, title: "h" })).toBe(
    "h\n  0 | 1 ##\n0.5 | 2 ####",
  );
});
test.each<[() => unknown, RegExp]>([
  [() => plot.line(new Tensor([1]) as never), /^line: series is of type Tensor, expected .*; write line\(/],
  [() => plot.line({ a: ["1"] } as never), /plot\.line: a is not a list of numbers/],
  [() => plot.line([1], { colour: "red" } as never), /unknown option colour/],
  [() => plot.line([1], { width: -1 }), /width -1 and height 360 must be above 0/],
  [() => plot.histogram([1], { bins: 0 }), /bins is 0/],
])("refused: %s", (make, message) => expect(make).toThrow(message));
test("refused: not images", async () => {
  await expect(plot.images(Tensor.ones(2, 2))).rejects.toThrow(
    /shape \[2, 2\], expected \[n, channels, height, width\]/,
  );
});
