// nn.save and nn.load: a run that is resumed in another process is the run that was never interrupted, bit
// for bit; what does not fit is refused and changes nothing.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device, nn, Tensor } from "gradloom";
import { afterAll, describe, expect, test } from "vitest";
import { type Job, training } from "./resume.ts";

const folder = mkdtempSync(join(tmpdir(), "gradloom-checkpoint-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("10 steps are 5, a save, a load in another process, and 5", { timeout: 120_000 }, async (context) => {
  const devices: string[] = [];
  for (const name of ["WASM", "CLANG"]) {
    const found = await Device.open(name).then(
      () => undefined,
      (e: Error) => e.message,
    );
    if (found === undefined) devices.push(name);
    else context.annotate(`without ${name}: ${found}`);
  }
  const jobs: Job[] = devices.flatMap((d) =>
    [true, false].map((j) => [d, j, join(folder, `${d}${j}`)] as const),
  );
  const wanted: unknown[] = [];
  for (const [device, isJitted, file] of jobs) {
    const { run, ...parts } = training(device, isJitted);
    const whole = await run(5);
    await nn.save({ ...parts, step: 5 }, file);
    whole.push(...(await run(5)));
    expect(new Set(whole).size).toBe(10);
    // a save changes nothing
    if (device === "WASM") expect(await training(device, isJitted).run(10)).toEqual(whole);
    wanted.push({ step: 5, losses: whole.slice(5) });
  }
  const program = join(import.meta.dirname, "resume.ts");
  const { stdout, stderr } = spawnSync(process.execPath, ["--import", "tsx", program, JSON.stringify(jobs)], {
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  expect(JSON.parse(stdout)).toEqual(wanted);
  // a finished file, and nothing that was left half written
  expect(readdirSync(folder).sort()).toEqual(jobs.map(([d, j]) => `${d}${j}`).sort());
});

const param = (...xs: number[]) => new Tensor(Float32Array.from(xs), { requiresGrad: true });

describe("parts", () => {
  test("several models and optimisers, plain values of any kind, a tensor", async () => {
    const make = (fill: number) => ({
      g: new nn.Linear(2, 3),
      d: { layers: [new nn.Linear(3, 1)] },
      noise: Tensor.full([2], fill, { dtype: "float32" }).contiguous(),
    });
    const [from, to] = [make(1), make(2)];
    const values = { epoch: 3, best: -Infinity, history: [0.1, NaN, -0], note: { tags: ["a", null, true] } };
    const bytes = await nn.save({ ...from, ...values });
    expect(await nn.load(bytes, to)).toEqual(values);
    for (const [name, t] of Object.entries(nn.getStateDict(to))) {
      expect(await t.tolist()).toEqual(await nn.getStateDict(from)[name]?.tolist());
    }
    expect(Object.keys((await nn.safeHeader(bytes)).tensors).sort()).toEqual(
      ["d.layers.0.bias", "d.layers.0.weight", "g.bias", "g.weight", "noise"].sort(),
    );
  });
  test("values have the types that the caller says", async () => {
    const bytes = await nn.save({ step: 3, best: { loss: 0.5 } });
    const { step, best } = await nn.load<{ step: number; best: { loss: number } }>(bytes);
    const next: number = step + 1;
    expect([next, best.loss]).toEqual([4, 0.5]);
    // @ts-expect-error: a file of plain values has no functions
    expect(await nn.load<{ step: () => void }>(bytes)).toEqual({ step: 3, best: { loss: 0.5 } });
  });
  test("weights that two layers share are saved once and stay shared", async () => {
    const make = () => {
      const a = new nn.Linear(3, 3, { bias: false });
      return { a, b: { weight: a.weight } };
    };
    const [from, to] = [make(), make()];
    const bytes = await nn.save({ model: from });
    expect(Object.keys((await nn.safeHeader(bytes)).tensors)).toEqual(["model.a.weight"]);
    await nn.load(bytes, { model: to });
    expect(to.b.weight).toBe(to.a.weight);
    expect(await to.b.weight.tolist()).toEqual(await from.a.weight.tolist());
  });
  test("counts of steps that came apart are loaded apart, and shared ones are shared", async () => {
    const make = () => {
      const ps = [param(1, 2), param(3, 4), param(5, 6)];
      return { ps, opt: new nn.optim.Adam(ps, { lr: 0.1 }) };
    };
    const step = async ({ ps, opt }: ReturnType<typeof make>, used: number[]) => {
      opt.zeroGrad();
      for (const i of used) (ps[i] as Tensor).grad = param(0.5, -1).detach();
      await opt.step();
    };
    const [whole, first, second] = [make(), make(), make()];
    const plan = [[0, 1, 2], [0], [0, 2], [1, 2], [0, 1, 2]];
    for (const used of plan) await step(whole, used);
    for (const used of plan.slice(0, 3)) await step(first, used);
    await nn.load(await nn.save(first), second);
    for (const used of plan.slice(3)) await step(second, used);
    for (const i of [0, 1, 2]) {
      expect(await second.ps[i]?.tolist()).toEqual(await whole.ps[i]?.tolist());
    }
    const third = make();
    const even = make();
    await step(even, [0, 1, 2]);
    await nn.load(await nn.save(even), third);
    expect(new Set(third.opt.state.map((s) => s.c1)).size).toBe(1);
  });
  test("rates of groups and the place of a schedule", async () => {
    const make = (lr: number) => {
      const opt = new nn.optim.SGD([{ params: [param(1)] }, { params: [param(2)], lr: lr / 2 }], { lr });
      return { opt, rates: new nn.optim.StepLR(opt, { stepSize: 2, gamma: 0.5 }) };
    };
    const [from, to] = [make(1), make(0.25)];
    for (let i = 0; i < 3; i++) from.rates.step();
    expect(from.rates.stateDict()).toEqual({ lastStep: 3, bases: [1, 0.5] });
    expect(() => to.rates.loadStateDict({ lastStep: 3, bases: [1] })).toThrow(/rates of 1 groups, .* has 2/);
    await nn.load(await nn.save(from), to);
    expect(to.opt.groups.map((g) => g.lr)).toEqual([0.5, 0.25]);
    for (const { rates } of [from, to]) rates.step();
    expect(to.opt.groups.map((g) => g.lr)).toEqual(from.opt.groups.map((g) => g.lr));
    expect(to.rates.lastStep).toBe(4);
  });
  test("random numbers go on where they were, if an optimiser is loaded or if asked", async () => {
    const model = new nn.Linear(2, 2);
    const optimizer = new nn.optim.SGD(nn.getParameters(model));
    Tensor.manualSeed(3);
    await Tensor.rand(5).realize();
    const bytes = await nn.save({ model, optimizer });
    const wanted = await Tensor.rand(4).tolist();
    const next = async () => {
      Tensor.manualSeed(99);
      return Tensor.rand(4).tolist();
    };
    const other = await next();
    const goOn = async (parts: nn.Parts, options: nn.CheckpointOptions = {}) => {
      Tensor.manualSeed(99);
      await nn.load(bytes, parts, options);
      return Tensor.rand(4).tolist();
    };
    expect(await goOn({ model, optimizer })).toEqual(wanted);
    expect(await goOn({ model })).toEqual(other);
    expect(await goOn({ model }, { random: true })).toEqual(wanted);
    expect(await goOn({ model, optimizer }, { random: false })).toEqual(other);
  });
});

describe("what does not fit", () => {
  const make = (width = 2) => {
    const model = new nn.Linear(2, width);
    return { model, optimizer: new nn.optim.Adam(nn.getParameters(model)) };
  };
  type Make = () => nn.Parts;
  test.each<[string, Make, RegExp]>([
    ["another shape", () => make(3), /misshapen: model\.weight is \[3, 2\] in the model and \[2, 2\]/],
    ["a part that is not there", () => ({ net: make().model }), /no part net; it has model, optimizer, step/],
    [
      "another optimiser",
      () => ({ optimizer: new nn.optim.SGD([param(1)]) }),
      /optimizer: the checkpoint has Adam, this is SGD\. Nothing was loaded/,
    ],
    [
      "fewer parameters",
      () => ({ optimizer: new nn.optim.Adam([param(1)]) }),
      /the checkpoint has 2 parameters by group, this Adam has 1/,
    ],
    [
      "other options",
      () => ({ optimizer: new nn.optim.Adam(nn.getParameters(make().model), { betas: [0.5, 0.9] }) }),
      /saved with options .*\[0\.9,0\.999\].* and has .*\[0\.5,0\.9\].*strict: false/,
    ],
    ["a value for a model", () => ({ model: 5 }), /model is a model in the checkpoint and a value here/],
    [
      "a value that is asked for",
      () => ({ step: make().model }),
      /step is a value in the checkpoint and a model/,
    ],
    ["a function", () => ({ model: () => 1 }), /model is function without tensors; expected a model/],
    ["a name with a dot", () => ({ "a.b": 1 }), /named "a\.b", expected a name without dots/],
  ])("%s", async (_, parts, message) => {
    const bytes = await nn.save({ ...make(), step: 1 });
    const given = parts();
    const before = await Promise.all(Object.values(nn.getStateDict(given)).map((t) => t.tolist()));
    await expect(nn.load(bytes, given)).rejects.toThrow(message);
    expect(await Promise.all(Object.values(nn.getStateDict(given)).map((t) => t.tolist()))).toEqual(before);
  });
  test("files that are not checkpoints", async () => {
    await expect(nn.load(await nn.safeSave({ w: new Tensor([1.5]) }), {})).rejects.toThrow(
      /not a checkpoint of nn\.save; for plain weights use nn\.loadStateDict/,
    );
    const later = await nn.safeSave({}, undefined, {
      gradloom: '{"version":9,"values":{},"states":{},"optimizers":{},"same":{},"random":{}}',
    });
    await expect(nn.load(later)).rejects.toThrow(/has version 9, this gradloom reads 1/);
    await expect(nn.load(await nn.safeSave({}, undefined, { gradloom: "{" }))).rejects.toThrow(/not JSON/);
    await expect(nn.load(await nn.safeSave({}, undefined, { gradloom: "{}" }))).rejects.toThrow(
      /not complete/,
    );
  });
  test("swapped arguments of save", async () => {
    await expect(nn.save("file" as never, {} as never)).rejects.toThrow(/save: parts is the string "file"/);
    await expect(nn.save([new nn.Linear(1, 1)] as never)).rejects.toThrow(
      /save: parts is of type Array, expected/,
    );
  });
});
