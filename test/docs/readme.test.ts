// README.md says what is true and fits a screen: its example prints what stands below it, its two commands
// are what continuous integration runs, its links lead to files of the package.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { anchorsOf, output, readPage, root } from "./markdown.ts";

const { text: readme, blocks, links } = readPage("README.md");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
  files: string[];
};

test("it is one screen of text and the essentials", () => {
  const prose = readme.replaceAll(/^```[\s\S]*?^```$/gm, "");
  expect(prose.split("\n").filter((line) => line !== "").length).toBeLessThanOrEqual(45);
  expect(readme.split("\n").length).toBeLessThanOrEqual(80);
});

test("the example prints what is written below it", () => {
  const at = blocks.findIndex((b) => b.language === "js");
  const [example, printed] = blocks.slice(at);
  expect(printed?.language).toBe("text");
  expect(output(example?.text ?? "")).toBe(printed?.text);
  expect(example?.text.trimEnd().split("\n").length).toBeLessThanOrEqual(10);
});

test("the example runs as many kernels as its comments say", () => {
  const code = blocks.find((b) => b.language === "js")?.text ?? "";
  const counted = `${code}
import { GlobalCounters } from "gradloom";
console.log(GlobalCounters.kernelCount);`;
  expect(output(counted).trimEnd().split("\n").at(-1)).toBe("3");
});

test("the loop trains a model with dropout, and tests it without", () => {
  const loop = blocks.filter((b) => b.language === "js")[1]?.text ?? "";
  const program = `import { nn, Tensor } from "gradloom";
Tensor.manualSeed(3);
const x = new Tensor([[0, 0], [0, 1], [1, 0], [1, 1]], { dtype: "float32" });
const y = new Tensor([0, 1, 1, 0]);
const model = new nn.Sequential(new nn.Linear(2, 32), (h) => h.relu(), new nn.Dropout(0.2), new nn.Linear(32, 2));
const optimizer = new nn.Adam(nn.getParameters(model), { lr: 0.05 });
const isDropped = (await model.forward(x).tolist()).join() !== (await model.forward(x).tolist()).join();
${loop}
console.log(isDropped, (await guess.tolist()).join());`;
  expect(output(program)).toBe("true 0,1,1,0\n");
});

test("the commands are those of package.json and .ci/run", () => {
  const commands = blocks.filter((b) => b.language === "sh").map((b) => b.text.trim());
  expect(commands).toEqual(["npm install && npm run mnist", "npm ci && npm test"]);
  expect(readFileSync(join(root, ".ci/run"), "utf8").trimEnd().split("\n").at(-1)).toBe(commands[1]);
});

test("every script that README names is there", () => {
  const named = [...readme.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name as string);
  expect(named.filter((name) => manifest.scripts[name] === undefined)).toEqual([]);
});

test("what README links to is in the package", () => {
  const paths = links.map((link) => link.split("#")[0] as string);
  const isShipped = (path: string) => manifest.files.some((f) => path === f || path.startsWith(`${f}/`));
  expect(paths.filter((path) => !isShipped(path))).toEqual([]);
});

test("every file and heading that README links to is there", () => {
  for (const link of links) {
    const [path = "", anchor] = link.split("#");
    const text = readFileSync(join(root, path), "utf8");
    if (anchor !== undefined) expect(anchorsOf(text), link).toContain(anchor);
  }
});
