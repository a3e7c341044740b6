// The check of arguments: signatures are what the sources say; calls that are plainly wrong are refused with
// an error of ours, for every public function; calls that mean one thing only are accepted.

import { readdirSync, readFileSync } from "node:fs";
import {
  createSchedule,
  Device,
  fft,
  func,
  GradloomError,
  nn,
  scan,
  Tensor,
  TinyJit,
  Variable,
  withEnv,
} from "gradloom";
import { describe, expect, test } from "vitest";
import { signatureFiles } from "../scripts/signatures.ts";
import { guard } from "../src/arguments.ts";
import * as tables from "../src/tensor/signatures.ts";
import { AREAS, CORE, METHODS, STATICS } from "../src/tensor/signatures.ts";

test("the signatures are what `npm run signatures` writes", () => {
  for (const [path, text] of signatureFiles()) {
    expect(readFileSync(`src/${path}`, "utf8") === text, `src/${path}`).toBe(true);
  }
});

test("a method that a page makes out of its name has the defaults of its function", () => {
  const sources = readdirSync("src/tensor", { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts"))
    .map((path) => readFileSync(`src/tensor/${path}`, "utf8"))
    .join("\n");
  const methods = readFileSync("src/tensor/tensor.ts", "utf8").matchAll(
    /^ {2}(?:static )?(\w+)\(((?:[^()]|\([^()]*\))*)\): [^{]*\{\n {4}return (?:\w*[aA]part\()?area\("/gm,
  );
  const defaultsOf = (params: string): string[] =>
    [...params.matchAll(/(?<!=)= (?!>)(\[[^\]]*\]|[^,\s)]+)/g)].map(([, value]) => value as string);
  const differing: string[] = [];
  for (const [, name, params = ""] of methods) {
    const own = new RegExp(`^export function ${name}(?:<[^(]*>)?\\(([\\s\\S]*?)\\): `, "gm");
    // what is destructured has defaults inside; the one of the whole is {}
    const theirs = [...sources.matchAll(own)].map(([, list = ""]) =>
      defaultsOf(list.replaceAll(/\{[^{}]*\}(?=:)/g, "options")),
    );
    const ours = defaultsOf(params);
    if (ours.length > 0 && !theirs.some((list) => String(list) === String(ours))) {
      differing.push(`${name}: ${ours.join(" ")} and ${theirs.map((list) => list.join(" ")).join(" or ")}`);
    }
  }
  expect(differing.join("\n")).toBe("");
});

// ---- every public function, with generated wrong calls ----

type Fn = (...args: unknown[]) => unknown;
interface Callable {
  readonly name: string;
  readonly signature: string;
  call(...args: unknown[]): unknown;
}

/** Any tensor will do: arguments are checked first. */
const self = Tensor.ones(2, 3);
const core = CORE.split(";");
const methodNames = (owner: object): string[] =>
  Object.entries(Object.getOwnPropertyDescriptors(owner))
    .filter(([name, { value }]) => typeof value === "function" && !/^(?:constructor|prototype)$/.test(name))
    .map(([name]) => name);

function tensorFunctions(): Callable[] {
  const found: Callable[] = [];
  const areas = new Set<string>();
  const add = (owner: object, name: string, signature: string): void => {
    const fn = (owner as Record<string, Fn>)[name] as Fn;
    found.push({ name, signature, call: (...args) => fn.apply(owner === Tensor ? Tensor : self, args) });
  };
  for (const list of AREAS.split(";")) {
    const [area = "", ...names] = list.split(" ");
    const signatures = (tables as unknown as Record<string, string>)[area]?.split(";") ?? [];
    for (const [i, marked] of names.entries()) {
      const name = marked.replace("'", "");
      const isStatic = name.startsWith(".");
      add(isStatic ? Tensor : Tensor.prototype, name.replace(".", ""), signatures[i] as string);
      areas.add(name);
    }
  }
  for (const [owner, numbers, dot] of [
    [Tensor.prototype, METHODS, ""],
    [Tensor, STATICS, "."],
  ] as const) {
    const list = Array.from(numbers, (mark) => mark.charCodeAt(0) - 40);
    const names = methodNames(owner).filter((name) => !areas.has(dot + name));
    expect(names.length).toBe(list.length);
    for (const [i, name] of names.entries()) add(owner, name, core[list[i] as number] as string);
  }
  return found;
}

/** The names of nn and of its namespaces, with the signatures in the generated files. */
function nnFunctions(): Callable[] {
  const found: Callable[] = [];
  for (const [path, owner] of [
    ["nn/index", nn],
    ["nn/guarded/optim", nn.optim],
    ["nn/guarded/init", nn.init],
    ["nn/guarded/datasets", nn.datasets],
  ] as const) {
    const text = readFileSync(`src/${path}.ts`, "utf8");
    for (const [, kind, quoted, rest] of text.matchAll(
      / (guard(?:Class)?)\(\s*"(?:init\.)?(\w+)",\s*raw\.\w+,\s*([^\n]*)/gm,
    )) {
      const name = quoted as string;
      const made = (owner as unknown as Record<string, unknown>)[name];
      const signature = JSON.parse(/"[^"]*"/.exec(rest as string)?.[0] as string) as string;
      const type = made as new (...args: unknown[]) => unknown;
      const isClass = kind === "guardClass";
      found.push({
        name,
        signature,
        call: (...args) => (isClass ? new type(...args) : (made as Fn)(...args)),
      });
    }
  }
  return found;
}
const FUNCTIONS = [...tensorFunctions(), ...nnFunctions()];

/** The error of a call, also of one that returns a promise or a generator. */
async function errorOf(call: () => unknown): Promise<unknown> {
  try {
    await call();
  } catch (e) {
    return e;
  }
  return undefined;
}
const paramsOf = (signature: string): string[] =>
  (signature.replace("~", "").split("/")[0] as string).split(" ").filter((p) => p !== "");
const kindsOf = (param: string): string => param.replace(/^\w+:/, "").replace(/\{.*\}/, "");

/** A value that fits a parameter, as far as its kind goes. */
function fitting(param: string): unknown {
  const kinds = kindsOf(param);
  const values: Readonly<Record<string, unknown>> = {
    t: Tensor.ones(2, 3),
    e: 1,
    n: 1,
    b: true,
    s: "x",
    d: "float32",
    a: [1],
    l: [Tensor.ones(2)],
    m: [],
    v: new Uint8Array(1),
    f: () => Tensor.ones(1),
    g: 1n,
    k: {},
    r: {},
    c: {},
    z: 1,
    0: null,
  };
  return kinds === "" ? {} : values[[..."tnelabsdmvfgkrcz0"].find((k) => kinds.includes(k)) as string];
}
const required = (params: readonly string[]): string[] =>
  params.filter((p) => !/[?*]$/.test(p) && !p.includes("{"));

interface Wrong {
  readonly what: string;
  readonly args: unknown[];
}
/** Calls of a function that are wrong, whatever it computes. */
function wrongCalls({ signature }: Callable): Wrong[] {
  const params = paramsOf(signature);
  const overloaded = signature.includes("/");
  const good = required(params).map(fitting);
  const wrong: Wrong[] = [];
  const at = params.findIndex((p) => p.includes("{"));
  const isMany = params.some((p) => p.endsWith("*"));
  if (at >= 0) {
    const before = params.slice(0, at).map((p) => (/[?*]$/.test(p) ? undefined : fitting(p)));
    const filled = isMany ? [1] : before;
    wrong.push({ what: "an unknown option", args: [...filled, { notAnOption: 1 }] });
    if (!/\}\w*[nsm]/.test(params[at] as string) && !isMany && !overloaded) {
      wrong.push({ what: "a symbol for options", args: [...filled, Symbol("no")] });
    }
  }
  if (good.length > 0 && !kindsOf(params[0] as string).includes("z"))
    wrong.push({ what: "nothing", args: [] });
  if (!isMany) {
    const all = params.map((p) => (p.includes("{") ? {} : fitting(p)));
    const most = Math.max(...signature.split("/").map((s) => s.split(" ").length)) + 5;
    wrong.push({ what: "too much", args: [...all, ...Array.from({ length: most }, () => Symbol("more"))] });
  }
  const [first = "z"] = params;
  const kinds = kindsOf(first);
  const tries: readonly (readonly [what: string, fits: RegExp, value: unknown])[] = [
    ["a string", /[sdzkf]/, "nonsense"],
    ["null", /[0z]/, null],
    ["NaN", /[ez]/, NaN],
    ["a list of strings", /[mz]/, ["a"]],
    ["a function", /[fzk]/, () => 1],
  ];
  for (const [what, fits, value] of tries) {
    if (params.length === 0 || first.includes("{") || fits.test(kinds)) continue;
    wrong.push({ what, args: [value, ...good.slice(1)] });
  }
  return wrong;
}

describe("every public function refuses what is plainly wrong", () => {
  test("there are many", () => expect(FUNCTIONS.length).toBeGreaterThan(550));
  test.each(["an unknown option", "a symbol for options", "nothing", "too much", "a string", "null", "NaN"])(
    "%s",
    (what) => walk((wrong) => wrong.what === what),
  );
  test("lists and functions", () => walk(({ what }) => what.startsWith("a list") || what === "a function"));
});
async function walk(wanted: (wrong: Wrong) => boolean): Promise<void> {
  const accepted: string[] = [];
  for (const f of FUNCTIONS) {
    for (const { what, args } of wrongCalls(f).filter(wanted)) {
      const error = await errorOf(() => f.call(...args));
      const isOurs = error instanceof GradloomError && error.message.length > 20;
      const isNamed = what !== "an unknown option" || String(error).includes("notAnOption");
      if (!isOurs || !isNamed) accepted.push(`${f.name} with ${what} (${f.signature}): ${String(error)}`);
    }
  }
  expect(accepted).toEqual([]);
}

// ---- misuses, each with what the error says ----

/** Keeps its tensor where nobody can see it. */
class Hidden {
  #w = new Tensor([1.5], { requiresGrad: true });
  get shape(): readonly number[] {
    return this.#w.shape;
  }
}
const model = new nn.Linear(3, 2);
/** What the calls in misuses.txt speak of. */
const NAMES: Readonly<Record<string, unknown>> = {
  ...{ createSchedule, Device, fft, func, Hidden, nn, scan, Tensor, TinyJit, Variable, withEnv, model },
  x: Tensor.ones(2, 3),
  y: Tensor.ones(2, 3),
  w: Tensor.ones(2, 3),
  m: Tensor.eye(3),
  i: new Tensor([0, 1]),
  u: new Tensor([1, 2], { dtype: "uint8" }),
  img: Tensor.ones(1, 3, 8, 8),
  k: Tensor.ones(4, 3, 3, 3),
  q: Tensor.ones(1, 2, 4, 8),
  opt: new nn.SGD(model),
  p: new Tensor([1.5], { requiresGrad: true }).sum(),
  w1: new Tensor([1.5], { requiresGrad: true }),
};
const MISUSES = readFileSync("test/misuses.txt", "utf8")
  .trim()
  .split("\n")
  .map((line) => line.split("  =>  ") as [string, string]);

/** A call in plain JavaScript, as a user writes it. */
const plain = (call: string): unknown =>
  new Function(...Object.keys(NAMES), `return (${call});`)(...Object.values(NAMES));

describe("a misuse", () => {
  test("there are many", () => expect(MISUSES.length).toBeGreaterThanOrEqual(300));
  test("is an error of ours that says what to write", async () => {
    const wrong: string[] = [];
    for (const [call, says] of MISUSES) {
      const error = await errorOf(() => plain(call));
      const message = error instanceof GradloomError ? error.message : `not ours: ${String(error)}`;
      const helps = /write |expected|give |return |use |make it |cast it |set requiresGrad|set DEV/.test(
        message,
      );
      if (!message.startsWith(says) || !helps) wrong.push(`${call}  =>  ${message}`);
    }
    expect(wrong.join("\n")).toBe("");
  });
});

// ---- calls that mean one thing only ----

test("torch's spelling of requiresGrad, and numbers that are known before anything is computed", () => {
  const w = Object.assign(Tensor.ones(2), { requires_grad: true });
  expect([w.requiresGrad, (w as unknown as { requires_grad: boolean }).requires_grad]).toEqual([true, true]);
  const numbers = [new Tensor(5), new Tensor(2.5).reshape(1), Tensor.full([1, 1], 7)];
  expect(numbers.map((t) => Number(t) + 1)).toEqual([6, 3.5, 8]);
  expect(() => Number(new Tensor(5).pad([1, 0]))).toThrow(GradloomError);
});

const tensor = (...shape: number[]): Tensor =>
  Tensor.arange(shape.reduce((a, b) => a * b, 1))
    .reshape(shape)
    .float();
const [a, b] = [tensor(2, 3), tensor(2, 3).add(1)];
const image = tensor(1, 3, 6, 6);
const filters = tensor(4, 3, 3, 3);
const heads = tensor(1, 2, 4, 8).div(100);
const mask = Tensor.ones(4, 4).tril().cast("bool");

test.each<[given: string, same: string]>([
  ["a.add([1, 2, 3])", "a.add(new Tensor([1, 2, 3]))"],
  ["a.add(new Float32Array([1, 2, 3]))", "a.add(new Tensor(new Float32Array([1, 2, 3])))"],
  ["a.mseLoss([[1, 2, 3], [4, 5, 6]])", "a.mseLoss(new Tensor([[1, 2, 3], [4, 5, 6]]))"],
  ["a.indexPut([[0, 1], [2, 0]], 5)", "a.indexPut([new Tensor([0, 1]), new Tensor([2, 0])], 5)"],
  ["a.gather(1, [[0], [2]])", "a.gather(1, new Tensor([[0], [2]]))"],
  ["Tensor.cat([[1, 2], [3]])", "Tensor.cat([new Tensor([1, 2]), new Tensor([3])])"],
  ['b.div(2, "floor")', 'b.div(2, { roundingMode: "floor" })'],
  ["b.div(2, { rounding_mode: 'trunc' })", 'b.div(2, { roundingMode: "trunc" })'],
  ['a.mseLoss(b, "sum")', 'a.mseLoss(b, { reduction: "sum" })'],
  [
    "a.crossEntropy([0, 1], { label_smoothing: 0.1 })",
    "a.crossEntropy(new Tensor([0, 1]), { labelSmoothing: 0.1 })",
  ],
  ["a.crossEntropy([0, 1], { ignore_index: 1 })", "a.crossEntropy(new Tensor([0, 1]), { ignoreIndex: 1 })"],
  ["image.conv2d(filters, { padding: 1 })", "image.conv2d(filters, null, { padding: 1 })"],
  ["image.conv2d(filters, null, 2, 1)", "image.conv2d(filters, null, { stride: 2, padding: 1 })"],
  [
    "image.conv2d(filters, null, 2, { padding: 1 })",
    "image.conv2d(filters, null, { stride: 2, padding: 1 })",
  ],
  ["image.maxPool2d(3, 2, 1)", "image.maxPool2d(3, { stride: 2, padding: 1 })"],
  ["image.maxPool2d(4, { ceil_mode: true })", "image.maxPool2d(4, { ceilMode: true })"],
  [
    "heads.scaledDotProductAttention(heads, heads, mask)",
    "heads.scaledDotProductAttention(heads, heads, { attnMask: mask })",
  ],
  [
    "heads.scaledDotProductAttention(heads, heads, { is_causal: true })",
    "heads.scaledDotProductAttention(heads, heads, { isCausal: true })",
  ],
  [
    "heads.scaledDotProductAttention(heads, heads, null, 0, true)",
    "heads.scaledDotProductAttention(heads, heads, { isCausal: true })",
  ],
  ['a.get(":", 1)', "a.get([], 1)"],
  ["Tensor.zeros(2, { requires_grad: true })", "Tensor.zeros(2, { requiresGrad: true })"],
  ["Tensor.stack([a, b].map(Tensor.onesLike))", "Tensor.stack([a, b].map((t) => Tensor.onesLike(t)))"],
])("%s is %s", async (given, same) => {
  const run = (call: string): Tensor =>
    new Function("Tensor", "a", "b", "image", "filters", "heads", "mask", `return ${call}`)(
      ...[Tensor, a, b, image, filters, heads, mask],
    );
  expect(await run(given).tolist()).toEqual(await run(same).tolist());
});

type Any = new (...args: unknown[]) => Record<string, never>;
const made = (name: "Linear" | "Conv2d" | "Adam" | "SGD" | "Embedding" | "LSTM", ...args: unknown[]) =>
  new (nn[name] as unknown as Any)(...args);

test("torch's order in layers and optimisers", () => {
  expect(made("Linear", 4, 2, false).bias).toBeUndefined();
  expect(made("Conv2d", 3, 8, 3, 1, 1).options).toEqual({ stride: 1, padding: 1 });
  expect(made("Conv2d", 3, 8, 3, 1, 1, 1, 1, false).bias).toBeUndefined();
  expect(made("LSTM", 3, 4, 2).numLayers).toBe(2);
  expect(made("Adam", model, 0.01).lr).toBe(0.01);
  expect(new nn.SGD(model, { weight_decay: 0.1, lr: 1 } as object).groups[0]?.options.weightDecay).toBe(0.1);
});

test("a model where parameters are asked for, and models in a list or a group", () => {
  expect(new nn.SGD(model).params).toEqual(nn.getParameters(model));
  expect(new nn.SGD([model, new nn.Linear(2, 2)]).params.length).toBe(4);
  const { groups } = new nn.SGD([{ params: model, weight_decay: 1 }] as never, { lr: 0.5 });
  expect([groups[0]?.params.length, groups[0]?.options.weightDecay, groups[0]?.lr]).toEqual([2, 1, 0.5]);
  model.forward(Tensor.ones(1, 3)).sum().backward();
  expect(nn.clipGradNorm(model, 1).shape).toEqual([]);
});

test("snake_case where a class checks its own options, and one group without a list", () => {
  const data = { x: Tensor.ones(4, 2), y: Tensor.ones(4) };
  expect(new nn.DataLoader(data, { batch_size: 3, drop_last: true } as never).length).toBe(1);
  expect(new nn.LeakyReLU({ negative_slope: 0.5 } as never).negativeSlope).toBe(0.5);
  expect(new nn.SGD({ params: [model.weight], lr: 0.25 } as never).groups[0]?.lr).toBe(0.25);
});

test("null empties a gradient, as in torch", async () => {
  const w = new Tensor([1.5], { requiresGrad: true });
  w.sum().backward();
  w.grad = null;
  expect(w.grad).toBeUndefined();
  w.sum().backward();
  expect(await w.grad?.tolist()).toEqual([1]);
});

test("messages have the names that the source has, whatever a bundler made of them", () => {
  const fn = guard(
    "twice",
    function twice(x2: number, _y: number): number {
      return x2;
    },
    () => "n n",
  );
  expect(() => fn("1" as never, 2)).toThrow(
    /^twice: x is the string "1", expected a number; write twice\(x, y\)/,
  );
});

test("an array where a layer asks for a Tensor", () => {
  expect(new nn.Embedding(4, 3).forward([1, 2] as never).shape).toEqual([2, 3]);
});

test("a guarded class is the class: instanceof, constructor, subclasses, errors by promise", async () => {
  class Wide extends nn.Linear {
    constructor() {
      super(3, 8);
    }
  }
  expect(model).toBeInstanceOf(nn.Linear);
  expect(model.constructor).toBe(nn.Linear);
  expect(new Wide()).toBeInstanceOf(nn.Linear);
  expect(new Wide().forward(Tensor.ones(1, 3)).shape).toEqual([1, 8]);
  const later = nn.safeLoad(5 as never);
  await expect(later).rejects.toThrow(/^safeLoad: source is 5/);
});

// ---- operators, models that change, hidden tensors ----

test("a number of one computed element takes part in operators; text is always there", async () => {
  const loss = await Tensor.full([], 2.5).add(1).realize();
  expect((loss as unknown as number) > 3).toBe(true);
  expect(`${a}`).toBe(String(a));
  expect(() => (a as unknown as number) + 1).toThrow(/write x\.add\(1\), x\.gt\(1\)/);
});

test("layers of a Sequential can be replaced, added and removed", () => {
  const net = new nn.Sequential(new nn.Linear(3, 4), (t) => t.relu());
  net.layers[0] = new nn.Linear(3, 5);
  net.layers.push(new nn.Linear(5, 2));
  expect(net.forward(Tensor.ones(1, 3)).shape).toEqual([1, 2]);
  expect(Object.keys(nn.getStateDict(net))).toEqual(["0.weight", "0.bias", "2.weight", "2.bias"]);
  net.layers.pop();
  expect(net.layers.length).toBe(2);
  expect(net.forward(Tensor.ones(1, 3)).shape).toEqual([1, 5]);
  expect(() => net.layers.push(5 as never)).toThrow(
    /^Sequential: layer 2 is 5, expected a function or an object with a forward method/,
  );
});

test("tensors in a Set are found", () => {
  const w = new Tensor([1.5], { requiresGrad: true });
  expect(nn.getParameters({ all: new Set([w]) })).toEqual([w]);
});
