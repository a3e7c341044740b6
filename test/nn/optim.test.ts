// Optimisers against plain-array versions of torch's formulas, step by step; parameter groups, schedules that
// compile nothing, memory that stays, and bad options.

import { Device, GlobalCounters, nn, Tensor, TinyJit } from "gradloom";
import { describe, expect, test, vi } from "vitest";
import { expectClose, matmul, numbers, rows, transpose } from "./close.ts";

const { optim } = nn;
type Vec = readonly number[];
/** One step in plain numbers: parameter and gradient in, parameter out; it keeps its own state. */
type Reference = (p: Vec, g: Vec, lr: number) => number[];

const zip = (a: Vec, b: Vec, f: (x: number, y: number) => number): number[] =>
  a.map((x, i) => f(x, b[i] as number));
const add = (a: Vec, b: Vec, by = 1): number[] => zip(a, b, (x, y) => x + by * y);
const norm = (a: Vec): number => Math.sqrt(a.reduce((s, x) => s + x * x, 0));

function sgd({ momentum = 0, dampening = 0, weightDecay = 0, nesterov = false } = {}): Reference {
  let buffer: Vec | undefined;
  return (p, g0, lr) => {
    let g: Vec = add(g0, p, weightDecay);
    if (momentum !== 0) {
      const old = buffer;
      buffer = old === undefined ? g : g.map((x, i) => momentum * (old[i] as number) + (1 - dampening) * x);
      g = nesterov ? add(g, buffer, momentum) : buffer;
    }
    return add(p, g, -lr);
  };
}

/** The bias-corrected update of Adam and LAMB. */
function moments([b1, b2]: Vec = [0.9, 0.999], eps = 1e-8, amsgrad = false) {
  let [m, v, most, t]: [Vec, Vec, Vec, number] = [[], [], [], 0];
  return (g: Vec): number[] => {
    t++;
    m = g.map((x, i) => (b1 as number) * (m[i] ?? 0) + (1 - (b1 as number)) * x);
    v = g.map((x, i) => (b2 as number) * (v[i] ?? 0) + (1 - (b2 as number)) * x * x);
    most = v.map((x, i) => (amsgrad ? Math.max(most[i] ?? 0, x) : x));
    return zip(
      m,
      most,
      (x, y) => x / (1 - (b1 as number) ** t) / (Math.sqrt(y / (1 - (b2 as number) ** t)) + eps),
    );
  };
}
function adam({
  betas = [0.9, 0.999],
  eps = 1e-8,
  weightDecay = 0,
  decoupled = false,
  amsgrad = false,
} = {}): Reference {
  const direction = moments(betas, eps, amsgrad);
  return (p, g, lr) => {
    const kept = decoupled ? p.map((x) => x * (1 - lr * weightDecay)) : p;
    return add(kept, direction(decoupled ? g : add(g, p, weightDecay)), -lr);
  };
}
function lamb({ weightDecay = 0 } = {}): Reference {
  const direction = moments([0.9, 0.999], 1e-6);
  return (p, g, lr) => {
    const d = add(direction(g), p, weightDecay);
    const trust = norm(p) > 0 && norm(d) > 0 ? norm(p) / norm(d) : 1;
    return add(p, d, -lr * trust);
  };
}
function lars({
  momentum = 0.9,
  weightDecay = 1e-4,
  nesterov = false,
  trust = 0.001,
  eps = 1e-8,
} = {}): Reference {
  let buffer: Vec | undefined;
  return (p, g, lr) => {
    const [w, n] = [norm(p), norm(g)];
    const scale = w > 0 && n > 0 ? (trust * w) / (n + weightDecay * w + eps) : 1;
    const d = add(g, p, weightDecay).map((x) => x * scale);
    const old = buffer ?? d.map(() => 0);
    const now = zip(old, d, (x, y) => momentum * x + y);
    buffer = now;
    return add(p, nesterov ? add(d, now, momentum) : now, -lr);
  };
}
function muon(width: number, { momentum = 0.95, nesterov = true, weightDecay = 0.1 } = {}): Reference {
  let buffer: Vec | undefined;
  const orthogonal = (g: Vec): number[] => {
    const n = Math.max(norm(g), 1e-7);
    let x = rows(g, width).map((r) => r.map((y) => y / n));
    const tall = x.length > width;
    if (tall) x = transpose(x);
    for (let i = 0; i < 5; i++) {
      const a = matmul(x, transpose(x));
      const aa = matmul(a, a);
      const b = a.map((r, k) =>
        add(
          r.map((y) => -4.775 * y),
          aa[k] as Vec,
          2.0315,
        ),
      );
      const bx = matmul(b, x);
      x = x.map((r, k) => add(bx[k] as Vec, r, 3.4445));
    }
    return (tall ? transpose(x) : x).flat();
  };
  return (p, g, lr) => {
    const old = buffer ?? g.map(() => 0);
    buffer = zip(old, g, (x, y) => momentum * x + (1 - momentum) * y);
    const d = nesterov ? zip(g, buffer, (x, y) => (1 - momentum) * x + momentum * y) : buffer;
    const scale = Math.sqrt(Math.max(1, p.length / width / width));
    return add(
      p.map((x) => x * (1 - lr * weightDecay)),
      orthogonal(d),
      -lr * scale,
    );
  };
}

function rmsprop({
  alpha = 0.99,
  eps = 1e-8,
  weightDecay = 0,
  momentum = 0,
  centered = false,
} = {}): Reference {
  let [square, mean, buffer]: [Vec, Vec, Vec] = [[], [], []];
  return (p, g0, lr) => {
    const g = add(g0, p, weightDecay);
    square = g.map((x, i) => alpha * (square[i] ?? 0) + (1 - alpha) * x * x);
    mean = g.map((x, i) => alpha * (mean[i] ?? 0) + (1 - alpha) * x);
    const size = zip(square, mean, (x, y) => Math.sqrt(centered ? x - y * y : x) + eps);
    const d = zip(g, size, (x, y) => x / y);
    buffer = d.map((x, i) => momentum * (buffer[i] ?? 0) + x);
    return add(p, buffer, -lr);
  };
}
function adagrad({ lrDecay = 0, weightDecay = 0, first = 0, eps = 1e-10 } = {}): Reference {
  let [sum, t]: [Vec, number] = [[], 0];
  return (p, g0, lr) => {
    const g = add(g0, p, weightDecay);
    sum = g.map((x, i) => (sum[i] ?? first) + x * x);
    const rate = lr / (1 + t++ * lrDecay);
    return add(
      p,
      zip(g, sum, (x, y) => x / (Math.sqrt(y) + eps)),
      -rate,
    );
  };
}
function adadelta({ rho = 0.9, eps = 1e-6, weightDecay = 0 } = {}): Reference {
  let [square, moved]: [Vec, Vec] = [[], []];
  return (p, g0, lr) => {
    const g = add(g0, p, weightDecay);
    square = g.map((x, i) => rho * (square[i] ?? 0) + (1 - rho) * x * x);
    const d = g.map(
      (x, i) => (Math.sqrt((moved[i] ?? 0) + eps) / Math.sqrt((square[i] as number) + eps)) * x,
    );
    moved = d.map((x, i) => rho * (moved[i] ?? 0) + (1 - rho) * x * x);
    return add(p, d, -lr);
  };
}
function nadam({ betas = [0.9, 0.999], weightDecay = 0, momentumDecay = 4e-3, decoupled = false } = {}) {
  const [b1, b2] = betas as [number, number];
  let [m, v, t, product]: [Vec, Vec, number, number] = [[], [], 0, 1];
  const mu = (step: number): number => b1 * (1 - 0.5 * 0.96 ** (step * momentumDecay));
  return (p: Vec, g0: Vec, lr: number): number[] => {
    t++;
    const g = decoupled ? g0 : add(g0, p, weightDecay);
    product *= mu(t);
    m = g.map((x, i) => b1 * (m[i] ?? 0) + (1 - b1) * x);
    v = g.map((x, i) => b2 * (v[i] ?? 0) + (1 - b2) * x * x);
    const now = (1 - mu(t)) / (1 - product);
    const later = mu(t + 1) / (1 - product * mu(t + 1));
    return p.map((x, i) => {
      const size = Math.sqrt((v[i] as number) / (1 - b2 ** t)) + 1e-8;
      const kept = decoupled ? x * (1 - lr * weightDecay) : x;
      return kept - (lr * (now * (g[i] as number) + later * (m[i] as number))) / size;
    });
  };
}

/** Six steps with arbitrary gradients; the rate is halved on the way. */
async function follow(
  make: (p: Tensor) => nn.optim.Optimizer,
  reference: Reference,
  shape: number[],
  start?: Vec,
) {
  const random = numbers(7);
  const n = shape.reduce((a, b) => a * b, 1);
  let p: Vec = (start ?? random(n)).map(Math.fround);
  const t = new Tensor(Float32Array.from(p), { requiresGrad: true }).reshape(shape).detach();
  t.requiresGrad = true;
  const opt = make(t);
  for (let i = 0; i < 6; i++) {
    if (i === 3) opt.lr /= 2;
    const g = random(n).map(Math.fround);
    opt.zeroGrad();
    t.mul(new Tensor(Float32Array.from(g)).reshape(shape))
      .sum()
      .backward();
    await opt.step();
    p = reference(p, g, opt.lr);
    await expectClose(t, p, 2e-5);
  }
}

describe("as torch does it", () => {
  const lr = 0.05;
  const cases: [string, (p: Tensor) => nn.optim.Optimizer, Reference][] = [
    ["SGD", (p) => new optim.SGD([p], { lr }), sgd()],
    ["SGD with weight decay", (p) => new optim.SGD([p], { lr, weightDecay: 0.1 }), sgd({ weightDecay: 0.1 })],
    ["SGD with momentum", (p) => new optim.SGD([p], { lr, momentum: 0.9 }), sgd({ momentum: 0.9 })],
    [
      "SGD with dampened momentum",
      (p) => new optim.SGD([p], { lr, momentum: 0.9, dampening: 0.3, weightDecay: 0.1 }),
      sgd({ momentum: 0.9, dampening: 0.3, weightDecay: 0.1 }),
    ],
    [
      "SGD, Nesterov",
      (p) => new optim.SGD([p], { lr, momentum: 0.9, nesterov: true, weightDecay: 0.01 }),
      sgd({ momentum: 0.9, nesterov: true, weightDecay: 0.01 }),
    ],
    ["Adam", (p) => new optim.Adam([p], { lr }), adam()],
    [
      "Adam with weight decay",
      (p) => new optim.Adam([p], { lr, weightDecay: 0.1, betas: [0.8, 0.95], eps: 1e-3 }),
      adam({ weightDecay: 0.1, betas: [0.8, 0.95], eps: 1e-3 }),
    ],
    ["AdamW", (p) => new optim.AdamW([p], { lr }), adam({ weightDecay: 0.01, decoupled: true })],
    // a small beta2, so that the mean square falls below its largest value so far
    [
      "Adam with amsgrad",
      (p) => new optim.Adam([p], { lr, amsgrad: true, betas: [0.9, 0.3] }),
      adam({ amsgrad: true, betas: [0.9, 0.3] }),
    ],
    [
      "AdamW with amsgrad",
      (p) => new optim.AdamW([p], { lr, amsgrad: true, betas: [0.9, 0.3] }),
      adam({ amsgrad: true, betas: [0.9, 0.3], weightDecay: 0.01, decoupled: true }),
    ],
    ["RMSprop", (p) => new optim.RMSprop([p], { lr }), rmsprop()],
    [
      "RMSprop, centered, with momentum and weight decay",
      (p) =>
        new optim.RMSprop([p], {
          lr,
          alpha: 0.9,
          momentum: 0.8,
          weightDecay: 0.1,
          centered: true,
          eps: 1e-4,
        }),
      rmsprop({ alpha: 0.9, momentum: 0.8, weightDecay: 0.1, centered: true, eps: 1e-4 }),
    ],
    ["Adagrad", (p) => new optim.Adagrad([p], { lr }), adagrad()],
    [
      "Adagrad with decays and a first sum",
      (p) =>
        new optim.Adagrad([p], {
          lr,
          lrDecay: 0.3,
          weightDecay: 0.1,
          initialAccumulatorValue: 0.5,
          eps: 1e-3,
        }),
      adagrad({ lrDecay: 0.3, weightDecay: 0.1, first: 0.5, eps: 1e-3 }),
    ],
    ["Adadelta", (p) => new optim.Adadelta([p]), adadelta()],
    [
      "Adadelta with weight decay",
      (p) => new optim.Adadelta([p], { lr: 0.5, rho: 0.8, weightDecay: 0.1, eps: 1e-3 }),
      adadelta({ rho: 0.8, weightDecay: 0.1, eps: 1e-3 }),
    ],
    ["NAdam", (p) => new optim.NAdam([p], { lr }), nadam()],
    [
      "NAdam with weight decay",
      (p) => new optim.NAdam([p], { lr, weightDecay: 0.1, betas: [0.8, 0.95], momentumDecay: 0.5 }),
      nadam({ weightDecay: 0.1, betas: [0.8, 0.95], momentumDecay: 0.5 }),
    ],
    [
      "NAdam with decoupled weight decay",
      (p) => new optim.NAdam([p], { lr, weightDecay: 0.1, decoupledWeightDecay: true }),
      nadam({ weightDecay: 0.1, decoupled: true }),
    ],
    ["LAMB", (p) => new optim.LAMB([p], { lr }), lamb()],
    [
      "LAMB with weight decay",
      (p) => new optim.LAMB([p], { lr, weightDecay: 0.1 }),
      lamb({ weightDecay: 0.1 }),
    ],
    ["LARS", (p) => new optim.LARS([p], { lr: 50 * lr }), lars()],
    ["LARS, Nesterov", (p) => new optim.LARS([p], { lr: 50 * lr, nesterov: true }), lars({ nesterov: true })],
  ];
  test.each(cases)("%s", (_, make, reference) => follow(make, reference, [2, 3]));

  test("a parameter of zeros has no norm to scale by", async () => {
    await follow((p) => new optim.LAMB([p], { lr }), lamb(), [3], [0, 0, 0]);
    await follow((p) => new optim.LARS([p], { lr }), lars(), [3], [0, 0, 0]);
  });
  test("a scalar parameter", () => follow((p) => new optim.Adam([p], { lr }), adam(), []));
  test.each([
    [[3, 4], 4],
    [[5, 2], 2],
    [[4, 2, 1, 2], 4],
  ])("Muon on %j", (shape, width) => follow((p) => new optim.Muon([p], { lr }), muon(width), shape));
  test("Muon makes a matrix approximately orthogonal", async () => {
    const p = new Tensor(rows(numbers(3)(24), 6), { requiresGrad: true });
    const opt = new optim.Muon([p], { lr: 1, weightDecay: 0 });
    const before = (await p.tolist()) as number[][];
    p.square().sum().backward();
    await opt.step();
    const step = ((await p.tolist()) as number[][]).map((r, i) => add(r, before[i] as Vec, -1));
    const gram = matmul(step, transpose(step));
    const far = gram.flatMap((r, i) => r.map((x, j) => Math.abs(x - (i === j ? 1 : 0))));
    expect(Math.max(...far)).toBeLessThan(0.5);
  });

  test("float16 parameters: state in float32, small steps are not lost", async () => {
    const p = new Tensor([1, 2], { dtype: "float16", requiresGrad: true });
    const opt = new optim.Adam([p], { lr: 0.1 });
    p.mul(new Tensor([1e-4, 1], { dtype: "float16" }))
      .sum()
      .backward();
    await opt.step();
    expect(p.dtype.name).toBe("float16");
    expect(opt.state[0]?.v?.dtype.name).toBe("float32");
    await expectClose(p, [0.9, 1.9], 1e-3);
  });
  test("float64 parameters keep their precision", async () => {
    const p = new Tensor([1], { dtype: "float64", requiresGrad: true });
    const opt = new optim.SGD([p], { lr: 0.1 });
    p.sum().backward();
    await opt.step();
    expect(await p.tolist()).toEqual([0.9]);
  });
});

const param = (...xs: number[]) => new Tensor(Float32Array.from(xs), { requiresGrad: true });

describe("groups and gradients", () => {
  test("groups have options of their own", async () => {
    const [a, b, c] = [param(1), param(1), param(1)];
    const opt = new optim.SGD([{ params: [a] }, { params: [b, c], lr: 0.5, weightDecay: 1 }], { lr: 0.1 });
    a.add(b).add(c).sum().backward();
    await opt.step();
    await expectClose(a, [0.9]);
    await expectClose(b, [0]);
    await expectClose(c, [0]);
    expect(opt.groups.map((g) => g.lr)).toEqual([0.1, 0.5]);
    opt.lr = 0.2;
    expect(opt.groups.map((g) => g.lr)).toEqual([0.2, 0.2]);
  });
  test("a parameter without a gradient skips the step, and its own count continues where it was", async () => {
    const [a, b] = [param(1, 2), param(1, 2)];
    const opt = new optim.Adam([a, b], { lr: 0.1 });
    const [ra, rb] = [adam(), adam()];
    let [pa, pb]: [Vec, Vec] = [
      [1, 2],
      [1, 2],
    ];
    for (const who of ["ab", "a", "b", "ab", "b", "a"]) {
      opt.zeroGrad();
      const used = [who.includes("a") ? [a.square()] : [], who.includes("b") ? [b.square()] : []].flat();
      used
        .reduce((x, y) => x.add(y))
        .sum()
        .backward();
      await opt.step();
      if (who.includes("a"))
        pa = ra(
          pa,
          pa.map((x) => 2 * x),
          0.1,
        );
      if (who.includes("b"))
        pb = rb(
          pb,
          pb.map((x) => 2 * x),
          0.1,
        );
      await expectClose(a, pa);
      await expectClose(b, pb);
    }
  });
  test("NAdam and Adagrad count the steps of each parameter", async () => {
    const cases: [(ps: Tensor[]) => nn.optim.Optimizer, () => Reference][] = [
      [(ps) => new optim.NAdam(ps, { lr: 0.1 }), nadam],
      [(ps) => new optim.Adagrad(ps, { lr: 0.1, lrDecay: 1 }), () => adagrad({ lrDecay: 1 })],
    ];
    for (const [make, reference] of cases) {
      const ps = [param(1, 2), param(1, 2)];
      const opt = make(ps);
      const refs = [reference(), reference()];
      const values: Vec[] = [
        [1, 2],
        [1, 2],
      ];
      for (const used of [[0, 1], [0], [1], [0, 1]]) {
        opt.zeroGrad();
        for (const i of used) (ps[i] as Tensor).grad = param(0.5, -1).detach();
        await opt.step();
        for (const i of used) values[i] = (refs[i] as Reference)(values[i] as Vec, [0.5, -1], 0.1);
        for (const i of [0, 1]) await expectClose(ps[i] as Tensor, values[i] as Vec);
      }
    }
  });
  test("RMSprop, centered: a constant gradient gives no NaN", async () => {
    const p = param(1);
    const opt = new optim.RMSprop([p], { lr: 0.01, alpha: 0.5, centered: true, eps: 1e-3 });
    for (let i = 0; i < 60; i++) {
      p.grad = param(0.3).detach();
      await opt.step();
    }
    expect(await p.item()).toBeLessThan(1);
  });
  test("gradients add up until zeroGrad", async () => {
    const p = param(1);
    const opt = new optim.SGD([p], { lr: 0.1 });
    p.sum().backward();
    p.mul(2).sum().backward();
    await opt.step();
    await expectClose(p, [0.7]);
    await expectClose(p.grad as Tensor, [3]);
    opt.zeroGrad();
    expect(p.grad).toBeUndefined();
    await expect(opt.step()).rejects.toThrow(
      /SGD\.step: no parameter has a gradient; call loss\.backward\(\) first/,
    );
  });
  test("a loss that was not read before the step keeps its value", async () => {
    const p = param(3);
    const opt = new optim.SGD([p], { lr: 0.1 });
    const loss = p.square().sum();
    loss.backward();
    await opt.step();
    expect(await loss.item()).toBe(9);
  });
  test("clipGradNorm scales all gradients to one norm", async () => {
    const [a, b] = [param(1), param(1, 1)];
    a.mul(3)
      .sum()
      .add(b.mul(new Tensor([4, 12])).sum())
      .backward();
    const total = optim.clipGradNorm([a, b], 6.5);
    await expectClose(total, 13);
    await expectClose(a.grad as Tensor, [1.5]);
    await expectClose(b.grad as Tensor, [2, 6]);
    await expectClose(optim.clipGradNorm([a, b], 100), 6.5);
    await expectClose(a.grad as Tensor, [1.5]);
  });
  test("the state is saved and loaded like that of a model", async () => {
    const make = () => {
      const p = param(1, -2);
      return { p, opt: new optim.Adam([p], { lr: 0.1 }) };
    };
    const run = async ({ p, opt }: ReturnType<typeof make>, steps: number) => {
      for (let i = 0; i < steps; i++) {
        opt.zeroGrad();
        p.square().sum().backward();
        await opt.step();
      }
    };
    const [whole, first, second] = [make(), make(), make()];
    await run(whole, 5);
    await run(first, 3);
    const saved = await nn.safeSave({ p: first.p, ...nn.getStateDict(first.opt, "opt") });
    await nn.loadStateDict({ p: second.p, opt: second.opt }, await nn.safeLoad(saved));
    await run(second, 2);
    expect(await second.p.tolist()).toEqual(await whole.p.tolist());
  });
});

describe("memory, kernels, compilation", () => {
  const train = async (opt: nn.optim.Optimizer, ...ps: Tensor[]) => {
    opt.zeroGrad();
    ps.map((p) => p.square().sum())
      .reduce((a, b) => a.add(b))
      .backward();
    await opt.step();
  };

  test.each(["SGD", "Adam", "AdamW", "LAMB", "LARS", "RMSprop", "Adagrad", "Adadelta", "NAdam"] as const)(
    "%s writes to the same memory",
    async (name) => {
      const p = param(1, 2, 3);
      const opt = new optim[name]([p], { lr: 0.1, ...(name === "SGD" && { momentum: 0.9 }) });
      await train(opt, p);
      const tensors = [p, ...Object.values(opt.state[0] ?? {})];
      const buffers = tensors.map((t) => t.lazydata.base.buffer);
      for (let i = 0; i < 3; i++) await train(opt, p);
      expect(tensors.map((t) => t.lazydata.base.buffer)).toEqual(buffers);
      tensors.forEach((t, i) => void expect(t.lazydata.base.buffer).toBe(buffers[i]));
    },
  );

  test("the number of kernels of a step", async () => {
    const count = async (make: (ps: Tensor[]) => nn.optim.Optimizer, n: number) => {
      const ps = Array.from({ length: n }, (_, i) => param(...numbers(i)(i + 2)));
      const opt = make(ps);
      const step = async () => {
        for (const p of ps) p.grad = new Tensor(Float32Array.from(numbers(5)(p.size)));
        await opt.step();
      };
      for (let i = 0; i < 2; i++) await step();
      const before = GlobalCounters.kernelCount;
      await step();
      return GlobalCounters.kernelCount - before;
    };
    // the parameter
    expect(await count((ps) => new optim.SGD(ps, { lr: 0.1, weightDecay: 0.1 }), 1)).toBe(1);
    // the momentum and the parameter run over the same elements: one kernel writes both
    expect(await count((ps) => new optim.SGD(ps, { lr: 0.1, momentum: 0.9 }), 1)).toBe(1);
    // so do m, v and the parameter; and the two corrections, in one kernel for all parameters
    expect(await count((ps) => new optim.Adam(ps), 1)).toBe(1 + 1);
    expect(await count((ps) => new optim.AdamW(ps), 5)).toBe(5 + 1);
    // m and v; the two norms, one of them taken in the kernel that writes the parameter; the corrections
    expect(await count((ps) => new optim.LAMB(ps), 1)).toBe(3 + 1);
  });

  test("after the first step, neither steps nor new rates compile anything", async () => {
    const device = await Device.open("WASM");
    const compile = vi.spyOn(device, "compile");
    const p = param(1, 2, 3, 4, 5);
    const opt = new optim.AdamW([p], { lr: 0.1 });
    const schedule = new optim.CosineAnnealingLR(opt, { tMax: 50 });
    await train(opt, p);
    schedule.step();
    await train(opt, p); // writes the first new rate
    compile.mockClear();
    for (let i = 0; i < 5; i++) {
      schedule.step();
      await train(opt, p);
    }
    expect(compile).not.toHaveBeenCalled();
    compile.mockRestore();
    expect(schedule.lr).toBeCloseTo(0.05 * (1 + Math.cos((6 * Math.PI) / 50)), 12);
  });
});

describe("schedules", () => {
  test("rules by themselves: stepDecay and oneCycle", () => {
    const decay = optim.stepDecay({ size: 3, gamma: 0.5 });
    expect([0, 2, 3, 5, 6].map((step) => decay(step, 8))).toEqual([8, 8, 4, 4, 2]);
    const cycle = optim.oneCycle({ maxLr: 1, totalSteps: 5, pctStart: 0.6, annealStrategy: "linear" });
    expect([0, 1, 2].map((step) => cycle(step, 7))).toEqual([0.04, 0.52, 1]);
    expect(() => cycle(6, 7)).toThrow("oneCycle: step 6 is after the last of 5 steps");
    expect(() => optim.stepDecay({ size: 0 })).toThrow("stepDecay");
  });
  test("the rate of a ParamGroup as kernels read it: on the device and in the type of each parameter", async () => {
    const [a, b] = [Tensor.ones(2), Tensor.ones(2, { dtype: "float64", device: "JS" })];
    for (const t of [a, b]) t.requiresGrad = true;
    const [group] = new optim.SGD([a, b], { lr: 0.25 }).groups;
    expect(group).toBeInstanceOf(optim.ParamGroup);
    const rates = [a, b].map((t) => group?.lrFor(t) as Tensor);
    expect(rates.map(String)).toEqual(["<Tensor [] float32 on WASM>", "<Tensor [] float64 on JS>"]);
    for (const rate of rates) expect(await rate.item()).toBe(0.25);
  });
  const rates = (make: (o: nn.optim.SGD) => nn.optim.LRScheduler, n: number, lr = 1) => {
    const s = make(new optim.SGD([param(1)], { lr }));
    return Array.from({ length: n }, () => {
      const now = s.lr;
      s.step();
      return Number(now.toPrecision(6));
    });
  };
  test("cosine", () => {
    expect(rates((o) => new optim.CosineAnnealingLR(o, { tMax: 4, etaMin: 0.2 }), 5)).toEqual([
      1, 0.882843, 0.6, 0.317157, 0.2,
    ]);
  });
  test("step", () => {
    expect(rates((o) => new optim.StepLR(o, { stepSize: 2 }), 6)).toEqual([1, 1, 0.1, 0.1, 0.01, 0.01]);
  });
  test("linear warm-up", () => {
    expect(rates((o) => new optim.LinearLR(o, { startFactor: 0.25, totalIters: 3 }), 5, 2)).toEqual([
      0.5, 1, 1.5, 2, 2,
    ]);
    expect(rates((o) => new optim.LRScheduler(o, optim.warmup(4)), 6)).toEqual([0.25, 0.5, 0.75, 1, 1, 1]);
    const both = optim.warmup(2, optim.cosine({ steps: 2 }));
    expect(rates((o) => new optim.LRScheduler(o, both), 5)).toEqual([0.5, 1, 1, 0.5, 0]);
  });
  test("one cycle, as torch computes it", () => {
    // max 1, 10 steps, 30 % up: from 1/25 at step 0 to 1 at step 2, then down to 1/250,000 at step 9
    const expected = [0.04, 0.52, 1, 0.950485, 0.811746, 0.611262, 0.388742, 0.188258, 0.0495194, 0.000004];
    expect(rates((o) => new optim.OneCycleLR(o, { maxLr: 1, totalSteps: 10 }), 10)).toEqual(expected);
    const straight = {
      maxLr: 1,
      totalSteps: 5,
      pctStart: 0.6,
      annealStrategy: "linear",
      finalDivFactor: 1,
    } as const;
    expect(rates((o) => new optim.OneCycleLR(o, straight), 5)).toEqual([0.04, 0.52, 1, 0.52, 0.04]);
    expect(() => rates((o) => new optim.OneCycleLR(o, { maxLr: 1, totalSteps: 3 }), 6)).toThrow(
      /is after the last/,
    );
  });
  test("a custom factor; every group keeps its own rate; a scheduler can be resumed", () => {
    const opt = new optim.SGD([{ params: [param(1)] }, { params: [param(2)], lr: 4 }], { lr: 1 });
    const s = new optim.LambdaLR(opt, (i) => 0.5 ** i);
    s.step();
    expect(opt.groups.map((g) => g.lr)).toEqual([0.5, 2]);
    const again = new optim.SGD([param(1)], { lr: 1 });
    expect(new optim.LambdaLR(again, (i) => 0.5 ** i, s.lastStep).lr).toBe(0.5);
  });
});

describe("bad options", () => {
  const p = () => param(1);
  const cases: [string, () => unknown, RegExp][] = [
    ["no parameters", () => new optim.Adam([]), /Adam: got no parameters; give a model or its tensors/],
    ["a negative rate", () => new optim.SGD([p()], { lr: -1 }), /SGD: lr is -1, expected a number from 0/],
    ["a rate that is not a number", () => new optim.SGD([p()], { lr: Number.NaN }), /lr is NaN/],
    ["a beta of 1", () => new optim.Adam([p()], { betas: [0.9, 1] }), /Adam: betas is 1/],
    ["nesterov alone", () => new optim.SGD([p()], { nesterov: true }), /nesterov needs a momentum/],
    ["an integer", () => new optim.SGD([new Tensor([1])]), /int32 cannot be trained/],
    [
      "no gradient wanted",
      () => new optim.SGD([new Tensor([1.5])]),
      /shape \[1\] and dtype float32 gets no gradient/,
    ],
    ["a computed tensor", () => new optim.SGD([p().mul(2)]), /was computed from others/],
    [
      "a vector for Muon",
      () => new optim.Muon([p()]),
      /Muon: a parameter has shape \[1\], expected at least two dims/,
    ],
    ["no steps", () => optim.cosine({ steps: 0 }), /cosine: steps is 0/],
    ["clipping nothing", () => optim.clipGradNorm([p()], 1), /no parameter has a gradient/],
  ];
  test.each(cases)("%s", (_, make, message) => {
    expect(make).toThrow(message);
  });
  test("a parameter twice", () => {
    const twice = p();
    expect(() => new optim.SGD([{ params: [twice] }, { params: [twice] }])).toThrow(/is given twice/);
  });
});

describe("a step that is not awaited", () => {
  const step = (model: nn.Linear, opt: nn.optim.Optimizer, x: Tensor): Promise<void> => {
    const loss = model.forward(x).square().mean();
    opt.zeroGrad();
    loss.backward();
    return opt.step(loss);
  };
  /** Weights after some steps, and the number of kernels. */
  async function trained(awaited: boolean, make: (params: Tensor[]) => nn.optim.Optimizer) {
    Tensor.manualSeed(5);
    const model = new nn.Linear(3, 2);
    const opt = make(nn.getParameters(model));
    const x = await new Tensor(
      [
        [1, 2, 3],
        [4, 5, 7],
      ],
      { dtype: "float32" },
    ).realize();
    GlobalCounters.reset();
    for (let i = 0; i < 6; i++) {
      const done = step(model, opt, x);
      if (awaited) await done;
    }
    const weight = await model.weight.tolist();
    return { weight, kernels: GlobalCounters.kernelCount };
  }
  test.each([
    ["Adam", (p: Tensor[]) => new optim.Adam(p, { lr: 0.1 })],
    ["SGD", (p: Tensor[]) => new optim.SGD(p, { lr: 0.01, momentum: 0.9 })],
    ["LAMB", (p: Tensor[]) => new optim.LAMB(p, { lr: 0.1 })],
  ] as const)("%s trains as one that is, with the same kernels", async (_, make) => {
    expect(await trained(false, make)).toEqual(await trained(true, make));
  });
  test("inside a jit", async () => {
    const weights = async (awaited: boolean) => {
      Tensor.manualSeed(6);
      const model = new nn.Linear(3, 2);
      const opt = new optim.Adam(nn.getParameters(model), { lr: 0.1 });
      const x = await new Tensor([[1, 2, 3]], { dtype: "float32" }).realize();
      const jitted = new TinyJit(async () => {
        const done = step(model, opt, x);
        if (awaited) await done;
      });
      for (let i = 0; i < 5; i++) await jitted();
      return model.weight.tolist();
    };
    expect(await weights(false)).toEqual(await weights(true));
  });
  test("updates memory in place from the first step on", async () => {
    const w = Tensor.uniform([4], 0, 1, { requiresGrad: true });
    const opt = new optim.SGD([w], { lr: 0.1 });
    w.square().sum().backward();
    const done = opt.step();
    const { buffer } = w.lazydata.base;
    await done;
    opt.zeroGrad();
    w.square().sum().backward();
    await opt.step();
    expect(w.lazydata.base.buffer).toBe(buffer);
  });
});
