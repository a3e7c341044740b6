// Random programs of tensors, ops, assigns and reads, with a seed, against plain arrays that are computed
// eagerly. A tensor is a value: nothing done to another tensor may change it. A StaleError is the only
// permitted exception, and only for programs that keep views of memory or ask for results one after the
// other. A wrong number never is.

import { ArgumentError, Device, StaleError, Tensor } from "gradloom";
import { beforeAll, describe, expect, test } from "vitest";
import { Random } from "../shape/random.ts";

beforeAll(() => Device.open("JS"));

const N = 4;
interface Named {
  tensor: Tensor;
  model: readonly number[];
  /** built as a view of another one: an assign to it is refused */
  readonly part?: boolean;
}
type Model = readonly number[];
interface Op {
  readonly name: string;
  /** the result is another view of the same memory, though it may be a copy to its user */
  readonly view?: true;
  readonly lazy: (a: Tensor, b: Tensor) => Tensor;
  readonly plain: (a: Model, b: Model) => Model;
}

const at = (m: Model, i: number): number => m[i] ?? 0;
const sum = (m: Model): number => m.reduce((x, y) => x + y, 0) | 0;
const each = (f: (i: number) => number): Model => Array.from({ length: N }, (_, i) => f(i) | 0);

const OPS: readonly Op[] = [
  { name: "add", lazy: (a, b) => a.add(b), plain: (a, b) => each((i) => at(a, i) + at(b, i)) },
  { name: "sub", lazy: (a, b) => a.sub(b), plain: (a, b) => each((i) => at(a, i) - at(b, i)) },
  { name: "add 1", lazy: (a) => a.add(1), plain: (a) => each((i) => at(a, i) + 1) },
  { name: "mul 3", lazy: (a) => a.mul(3), plain: (a) => each((i) => Math.imul(at(a, i), 3)) },
  { name: "max", lazy: (a, b) => a.maximum(b), plain: (a, b) => each((i) => Math.max(at(a, i), at(b, i))) },
  { name: "sum", lazy: (a) => a.sum().expand(N).add(0), plain: (a) => each(() => sum(a)) },
  { name: "minus sum", lazy: (a, b) => a.sub(b.sum()), plain: (a, b) => each((i) => at(a, i) - sum(b)) },
  {
    name: "flip add",
    lazy: (a, b) => a.flip(0).add(b),
    plain: (a, b) => each((i) => at(a, N - 1 - i) + at(b, i)),
  },
  {
    name: "shift",
    lazy: (a) =>
      a
        .shrink([[1, N]])
        .pad([[0, 1]])
        .add(0),
    plain: (a) => each((i) => at(a, i + 1)),
  },
  {
    name: "transpose",
    lazy: (a) => a.reshape(2, 2).T.reshape(N).add(0),
    plain: (a) => each((i) => at(a, (i % 2) * 2 + (i >> 1))),
  },
  {
    name: "stored",
    lazy: (a, b) => a.add(b).contiguous(),
    plain: (a, b) => each((i) => at(a, i) + at(b, i)),
  },
  { name: "flip", view: true, lazy: (a) => a.flip(0), plain: (a) => each((i) => at(a, N - 1 - i)) },
  { name: "roll 0", view: true, lazy: (a) => a.roll(0, 0), plain: (a) => a },
  { name: "same", view: true, lazy: (a) => a.reshape(2, 2).reshape(N), plain: (a) => a },
];

class Program {
  readonly r: Random;
  readonly wild: boolean;
  readonly log: string[] = [];
  readonly vars: Named[] = [];
  reads = 0;
  stale = 0;

  constructor(seed: number, wild: boolean) {
    this.r = new Random(seed);
    this.wild = wild;
    for (let i = 0; i < 3; i++) this.create();
  }

  create(): void {
    const model = each(() => this.r.int(-9, 9));
    const device = this.r.chance(25) ? "JS" : "WASM";
    const tensor = new Tensor([...model], { dtype: "int32", device });
    const kind = this.r.int(0, 2);
    if (kind === 0) tensor.realizeSync();
    this.log.push(`v${this.vars.length} = [${model}] on ${device}${kind === 0 ? " realised" : ""}`);
    this.vars.push({ tensor, model });
  }
  /** Something computed from one or two variables, on the device of `like` or of the first. */
  expression(like?: Named): { value: Named; text: string } {
    const usable = this.wild ? OPS : OPS.filter((o) => !o.view);
    const op = this.r.pick(usable);
    const [a, b] = [this.r.pick(this.vars), this.r.pick(this.vars)];
    const device = like?.tensor.device ?? a.tensor.device;
    const value = {
      tensor: op.lazy(a.tensor.to(device), b.tensor.to(device)),
      model: op.plain(a.model, b.model),
    };
    return { value, text: `${op.name}(v${this.vars.indexOf(a)}, v${this.vars.indexOf(b)})` };
  }
  build(): void {
    const { value, text } = this.expression();
    this.log.push(`v${this.vars.length} = ${text}`);
    const { isWhole, copied } = value.tensor.lazydata;
    this.vars.push({ ...value, part: !isWhole && copied === undefined });
  }
  assign(): void {
    const target = this.r.pick(this.vars);
    const { value, text } = this.expression(target);
    if (target.part) {
      expect(() => target.tensor.assign(value.tensor)).toThrow(ArgumentError);
      return;
    }
    this.log.push(`v${this.vars.indexOf(target)}.assign(${text})`);
    target.tensor.assign(value.tensor);
    target.model = value.model;
  }
  realize(): void {
    // a program that asks for everything at once gets everything
    const some = this.wild ? this.vars.filter(() => this.r.chance(40)) : this.r.shuffled(this.vars);
    this.log.push(`realize(${some.map((v) => `v${this.vars.indexOf(v)}`)})`);
    this.attempt(() => Tensor.realizeSync(...some.map((v) => v.tensor)));
  }
  read(v: Named): void {
    this.log.push(`read v${this.vars.indexOf(v)}`);
    this.attempt(() => {
      const got = [...v.tensor.dataSync()].map(Number);
      this.reads++;
      if (got.join() !== v.model.join()) throw new Error(`got [${got}], expected [${v.model}]`);
    });
  }
  attempt(f: () => void): void {
    try {
      f();
    } catch (e) {
      if (!(e instanceof StaleError)) throw e;
      if (!this.wild) throw new Error(`a StaleError that nothing justifies: ${e.message}`);
      this.stale++;
    }
  }
  run(steps: number): void {
    for (let i = 0; i < steps; i++) {
      const dice = this.r.int(0, 99);
      if (dice < 8) this.create();
      else if (dice < 45) this.build();
      else if (dice < 75) this.assign();
      else if (dice < 85) this.realize();
      else if (this.wild) this.read(this.r.pick(this.vars));
      if (this.vars.length > 9) this.vars.splice(this.r.int(0, 8), 1);
    }
    if (!this.wild) this.realize();
    for (const v of this.vars) this.read(v);
  }
}

function runMany(programs: number, steps: number, wild: boolean, offset: number) {
  const total = { reads: 0, stale: 0 };
  for (let seed = offset; seed < offset + programs; seed++) {
    const program = new Program(seed, wild);
    try {
      program.run(steps);
    } catch (e) {
      throw new Error(`seed ${seed}: ${(e as Error).message}\n${program.log.join("\n")}`, { cause: e });
    }
    total.reads += program.reads;
    total.stale += program.stale;
  }
  return total;
}

describe("random programs with assigns", () => {
  test("asking for everything at once: every number right, and never stale", () => {
    const { reads } = runMany(250, 25, false, 1);
    expect(reads).toBeGreaterThan(1000);
  });
  test("views kept, results asked for in pieces: every number right or a StaleError", () => {
    const { reads, stale } = runMany(400, 25, true, 10_001);
    expect(reads).toBeGreaterThan(2000);
    expect(stale / (reads + stale)).toBeLessThan(0.12);
  });
});
