// The ops of com.microsoft, against the same computed with methods of Tensor.

import { Tensor } from "gradloom";
import { load, type OnnxGraph, write } from "gradloom/onnx";
import { expect, test } from "vitest";

type Weights = NonNullable<OnnxGraph["weights"]>;
/** One node on weights; a name that starts with "-" is an input that is left out. */
async function run(op: string, weights: Weights, attributes: object, outputs = ["y"]): Promise<Tensor[]> {
  const names = Object.keys(weights);
  const graph: OnnxGraph = {
    inputs: {},
    outputs: Object.fromEntries(outputs.map((name) => [name, { type: "float" }])),
    weights: Object.fromEntries(Object.entries(weights).filter(([name]) => !name.startsWith("-"))),
    nodes: [
      {
        op: `com.microsoft.${op}`,
        inputs: names.map((name) => (name.startsWith("-") ? "" : name)),
        outputs,
        attributes: attributes as never,
      },
    ],
  };
  const results = await (await load(await write(graph))).run();
  return outputs.map((name) => results[name] as Tensor);
}
const none = new Tensor([0]);
async function agree(got: Tensor | undefined, wanted: Tensor): Promise<void> {
  expect(got?.shape).toEqual(wanted.shape);
  const [a, b] = [await (got as Tensor).data(), await wanted.data()];
  a.forEach((x, i) => {
    expect(x).toBeCloseTo(b[i] as number, 4);
  });
}
const random = async (...shape: number[]): Promise<Tensor> => Tensor.randn(shape).realize();
const heads = (x: Tensor, n: number): Tensor =>
  x.reshape([x.shape[0] as number, x.shape[1] as number, n, -1]).transpose(1, 2);
const joined = (y: Tensor): Tensor =>
  y.transpose(1, 2).reshape([y.shape[0] as number, y.shape[2] as number, -1]);

test("gelus and FusedMatMul", async () => {
  const [x, b] = [await random(2, 4), await random(4)];
  await agree((await run("Gelu", { x }, {}))[0], x.gelu());
  await agree((await run("BiasGelu", { x, b }, {}))[0], x.add(b).gelu());
  await agree((await run("FastGelu", { x, b }, {}))[0], x.add(b).gelu("tanh"));
  await agree((await run("QuickGelu", { x }, {}))[0], x.mul(x.mul(1.702).sigmoid()));
  const w = await random(3, 4);
  await agree((await run("FusedMatMul", { x, w }, { alpha: 0.5, transB: 1 }))[0], x.matmul(w.T).mul(0.5));
});

test("SkipLayerNormalization gives the sum, too", async () => {
  const [x, s, g, b, c] = [
    await random(2, 3, 4),
    await random(2, 3, 4),
    await random(4),
    await random(4),
    await random(4),
  ];
  const outputs = ["y", "mean", "inverse", "sum"];
  const [y, , , sum] = await run("SkipLayerNormalization", { x, s, g, b, c }, { epsilon: 1e-5 }, outputs);
  const whole = x.add(s).add(c);
  await agree(sum, whole);
  await agree(y, whole.layerNorm(4, { weight: g, bias: b }));
  const [z] = await run("SkipSimplifiedLayerNormalization", { x, s, g }, { epsilon: 1e-5 });
  await agree(z, x.add(s).mul(x.add(s).square().mean(-1, true).add(1e-5).rsqrt()).mul(g));
});

test("MultiHeadAttention: bias, a mask of keys, a past", async () => {
  const [q, k, v, bias] = [
    await random(2, 3, 8),
    await random(2, 5, 8),
    await random(2, 5, 8),
    await random(24),
  ];
  const mask = new Tensor(
    [
      [1, 1, 1, 1, 0],
      [1, 1, 0, 0, 0],
    ],
    { dtype: "int32" },
  );
  const part = (x: Tensor, i: number): Tensor => heads(x.add(bias.shrink([[8 * i, 8 * i + 8]])), 2);
  const attnMask = mask.ne(0).reshape([2, 1, 1, 5]);
  const wanted = part(q, 0).scaledDotProductAttention(part(k, 1), part(v, 2), { attnMask });
  await agree(
    (await run("MultiHeadAttention", { q, k, v, bias, mask }, { num_heads: 2 }))[0],
    joined(wanted),
  );
  const [pk, pv] = [await random(2, 2, 4, 4), await random(2, 2, 4, 4)];
  const weights = { q, k, v, "-bias": none, "-mask": none, "-scores": none, pk, pv };
  const [y, nk] = await run("MultiHeadAttention", weights, { num_heads: 2 }, ["y", "nk", "nv"]);
  const [ak, av] = [pk.cat(heads(k, 2), 2), pv.cat(heads(v, 2), 2)];
  await agree(nk, ak);
  await agree(y, joined(heads(q, 2).scaledDotProductAttention(ak, av)));
});

test("Attention: weights of all three in one, causal", async () => {
  const [x, w, b] = [await random(1, 4, 6), await random(6, 18), await random(18)];
  const all = x.matmul(w).add(b);
  const [q, k, v] = [0, 1, 2].map((i) => heads(all.shrink([null, null, [6 * i, 6 * i + 6]]), 3)) as [
    Tensor,
    Tensor,
    Tensor,
  ];
  const [y, present] = await run("Attention", { x, w, b }, { num_heads: 3, unidirectional: 1 }, [
    "y",
    "present",
  ]);
  await agree(y, joined(q.scaledDotProductAttention(k, v, { isCausal: true })));
  await agree(present, Tensor.stack([k, v]));
});

test("GroupQueryAttention turns queries and keys by their positions", async () => {
  const [q, k, v] = [await random(1, 3, 8), await random(1, 3, 4), await random(1, 3, 4)];
  const [cos, sin] = [await random(16, 2), await random(16, 2)];
  const lengths = new Tensor([2], { dtype: "int32" });
  const total = new Tensor(3, { dtype: "int32" });
  const weights = { q, k, v, "-pk": none, "-pv": none, lengths, total, cos, sin };
  const attributes = { num_heads: 2, kv_num_heads: 1, do_rotary: 1 };
  const [y] = await run("GroupQueryAttention", weights, attributes, ["y", "nk", "nv"]);
  const turn = (x: Tensor): Tensor => {
    const [a, b] = x.split(2, 3) as [Tensor, Tensor];
    const [c, s] = [cos.shrink([[0, 3], null]), sin.shrink([[0, 3], null])];
    return a
      .mul(c)
      .sub(b.mul(s))
      .cat(a.mul(s).add(b.mul(c)), 3);
  };
  const wide = (x: Tensor): Tensor => x.expand([1, 2, 3, 4]);
  const wanted = turn(heads(q, 2)).scaledDotProductAttention(wide(turn(heads(k, 1))), wide(heads(v, 1)), {
    isCausal: true,
  });
  await agree(y, joined(wanted));
  const positions = new Tensor([0], { dtype: "int64" });
  await agree(
    (await run("RotaryEmbedding", { q, positions, cos, sin }, { num_heads: 2 }))[0],
    joined(turn(heads(q, 2))),
  );
});

test("MatMulNBits reads weights of 4 bits, with and without zero points", async () => {
  const x = await random(2, 32);
  const codes = Array.from({ length: 3 * 32 }, (_, i) => (i * 7) % 16);
  const bytes = Uint8Array.from(
    { length: 48 },
    (_, i) => (codes[2 * i] as number) | ((codes[2 * i + 1] as number) << 4),
  );
  const packed = new Tensor(bytes).reshape([3, 2, 8]);
  const scale = await Tensor.rand(6).realize();
  const values = new Tensor(codes, { dtype: "float32" }).reshape([3, 2, 16]);
  const attributes = { K: 32, N: 3, bits: 4, block_size: 16 };
  const product = (zero: Tensor | number): Tensor =>
    x.matmul(
      values
        .sub(zero)
        .mul(scale.reshape([3, 2, 1]))
        .reshape([3, 32]).T,
    );
  await agree((await run("MatMulNBits", { x, packed, scale }, attributes))[0], product(8));
  const zeros = new Tensor(Uint8Array.from([0x21, 0x43, 0x65]));
  const points = new Tensor([1, 2, 3, 4, 5, 6], { dtype: "float32" }).reshape([3, 2, 1]);
  await agree((await run("MatMulNBits", { x, packed, scale, zeros }, attributes))[0], product(points));
});

test("MultiHeadAttention: mask_filter_value is what hidden scores get", async () => {
  const [q, k, v] = [await random(1, 2, 4), await random(1, 3, 4), await random(1, 3, 4)];
  const mask = new Tensor([[0, 0, 0]], { dtype: "int32" });
  const ten = { num_heads: 1, mask_filter_value: -10 };
  const [all] = await run("MultiHeadAttention", { q, k, v, "-": none, mask }, ten);
  const scores = q.matmul(k.transpose(1, 2)).mul(0.5);
  // a constant that all scores get changes nothing
  await agree(all, scores.softmax(-1).matmul(v));
  const some = new Tensor([[1, 0, 1]], { dtype: "int32" });
  const attributes = { num_heads: 1, mask_filter_value: -1 };
  const [light] = await run("MultiHeadAttention", { q, k, v, "-": none, some }, attributes);
  await agree(
    light,
    scores
      .add(new Tensor([0, -1, 0]))
      .softmax(-1)
      .matmul(v),
  );
});

test("MultiHeadAttention reads queries, keys and values out of one tensor, or keys and values", async () => {
  const [q, k, v] = [await random(2, 2, 3, 4), await random(2, 2, 3, 4), await random(2, 2, 3, 4)];
  const side = (...parts: Tensor[]): Tensor => Tensor.stack(parts, 3).transpose(1, 2);
  const wanted = joined(q.scaledDotProductAttention(k, v));
  // [batch, heads, time, which, size] with time before heads
  const qkv = side(q, k, v);
  await agree((await run("MultiHeadAttention", { qkv }, { num_heads: 2 }))[0], wanted);
  const [kv, queries] = [side(k, v), joined(q)];
  await agree((await run("MultiHeadAttention", { queries, kv }, { num_heads: 2 }))[0], wanted);
});

test("GroupNorm and SkipGroupNorm: channels behind, SiLU", async () => {
  const [x, g, b, skip] = [await random(2, 3, 3, 4), await random(4), await random(4), await random(2, 4)];
  const normal = (y: Tensor): Tensor => y.movedim(3, 1).groupNorm(2, { weight: g, bias: b }).movedim(1, 3);
  const attributes = { groups: 2, activation: 1 };
  await agree((await run("GroupNorm", { x, g, b }, attributes))[0], normal(x).silu());
  const sum = x.add(skip.reshape([2, 1, 1, 4]));
  const [y, s] = await run("SkipGroupNorm", { x, g, b, skip }, { ...attributes, activation: 0 }, ["y", "s"]);
  await agree(s, sum);
  await agree(y, normal(sum));
});

test("BiasSplitGelu, BiasAdd", async () => {
  const [x, b, skip] = [await random(1, 2, 6), await random(6), await random(1, 2, 6)];
  const [left, right] = x.add(b).split(3, 2) as [Tensor, Tensor];
  await agree((await run("BiasSplitGelu", { x, b }, {}))[0], left.mul(right.gelu()));
  await agree((await run("BiasAdd", { x, b, skip }, {}))[0], x.add(b).add(skip));
});

test("QGemm and QLinearReduceMean on 8-bit numbers", async () => {
  const [a, b] = [
    new Tensor([[1, 2]], { dtype: "uint8" }),
    new Tensor(
      [
        [3, -1],
        [2, 4],
      ],
      { dtype: "int8" },
    ),
  ];
  const [half, one, two] = [0.5, 1, 2].map((x) => new Tensor(x)) as [Tensor, Tensor, Tensor];
  const zero = (dtype: "uint8" | "int8", x = 0): Tensor => new Tensor(x, { dtype });
  const weights = { a, half, az: zero("uint8", 1), b, two, bz: zero("int8") };
  // (a - 1) b, with a scale of 1/2 * 2
  await agree((await run("QGemm", weights, {}))[0], new Tensor([[2, 4]], { dtype: "float32" }));
  const x = new Tensor(
    [
      [2, 4],
      [6, 9],
    ],
    { dtype: "uint8" },
  );
  const mean = { x, half, xz: zero("uint8"), one, yz: zero("uint8", 3) };
  const [y] = await run("QLinearReduceMean", mean, { axes: [1], keepdims: 0 });
  // halves of 3 and 7.5: 1.5 and 3.75, rounded, and 3 more
  await agree(y, new Tensor([5, 7]));
});

test("GroupQueryAttention refuses what it does not do", async () => {
  const q = await random(1, 2, 8);
  const lengths = new Tensor([1], { dtype: "int32" });
  const total = new Tensor(2, { dtype: "int32" });
  const weights = { q, k: q, v: q, "-pk": none, "-pv": none, lengths, total };
  const heads2 = { num_heads: 2, kv_num_heads: 2 };
  await expect(run("GroupQueryAttention", weights, { ...heads2, sliding_window_cache: 1 })).rejects.toThrow(
    /sliding_window_cache/,
  );
  await expect(
    run("GroupQueryAttention", weights, { ...heads2, k_quant_type: "PER_TENSOR" }),
  ).rejects.toThrow(/few bits/);
  // weights of the norm of queries and keys: each head has the size that they say
  const names = ["cos", "sin", "at", "bias", "sink", "ks", "vs"].map((n) => [`-${n}`, none] as const);
  const unit = Tensor.ones([4]);
  const withNorm = { ...weights, ...Object.fromEntries(names), qn: unit, kn: unit };
  const rms = (x: Tensor): Tensor => x.mul(x.square().mean(-1, true).add(1e-6).rsqrt());
  const [y] = await run("GroupQueryAttention", withNorm, heads2);
  const part = heads(q, 2);
  await agree(y, joined(rms(part).scaledDotProductAttention(rms(part), part, { isCausal: true })));
});

test("weights in groups are refused, a table of 4 bits is gathered", async () => {
  const x = await random(1, 16);
  const bytes = new Tensor(Uint8Array.from({ length: 16 }, (_, i) => 16 * i + (15 - i))).reshape([2, 1, 8]);
  const scale = new Tensor([[1], [2]], { dtype: "float32" });
  const group = new Tensor(new Int32Array(16));
  const attributes = { K: 16, N: 2, bits: 4, block_size: 16 };
  const weights = { x, bytes, scale, "-zero": none, group };
  await expect(run("MatMulNBits", weights, attributes)).rejects.toThrow(/g_idx/);
  const data = bytes.reshape([2, 8]);
  const index = new Tensor([1], { dtype: "int64" });
  const [y] = await run("GatherBlockQuantized", { data, index, scale }, { block_size: 16 });
  const wanted = Array.from({ length: 16 }, (_, i) => {
    const byte = 8 + Math.floor(i / 2);
    return 2 * ((i % 2 === 0 ? 15 - byte : byte) - 8);
  });
  await agree(y, new Tensor([wanted], { dtype: "float32" }));
});
