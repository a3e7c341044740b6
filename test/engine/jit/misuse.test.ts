// Ways to misuse TinyJit: each is refused with a message that says what is wrong and what to do, where
// possible with the line; none is replayed with a stale value, and none leaves the program in a state
// in which nothing works any more.

import { DeviceError, JitError, nn, StaleError, Tensor, TinyJit, Variable } from "gradloom";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const x2 = (a: number, b: number): Tensor => new Tensor([a, b]);
const floats = (...xs: number[]): Tensor => new Tensor(xs, { dtype: "float32" });

/** Calls until something is refused: which call it was, and the error. */
async function refused(
  call: (i: number) => Promise<unknown>,
  most = 5,
): Promise<{ call: number; error: Error }> {
  for (let i = 0; i < most; i++) {
    try {
      await call(i);
    } catch (error) {
      return { call: i, error: error as Error };
    }
  }
  throw new Error(`nothing was refused in ${most} calls`);
}
interface Case {
  readonly make: () => (i: number) => Promise<unknown>;
  readonly message: RegExp;
  /** the call that is refused */
  readonly at: number;
  readonly error?: new (message: string) => Error;
}

beforeEach(() => Tensor.manualSeed(1));
afterEach(async () => {
  Tensor.training = undefined;
  // whatever was refused, the rest works
  expect(await x2(1, 2).dot(x2(3, 4)).item()).toBe(11);
  const f = new TinyJit((x: Tensor) => x.add(1));
  for (let i = 0; i < 3; i++) expect(await (await f(x2(i, 0))).tolist()).toEqual([i + 1, 1]);
});

const HOST =
  /a value was read on the host inside a jitted function \(at .*misuse\.test\.ts:\d+:\d+\).*read it outside/;

const readBy = (method: string): RegExp => new RegExp(`^${method}: ${HOST.source}`);

const HOST_VALUES: Record<string, Case> = {
  "item() inside": {
    make: () => {
      const f = new TinyJit(async (x: Tensor) => x.mul(await x.sum().item()));
      return () => f(x2(1, 2));
    },
    message: readBy("item"),
    at: 0,
  },
  "itemSync() inside": {
    make: () => {
      const f = new TinyJit((x: Tensor) => x.mul(x.sum().itemSync()));
      return () => f(x2(1, 2));
    },
    message: readBy("itemSync"),
    at: 0,
  },
  "tolist() inside": {
    make: () => {
      const f = new TinyJit(async (x: Tensor) => [x.add(1), await x.tolist()]);
      return () => f(x2(1, 2));
    },
    message: readBy("tolist"),
    at: 0,
  },
  "tolistSync() inside": {
    make: () => {
      const f = new TinyJit((x: Tensor) => [x.add(1), x.tolistSync()]);
      return () => f(x2(1, 2));
    },
    message: readBy("tolistSync"),
    at: 0,
  },
  "a decision on what data() gave": {
    make: () => {
      const f = new TinyJit(async (x: Tensor) => {
        const data = await x.sum().data();
        return (data[0] as number) > 1 ? x.add(1) : x.sub(1);
      });
      return () => f(x2(1, 2));
    },
    message: HOST,
    at: 0,
  },
  "a loop over what data() gave": {
    make: () => {
      const f = new TinyJit(async (x: Tensor) => {
        let y = x;
        for (const v of await x.data()) y = y.add(Number(v));
        return y;
      });
      return () => f(x2(1, 2));
    },
    message: HOST,
    at: 0,
  },
  "a spread of what data() gave": {
    make: () => {
      const f = new TinyJit(async (x: Tensor) => [...(await x.add(1).data())]);
      return () => f(x2(1, 2));
    },
    message: HOST,
    at: 0,
  },
  "an op whose shape depends on values": {
    make: () => {
      const f = new TinyJit((x: Tensor) => x.nonzero());
      return () => f(x2(1, 0));
    },
    message: /^nonzero: a value was read on the host inside a jitted function/,
    at: 0,
  },
};

const INPUTS: Record<string, Case> = {
  "nothing to capture": {
    make: () => {
      const f = new TinyJit((x: Tensor) => x);
      return () => f(x2(1, 2));
    },
    message: /didn't JIT anything!/,
    at: 1,
  },
  "an input that is never used": {
    make: () => {
      const f = new TinyJit((x: Tensor, _: { rest: Tensor[] }) => x.add(1));
      return () => f(x2(1, 2), { rest: [x2(3, 4)] });
    },
    message: /input 1\.rest\[0\] is never used by what was captured/,
    at: 1,
  },
  "another shape": {
    make: () => {
      const f = new TinyJit((x: Tensor) => x.add(1));
      return (i) => f(i < 2 ? x2(1, 2) : new Tensor([1, 2, 3]));
    },
    message:
      /mismatch of inputs: input 0: expected shape \[2\], got shape \[3\]; leave .* last batch out \(dropLast\)/,
    at: 2,
  },
  "another number of dims": {
    make: () => {
      const f = new TinyJit((x: Tensor, y: Tensor) => x.add(y));
      return (i) => f(x2(1, 2), i < 2 ? x2(1, 2) : new Tensor([[1, 2]]));
    },
    message: /input 1: expected shape \[2\], got shape \[1, 2\]/,
    at: 2,
  },
  "another dtype": {
    make: () => {
      const f = new TinyJit((x: Tensor) => x.add(1));
      return (i) => f(i < 2 ? x2(1, 2) : floats(1, 2));
    },
    message: /input 0: expected dtype int32, got dtype float32; cast it/,
    at: 2,
  },
  "another device": {
    make: () => {
      const f = new TinyJit((x: Tensor) => x.add(1));
      return (i) => f(i < 2 ? x2(1, 2) : x2(1, 2).to("JS"));
    },
    message: /input 0: expected device WASM, got device JS; move it with to\(\)/,
    at: 2,
  },
  "another layout": {
    make: () => {
      const f = new TinyJit((x: Tensor) => x.add(1));
      const x = Tensor.rand(3, 3);
      return (i) => f(i < 2 ? x : x.T);
    },
    message:
      /input 0: expected shape \[3, 3\] laid out as .*, got shape \[3, 3\] laid out as .*strides=\[1, 3\].*contiguous\(\)/,
    at: 2,
  },
  "another offset": {
    make: () => {
      const f = new TinyJit((x: Tensor) => x.add(1));
      const x = new Tensor([1, 2, 3, 4]);
      return (i) => f(x.shrink([[i < 2 ? 0 : i, (i < 2 ? 0 : i) + 2]]));
    },
    message: /input 0: expected .* laid out as .*, got .*offset=2.*contiguous\(\)/,
    at: 2,
  },
  "a part where there was a whole": {
    make: () => {
      const f = new TinyJit((x: Tensor) => x.to("JS").add(1));
      return (i) => f(i < 2 ? x2(1, 2) : new Tensor([1, 2, 3]).shrink([[0, 2]]));
    },
    message:
      /input 0: expected shape \[2\] in memory of 2 elements, got shape \[2\] in memory of 3 elements, and the function copies it or assigns to it; pass x\.clone\(\)/,
    at: 2,
  },
  "a part where there was a whole, which is assigned to": {
    make: () => {
      const f = new TinyJit((x: Tensor) => x.assign(x.add(1)).sum());
      return async (i) =>
        f(
          await (i < 2 ? x2(1, 2) : new Tensor([1, 2, 3]))
            .realize()
            .then((t) => (i < 2 ? t : t.shrink([[0, 2]]))),
        );
    },
    message: /in memory of 2 elements, got .* copies it or assigns to it/,
    at: 2,
  },
  "one argument less": {
    make: () => {
      const f = new TinyJit((x: Tensor, y?: Tensor) => (y === undefined ? x.add(1) : x.add(y)));
      return (i) => (i < 2 ? f(x2(1, 2), x2(3, 4)) : f(x2(1, 2)));
    },
    message: /the arguments: expected a list of 2, got a list of 1/,
    at: 2,
  },
  "a number where there was a tensor": {
    make: () => {
      const f = new TinyJit((x: Tensor, y: Tensor | number) => x.add(y));
      return (i) => f(x2(1, 2), i < 2 ? x2(3, 4) : 3);
    },
    message: /input 1: expected a tensor, got 3/,
    at: 2,
  },
  "another number": {
    make: () => {
      const f = new TinyJit((x: Tensor, options: { scale: number }) => x.mul(options.scale));
      return (i) => f(x2(1, 2), { scale: i < 2 ? 2 : 3 });
    },
    message: /input 1\.scale: expected 2, got 3; whatever is not a tensor is fixed by the capture/,
    at: 2,
  },
  "another option": {
    make: () => {
      const f = new TinyJit((x: Tensor, how: string) => (how === "sum" ? x.sum() : x.max()));
      return (i) => f(x2(1, 2), i < 2 ? "sum" : "max");
    },
    message: /input 1: expected "sum", got "max"/,
    at: 2,
  },
  "an input with a gradient behind it": {
    make: () => {
      const w = new Tensor([1.5, 2], { requiresGrad: true });
      const f = new TinyJit((x: Tensor) => x.sum());
      return () => f(w.mul(2));
    },
    message: /input 0 was computed with its gradient recorded.*detach\(\)/,
    at: 0,
  },
  "requiresGrad where there was none": {
    make: () => {
      const f = new TinyJit((x: Tensor) => x.sum());
      return (i) => f(i < 2 ? floats(1, 2) : new Tensor([1.5, 2], { requiresGrad: true }));
    },
    message: /input 0: expected a tensor without requiresGrad, got a tensor with requiresGrad/,
    at: 2,
  },
  "an argument that contains itself": {
    make: () => {
      const f = new TinyJit((x: unknown[]) => (x[0] as Tensor).add(1));
      const list: unknown[] = [x2(1, 2)];
      list.push(list);
      return () => f(list);
    },
    message: /input 0\[1\] contains itself/,
    at: 0,
  },
  "an input that was disposed of": {
    make: () => {
      const f = new TinyJit((x: Tensor) => x.add(1));
      return (i) => {
        const x = x2(1, 2).realizeSync();
        if (i === 2) x.dispose();
        return f(x);
      };
    },
    message: /disposed of/,
    at: 2,
    error: DeviceError,
  },
  "an input that is stale": {
    make: () => {
      const f = new TinyJit((x: Tensor) => x.add(1));
      return async (i) => {
        const x = await x2(1, 2).realize();
        const old = x.detach();
        if (i === 2) await x.assign(x.add(1)).realize();
        return f(old);
      };
    },
    message: /an assign has overwritten/,
    at: 2,
    error: StaleError,
  },
};

const CHANGES: Record<string, Case> = {
  "a number of a closure that changes": {
    make: () => {
      let scale = 1;
      const f = new TinyJit((x: Tensor) => x.mul(++scale));
      return () => f(floats(1, 2));
    },
    message:
      /has the number 3 where the call before had 2\. A plain number is compiled into the kernel.*as a tensor/,
    at: 1,
  },
  "an offset of a closure that changes": {
    make: () => {
      let at = 0;
      const table = new Tensor([1, 2, 3, 4, 5, 6]);
      const f = new TinyJit((x: Tensor) => x.add(table.shrink([[at++, at + 1]])));
      return () => f(x2(1, 2));
    },
    message: /reads other places of its inputs than in the call before.*bound Variable/,
    at: 1,
  },
  "host data that changes": {
    make: () => {
      let n = 0;
      const f = new TinyJit((x: Tensor) => x.add(new Tensor([n++, 1])));
      return () => f(x2(1, 2));
    },
    message: /made of host data inside the function, and the data is not that of the call before.*pass it in/,
    at: 1,
  },
  "a learning rate that is set inside": {
    make: () => {
      const w = new Tensor([1, 2], { dtype: "float32", requiresGrad: true });
      const sgd = new nn.optim.SGD([w], { lr: 1 });
      const f = new TinyJit(async () => {
        sgd.lr /= 2;
        sgd.zeroGrad();
        await sgd.step(w.sum().backward());
      });
      return () => f();
    },
    message: /host data inside the function/,
    at: 1,
  },
  "state that is carried by a variable": {
    make: () => {
      let h = floats(1, 2);
      const f = new TinyJit((x: Tensor) => {
        h = h.mul(x).contiguous();
        return h.sum();
      });
      return () => f(floats(2, 2));
    },
    message: /that an earlier call of it computed, so a replay would use that one value for ever.*assign\(\)/,
    at: 1,
  },
  "state that is carried and never computed by itself": {
    make: () => {
      const w = floats(3, 4).realizeSync();
      let h = floats(1, 2);
      const f = new TinyJit((x: Tensor) => {
        h = h.add(w);
        return x.add(h.exp());
      });
      return () => f(floats(2, 2));
    },
    message: /that an earlier call of it computed/,
    at: 1,
  },
  "gradients that add up": {
    make: () => {
      const w = new Tensor([1, 2], { dtype: "float32", requiresGrad: true });
      const sgd = new nn.optim.SGD([w], { lr: 1 });
      const f = new TinyJit(async (x: Tensor) => {
        await sgd.step(w.mul(x).sum().backward());
      });
      return () => f(floats(1, 1));
    },
    message: /zeroGrad\(\) inside the function/,
    at: 1,
  },
  "a result that is a number and changes": {
    make: () => {
      let n = 0;
      const f = new TinyJit((x: Tensor) => ({ y: x.add(1), n: n++ }));
      return () => f(x2(1, 2));
    },
    message: /the result\.n was 0 in the call before and is 1 now; a replay would keep it/,
    at: 1,
  },
  "a result that changes its form": {
    make: () => {
      let n = 0;
      const f = new TinyJit((x: Tensor) => Array.from({ length: ++n }, () => x.add(1)));
      return () => f(x2(1, 2));
    },
    message: /the result was a list of 1 in the call before and is a list of 2 now/,
    at: 1,
  },
  "Tensor.training that changes": {
    make: () => {
      const f = new TinyJit((x: Tensor) => x.dropout(0.5));
      return (i) => {
        Tensor.training = i < 2;
        return f(floats(1, 2));
      };
    },
    message: /Tensor\.training is false, and was true when the function was captured/,
    at: 2,
  },
  "a model that is set to evaluate": {
    make: () => {
      const model = new nn.Sequential(new nn.Dropout(0.5));
      const f = new TinyJit((x: Tensor) => model.forward(x));
      return (i) => {
        if (i === 2) model.eval();
        return f(floats(1, 2));
      };
    },
    message: /training of Dropout is false, and was undefined when the function was captured/,
    at: 2,
  },
  "manualSeed inside": {
    make: () => {
      const f = new TinyJit((x: Tensor) => {
        Tensor.manualSeed(1);
        return x.add(Tensor.rand(2));
      });
      return () => f(floats(1, 2));
    },
    message: /manualSeed inside a jitted function \(at .*misuse\.test\.ts:\d+:\d+\) cannot be replayed/,
    at: 0,
  },
};

const RESULTS: Record<string, Case> = {
  "a typed array of the function's own": {
    make: () => {
      const f = new TinyJit((x: Tensor) => [x.add(1), new Float32Array(2)]);
      return () => f(x2(1, 2));
    },
    message: /the result\[1\] is a Float32Array, which a replay cannot make anew/,
    at: 0,
  },
  "a Map": {
    make: () => {
      const f = new TinyJit((x: Tensor) => new Map([["y", x.add(1)]]));
      return () => f(x2(1, 2));
    },
    message: /the result is a Map.*arrays and plain objects/,
    at: 0,
  },
  "a function": {
    make: () => {
      const f = new TinyJit((x: Tensor) => () => x.add(1));
      return () => f(x2(1, 2));
    },
    message: /the result is a function/,
    at: 0,
  },
  "reading a tensor that was left in a variable": {
    make: () => {
      let left: Tensor | undefined;
      const f = new TinyJit((x: Tensor) => {
        left = x.add(1).contiguous();
        return left.sum();
      });
      return async () => {
        await f(x2(1, 2));
        await left?.data();
      };
    },
    message: /\[2\].* was made inside a jitted function and not returned by it.*return it/,
    at: 1,
    error: StaleError,
  },
  "reading a result under the name it had inside": {
    make: () => {
      let left: Tensor | undefined;
      const f = new TinyJit((x: Tensor) => {
        left = x.add(1);
        return left;
      });
      return async () => {
        await f(x2(1, 2));
        await left?.data();
      };
    },
    message: /was made inside a jitted function/,
    at: 1,
    error: StaleError,
  },
  "reading what was only built inside": {
    make: () => {
      let left: Tensor | undefined;
      const f = new TinyJit((x: Tensor) => {
        left = x.mul(7);
        return x.add(1);
      });
      return async () => {
        await f(x2(1, 2));
        await left?.data();
      };
    },
    message: /was made inside a jitted function/,
    at: 1,
    error: StaleError,
  },
  "reading a gradient that was not returned": {
    make: () => {
      const w = new Tensor([1, 2], { dtype: "float32", requiresGrad: true });
      const sgd = new nn.optim.SGD([w], { lr: 1 });
      const f = new TinyJit(async () => {
        sgd.zeroGrad();
        await sgd.step(w.square().sum().backward());
      });
      return async () => {
        await f();
        await w.grad?.data();
      };
    },
    message: /was made inside a jitted function/,
    at: 1,
    error: StaleError,
  },
};

const n = Variable("n", 1, 6);
const six = (): Tensor => floats(1, 2, 3, 4, 5, 6).realizeSync();
type Bound = ReturnType<typeof n.bind>;

const SYMBOLS: Record<string, Case> = {
  "a variable that is bound inside": {
    make: () => {
      const x = six();
      let k = 1;
      const f = new TinyJit((y: Tensor) =>
        x
          .shrink([[0, n.bind(k++)]])
          .sum()
          .add(y),
      );
      return () => f(floats(1));
    },
    message: /variable n is bound inside the function.*as an argument: step\(x, n\.bind\(1\)\)/,
    at: 1,
  },
  "a variable that became a number": {
    make: () => {
      const x = six();
      const f = new TinyJit((k: Bound) => x.shrink([[0, k.value]]).sum());
      return () => f(n.bind(2));
    },
    message: /variable n is passed, but no captured kernel takes it/,
    at: 1,
  },
  "a symbolic size that became a number on the way": {
    make: () => {
      const x = six();
      const f = new TinyJit((k: Bound) => {
        const part = x.shrink([[0, k]]);
        return part.sum().div(part.shape[0] as number);
      });
      return (i) => f(n.bind(i + 1));
    },
    message: /has the number .* where the call before had/,
    at: 1,
  },
  "the same, where the value changes later": {
    make: () => {
      const x = six();
      const f = new TinyJit((k: Bound) => {
        const part = x.shrink([[0, k]]);
        return part.sum().div(part.shape[0] as number);
      });
      return (i) => f(n.bind(i < 3 ? 2 : 5));
    },
    message: /has the number .* where the call before had/,
    at: 3,
  },
  "other kernels for another value": {
    make: () => {
      const x = six();
      const f = new TinyJit((k: Bound) => {
        const part = x.shrink([[0, k]]).sum();
        return k.value > 3 ? part.exp() : part;
      });
      return (i) => f(n.bind(i < 3 ? 2 : 5));
    },
    message: /computes other kernels for n=2 and 5: it turns a symbolic size into a plain number/,
    at: 3,
  },
  "a variable without a value": {
    make: () => {
      const f = new TinyJit((k: typeof n) =>
        six()
          .shrink([[0, k]])
          .sum(),
      );
      return () => f(n);
    },
    message: /input 0 is n, and n has no value; pass n\.bind\(n\)/,
    at: 0,
  },
  "a variable with two values": {
    make: () => {
      const f = new TinyJit((x: Tensor, k: Bound) =>
        x.sum().add(
          six()
            .shrink([[0, k]])
            .sum(),
        ),
      );
      return () => f(six().shrink([[0, n.bind(2)]]), n.bind(3));
    },
    message: /n bound to .*an argument before it to .*one value a call/,
    at: 0,
  },
  "a variable of another range": {
    make: () => {
      const x = six();
      const f = new TinyJit((k: Bound) => x.shrink([[0, k]]).sum());
      return (i) => f(i < 2 ? n.bind(i + 1) : Variable("n", 1, 5).bind(3));
    },
    message: /input 0: expected n;n:1:6, got n;n:1:5/,
    at: 2,
  },
};

const MEMORY: Record<string, Case> = {
  "an assign to a tensor without memory": {
    make: () => {
      const f = new TinyJit((x: Tensor) => {
        const count = Tensor.zeros(2);
        counts.push(count);
        return x.add(1);
      });
      const counts: Tensor[] = [];
      const g = new TinyJit((x: Tensor) => {
        const last = counts.at(-1) as Tensor;
        last.assign(last.add(x));
        return last.mul(1);
      });
      return async () => {
        await f.sync(floats(1, 2));
        counts.push(Tensor.zeros(2));
        return g(floats(1, 2));
      };
    },
    message:
      /assign to a tensor of shape \[2\] \(at .*misuse\.test\.ts:\d+:\d+\), which has no memory of its own/,
    at: 1,
  },
  "an assign to a node instead of a tensor": {
    make: () => {
      const w = floats(1, 2).realizeSync();
      const f = new TinyJit((x: Tensor) => new Tensor(w.lazydata.assign(x.lazydata)));
      return (i) => f(floats(i, i));
    },
    message: /writes to <buf WASM size:2 .*>, which belongs to no tensor that the jit has seen/,
    at: 1,
  },
  "a weight that got other memory": {
    make: () => {
      const w = floats(1, 2).realizeSync();
      const f = new TinyJit((x: Tensor) => {
        w.assign(w.add(x));
      });
      return (i) => {
        if (i === 2) w.lazydata = floats(5, 6).realizeSync().lazydata;
        return f(floats(1, 1));
      };
    },
    message: /assigns to \(at .*misuse\.test\.ts:\d+:\d+\) has other memory by now.*reset\(\)/,
    at: 2,
  },
  "a weight that was disposed of": {
    make: () => {
      const w = floats(1, 2).realizeSync();
      const f = new TinyJit((x: Tensor) => x.mul(w));
      return (i) => {
        if (i === 2) w.dispose();
        return f(floats(1, 1));
      };
    },
    message: /which was captured, was disposed of; reset\(\) the jit/,
    at: 2,
  },
  "an input that is written and passed twice": {
    make: () => {
      const f = new TinyJit((x: Tensor, y: Tensor) => {
        x.assign(x.add(1));
        return y.mul(2);
      });
      return (i) => {
        const [x, y] = [floats(1, 2).realizeSync(), floats(3, 4)];
        return f(x, i < 2 ? y : x);
      };
    },
    message: /assigns to input 0, and input 1 lies in the same memory; pass a copy/,
    at: 2,
  },
  "an input that is written and passed twice, at the capture": {
    make: () => {
      const f = new TinyJit((x: Tensor, y: Tensor) => {
        x.assign(x.add(1));
        return y.mul(2);
      });
      return () => {
        const x = floats(1, 2).realizeSync();
        return f(x, x);
      };
    },
    message: /assigns to input 0, and input 1 lies in the same memory; pass a copy/,
    at: 1,
  },
  "a weight that got other memory because another name of it was assigned to": {
    make: () => {
      const w = floats(1, 2).realizeSync();
      const f = new TinyJit((x: Tensor) => x.mul(w));
      return (i) => {
        if (i === 2) {
          const other = w.detach();
          other.assign(other.add(1));
          w.assign(floats(5, 6));
        }
        return f(floats(1, 1));
      };
    },
    message: /has other memory by now than when it was captured, because another name of it was assigned to/,
    at: 2,
  },
  "an input that an assign overwrites before the replay": {
    make: () => {
      const w = floats(1, 2).realizeSync();
      const f = new TinyJit((x: Tensor) => x.mul(w));
      return (i) => {
        if (i < 2) return f(floats(1, 1));
        const old = w.detach();
        w.assign(w.add(1));
        return f(old);
      };
    },
    message: /an assign has overwritten/,
    at: 2,
    error: StaleError,
  },
  "an input that is written and used besides": {
    make: () => {
      const w = floats(1, 2).realizeSync();
      const f = new TinyJit((x: Tensor) => {
        x.assign(x.add(1));
        return w.mul(2);
      });
      return (i) => f(i < 2 ? floats(3, 4).realizeSync() : w);
    },
    message: /assigns to input 0, and a tensor that the function uses besides lies in the same memory/,
    at: 2,
  },
};

for (const [group, cases] of Object.entries({ HOST_VALUES, INPUTS, CHANGES, RESULTS, SYMBOLS, MEMORY })) {
  describe(group.toLowerCase().replace("_", " "), () => {
    for (const [name, { make, message, at, error: type = JitError }] of Object.entries(cases)) {
      test(`${name} is refused`, async () => {
        const call = make();
        const { call: which, error } = await refused(call);
        expect(error.message).toMatch(message);
        expect(error).toBeInstanceOf(type);
        expect(which).toBe(at);
      });
    }
  });
}

describe("other ways", () => {
  test("there are 30 cases at least", () => {
    const all = [HOST_VALUES, INPUTS, CHANGES, RESULTS, SYMBOLS, MEMORY].flatMap((c) => Object.keys(c));
    expect(all.length).toBeGreaterThanOrEqual(30);
  });
  test("something that is not a function", () => {
    expect(() => new TinyJit(5 as unknown as () => void)).toThrow(
      /got number, expected a function of tensors/,
    );
  });
  test("an async function in the sync form", () => {
    const f = new TinyJit(async (x: Tensor) => x.add(1));
    expect(() => f.sync(x2(1, 2))).toThrow(/the function is async; call the jit itself and await it/);
  });
  test("a decorator on something that is not a method of objects", () => {
    const context = (kind: string, isStatic: boolean) =>
      ({ kind, name: "f", static: isStatic }) as unknown as ClassMethodDecoratorContext<object>;
    const method = async (x: Tensor) => x.add(1);
    expect(() => TinyJit(method, context("getter", false))).toThrow(/@TinyJit: f is a getter/);
    expect(() => TinyJit(method, context("method", true))).toThrow(/@TinyJit: f is a static method/);
  });
  test("a result that is a view of what the function overwrites", async () => {
    const f = new TinyJit((x: Tensor, y: Tensor) => {
      const before = x.unsqueeze(0);
      x.assign(y);
      return [before, y.add(1)];
    });
    const [first] = (await f(x2(1, 2), x2(3, 4))) as Tensor[];
    await expect(first?.tolist()).rejects.toThrow(StaleError);
    for (let i = 0; i < 2; i++) {
      await expect(f(x2(1, 2), x2(3, 4))).rejects.toThrow(
        /a result of shape \[1,2\] is a view of memory that the function assigns to .* return \.clone\(\) of it/,
      );
    }
    const copies = new TinyJit((x: Tensor, y: Tensor) => {
      const [before, turned] = [x.unsqueeze(0).clone(), x.flip(0)];
      x.assign(y);
      return [before.get(0).flip(0).add(turned).div(2), x.flip(0)];
    });
    for (let i = 0; i < 4; i++) {
      const [old, fresh] = (await copies(x2(i, 2), x2(i, 4))) as [Tensor, Tensor];
      expect([await old.tolist(), await fresh.tolist()]).toEqual([
        [2, i],
        [4, i],
      ]);
    }
  });
  test("a refused capture is refused again, and works once the cause is gone", async () => {
    let scale = 1;
    let moving = true;
    const f = new TinyJit((x: Tensor) => x.mul(moving ? ++scale : 5));
    await f(x2(1, 2));
    for (let i = 0; i < 3; i++) await expect(f(x2(1, 2))).rejects.toThrow(/has the number/);
    moving = false;
    f.reset();
    for (let i = 0; i < 4; i++) expect(await (await f(x2(i, 1))).tolist()).toEqual([5 * i, 5]);
  });
});

describe("a value that was built before the function and not realized", () => {
  async function replay(isRealized: boolean): Promise<unknown> {
    const w = await floats(1, 2).realize();
    const doubled = w.mul(2);
    if (isRealized) await doubled.realize();
    const f = new TinyJit((x: Tensor) => x.add(doubled));
    for (let i = 0; i < 3; i++) expect(await (await f(floats(i, 0))).tolist()).toEqual([i + 2, 4]);
    await w.assign(w.add(10)).realize();
    return (await f(floats(0, 0))).tolist();
  }
  test("is refused once what it is made of was assigned to, and is not computed of the new value", async () => {
    await expect(replay(false)).rejects.toThrow(
      /^TinyJit: the function uses a value that was built before it/,
    );
  });
  test("keeps its value if it is realized", async () => {
    expect(await replay(true)).toEqual([2, 4]);
  });
});
