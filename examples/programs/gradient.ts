// Functions with gradients of one's own, checked against finite differences; and one whose gradient is wrong.

import { func, Tensor } from "gradloom";

const points = Number(process.env.STEPS ?? 12);

/** x sigmoid(x), which keeps nothing but its input for the gradient. */
const swish = Tensor.custom<[Tensor]>({
  forward: (x) => x.mul(x.sigmoid()),
  backward: (gradient, [x]) => {
    const s = x.sigmoid();
    return gradient.mul(s.add(x.mul(s).mul(s.rsub(1))));
  },
});
/** The product of two tensors: a gradient for each. */
const product = Tensor.custom<[Tensor, Tensor]>({
  forward: (a, b) => a.mul(b),
  backward: (gradient, [a, b]) => [gradient.mul(b), gradient.mul(a)],
});
/** Rounds, and lets the gradient pass as if it did not. */
const round = Tensor.custom<[Tensor]>({ forward: (x) => x.round(), backward: (gradient) => gradient });
/** The factor 2 was forgotten. */
const wrong = Tensor.custom<[Tensor]>({
  forward: (x) => x.square(),
  backward: (gradient, [x]) => gradient.mul(x),
});

/** The largest difference of the gradient of `f` from central differences, for each input. */
async function check(f: (...inputs: Tensor[]) => Tensor, ...inputs: Tensor[]): Promise<number> {
  const eps = 1e-5;
  const gradients = func.grad((...xs) => f(...xs).sum(), inputs);
  let worst = 0;
  for (const [i, x] of inputs.entries()) {
    // one row for each element that is moved
    const steps = Tensor.eye(x.size, { dtype: "float64" }).mul(eps);
    const at = (sign: number): Tensor =>
      func.vmap((step) => {
        return f(
          ...inputs.map((input, j) => (i === j ? input.add(step.mul(sign).reshape(x.shape)) : input)),
        ).sum();
      })(steps);
    const numeric = at(1)
      .sub(at(-1))
      .div(2 * eps);
    worst = Math.max(worst, await numeric.sub(gradients[i]!.flatten()).abs().max().item());
  }
  return worst;
}

Tensor.manualSeed(0);
const [a, b] = [Tensor.randn([points], { dtype: "float64" }), Tensor.randn([points], { dtype: "float64" })];
const verdict = (off: number): string => (off < 1e-6 ? "right" : `off by ${off.toFixed(2)}`);
console.log(`swish: ${verdict(await check(swish, a))}`);
console.log(`product: ${verdict(await check(product, a, b))}`);
console.log(`wrong: ${verdict(await check(wrong, a))}`);

const second = func.hessian((x) => swish(x).sum(), a).diagonal();
const expected = func.hessian((x) => x.silu().sum(), a).diagonal();
console.log(`second derivatives are right: ${await second.allclose(expected).item<boolean>()}`);

const x = new Tensor([0.4, 1.6, 2.5], { requiresGrad: true });
round(x).square().sum().backward();
console.log(`straight through a rounding: ${JSON.stringify(await x.grad?.tolist())}`);
