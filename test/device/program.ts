// A random program: a movement chain with elementwise ops, casts, reduces and reduces expanded back in
// between, sometimes stored on the way. Each step is done on the tensor and on an array that really moves its
// values. Float values are kept to small multiples of 1/256, so that no order of a sum matters.

import { type DType, dtypes, Tensor } from "gradloom";
import { castValue, type Value } from "../../src/dtype.ts";
import { LazyBuffer } from "../../src/lazy/lazybuffer.ts";
import { type AluOp, opRecord, REDUCE, type ReduceOp, resultDType } from "../../src/ops.ts";
import { indexes, type Move, moveModel, plainModel, randomMove } from "../shape/model.ts";
import { Random } from "../shape/random.ts";
import { alu, count, expectValues, read, tensor } from "./harness.ts";

const { bool, int32, uint8, int64, float16, float32 } = dtypes;
const TYPES = [int32, int32, float32, float32, float32, bool, uint8, int64, float16];
const MAX_ELEMENTS = 250;

/** A tensor and what it must hold. */
interface Node {
  readonly name: string;
  readonly t: Tensor;
  readonly values: readonly Value[];
}
const zeroOf = (d: DType): Value => (d.isBig ? 0n : 0);

/**
 * Exact in every order of adding: small multiples of 1/256; NaN and infinities
 * add up the same in any order too.
 */
const isExact = (x: Value): boolean =>
  typeof x === "bigint" || !Number.isFinite(x) || (Math.abs(x) <= 4096 && Number.isInteger(x * 256));
const addsExactly = (xs: readonly Value[]): boolean =>
  xs.reduce<number>((n, x) => n + (Number.isFinite(x) ? Math.abs(Number(x)) : 0), 0) * 256 < 2 ** 24;

export class Program {
  readonly nodes: Node[] = [];
  readonly lines: string[] = [];
  readonly #seed: number;
  readonly #random: Random;
  readonly #device: string;

  constructor(seed: number, device: string) {
    this.#seed = seed;
    this.#random = new Random(seed);
    this.#device = device;
  }

  /** The program as text, for whoever has to find out what went wrong. */
  text(): string {
    return `seed ${this.#seed} on ${this.#device}\n${this.lines.join("\n")}\n`;
  }

  // ---- the ops, each on the tensor and on the array ----

  input(): Node {
    const r = this.#random;
    const shape = Array.from({ length: r.int(0, 3) }, () => r.int(1, 4));
    const d = r.pick(TYPES);
    const values = Array.from({ length: count(shape) }, () => castValue(d, r.int(-20, 20) / 4, float32));
    const node = { name: "", t: tensor(this.#device, d, values, shape), values };
    return this.#add(node, `${d.name} [${shape}] = ${values.map(String)}`);
  }

  /** Keeps a node whose values can be compared, and names it; otherwise the step is as if it had not been. */
  #add(node: Node, text: string): Node {
    if (node.t.dtype.isFloat && !node.values.every(isExact)) return this.#random.pick(this.nodes);
    const named = { ...node, name: `t${this.nodes.length}` };
    this.nodes.push(named);
    this.lines.push(`${named.name} = ${text}  [${named.t.shape}] ${named.t.dtype.name}`);
    return named;
  }

  constant(like: Node, value: Value): Node {
    const { t } = like;
    const lb = LazyBuffer.constant(this.#device, t.shape, t.dtype, value);
    const exact = castValue(t.dtype, value, typeof value === "bigint" ? int64 : float32);
    return { name: String(value), t: new Tensor(lb), values: like.values.map(() => exact) };
  }

  alu(op: AluOp, ...xs: readonly Node[]): Node {
    const d = (xs.at(-1) as Node).t.dtype;
    const values = (xs[0] as Node).values.map((_, i) =>
      opRecord(op).evaluate(d, ...xs.map((x) => x.values[i] as Value)),
    );
    const t = alu(op, ...xs.map((x) => x.t));
    if (t.dtype !== resultDType(op, d)) throw new Error(`${op} of ${d} gives ${t.dtype}`);
    return this.#add({ name: "", t, values }, `${op}(${xs.map((x) => x.name).join(", ")})`);
  }

  cast(x: Node, to: DType): Node {
    if (x.t.dtype === to) return x;
    const values = x.values.map((v) => castValue(to, v, x.t.dtype));
    return this.#add({ name: "", t: x.t.cast(to), values }, `${x.name}.cast(${to.name})`);
  }

  move(x: Node, move: Move): Node {
    const moved = moveModel({ ...plainModel(x.t.shape) }, move);
    if (moved.values.length > MAX_ELEMENTS) return x;
    const values = moved.values.map((i) => (i < 0 ? zeroOf(x.t.dtype) : (x.values[i] as Value)));
    const t = x.t[move.op](move.arg as never);
    return this.#add({ name: "", t, values }, `${x.name}.${move.op}(${JSON.stringify(move.arg)})`);
  }

  /** Reduced axes stay with size 1. */
  reduce(x: Node, op: ReduceOp, axes: readonly number[]): Node {
    const { shape } = x.t;
    const [empty, d] = [axes.some((a) => shape[a] === 0), x.t.dtype];
    const narrow = d.kind === "bool" || d.itemsize < 4;
    if ((op === "REDUCE_MAX" && empty) || (d.isFloat && !addsExactly(x.values))) return x;
    // float16 adds up in float32 and rounds once: a test of its own, see half.test.ts
    if (op === "SUM" && narrow) return this.reduce(this.cast(x, d.isFloat ? float32 : int32), op, axes);
    const kept = shape.map((s, i) => (axes.includes(i) ? 1 : s));
    const values: Value[] = Array.from({ length: count(kept) }, () => REDUCE[op].identity(d));
    let n = 0;
    for (const at of indexes(shape)) {
      const to = at.reduce((flat, i, k) => flat * (kept[k] as number) + (axes.includes(k) ? 0 : i), 0);
      values[to] = opRecord(REDUCE[op].combine).evaluate(d, values[to] as Value, x.values[n++] as Value);
    }
    const t = op === "SUM" ? x.t.sum(axes, true) : x.t.max(axes, true);
    return this.#add({ name: "", t, values }, `${x.name}.${op}([${axes}], keepdim)`);
  }

  store(x: Node): Node {
    return this.#add({ ...x, t: x.t.contiguous() }, `${x.name}.contiguous()`);
  }

  // ---- random steps ----

  async step(): Promise<void> {
    const r = this.#random;
    const x = r.pick(r.chance(60) ? this.nodes.slice(-2) : this.nodes);
    const kind = r.pick([
      "move",
      "move",
      "move",
      "unary",
      "binary",
      "binary",
      "reduce",
      "back",
      "choose",
      "cast",
      "store",
    ]);
    if (kind === "move") this.move(x, randomMove(r, x.t.shape));
    else if (kind === "unary") this.#unary(x);
    else if (kind === "binary") this.#binary(x);
    else if (kind === "reduce") this.reduce(x, this.#reduceOp(), this.#axes(x));
    else if (kind === "back") this.#back(x);
    else if (kind === "choose") this.#choose(x);
    else if (kind === "cast") this.cast(x, r.pick(TYPES));
    else if (r.chance(50)) this.store(x);
    else {
      this.lines.push(`${x.name}.realize()`);
      await x.t.realize();
    }
  }
  #reduceOp(): ReduceOp {
    return this.#random.pick(["SUM", "REDUCE_MAX"] as const);
  }
  #axes(x: Node): number[] {
    const axes = x.t.shape.map((_, i) => i).filter(() => this.#random.chance(50));
    return axes.length === 0 ? x.t.shape.map((_, i) => i) : axes;
  }

  /**
   * With a constant, or of one operand. Some of these make something of zero, which a padding must not see.
   */
  #unary(x: Node): void {
    const r = this.#random;
    const { dtype: d } = x.t;
    if (d.kind === "bool") return void this.alu("CMPEQ", x, this.constant(x, 0));
    if (r.chance(20)) return void this.alu("NEG", x);
    if (d.isFloat && r.chance(15)) return void this.alu("TRUNC", x);
    if (d.isFloat && r.chance(20)) {
      // whole numbers of a few bits have exact powers
      const small = this.alu("MOD", this.alu("TRUNC", x), this.constant(x, 4));
      return void this.alu("EXP2", small);
    }
    const op = r.pick<AluOp>(
      d.isFloat
        ? ["ADD", "SUB", "MUL", "DIV", "MOD", "MAX", "CMPLT", "CMPEQ", "CMPNE"]
        : ["ADD", "SUB", "MUL", "IDIV", "MOD", "MAX", "CMPLT", "CMPEQ", "AND", "OR", "XOR", "SHL", "SHR"],
    );
    const c = r.pick(d.isFloat ? [0, -0, 1, 2, -0.5, 4, 0.25] : [0, 1, 2, 3, -1, 7]);
    const constant = this.constant(x, d.isBig ? BigInt(c) : c);
    if (r.chance(25) && op !== "DIV" && op !== "MOD") this.alu(op, constant, x);
    else this.alu(op, x, constant);
  }

  /** A node that broadcasts with x: some other if there is one, or x itself in another order. */
  #partner(x: Node): readonly [Node, Node] {
    const fits = this.nodes.filter((y) => broadcast(x.t.shape, y.t.shape) !== undefined);
    let y = this.#random.pick(fits.length === 0 ? [x] : fits);
    if (y === x) y = this.move(x, { op: "flip", arg: x.t.shape.map((_, i) => i) });
    y = this.cast(y, x.t.dtype);
    const shape = broadcast(x.t.shape, y.t.shape);
    if (shape === undefined || count(shape) > MAX_ELEMENTS || y.t.dtype !== x.t.dtype) return [x, x];
    return [this.#expand(x, shape), this.#expand(y, shape)];
  }
  #expand(x: Node, shape: readonly number[]): Node {
    const padded = [...Array.from({ length: shape.length - x.t.ndim }, () => 1), ...x.t.shape];
    const same = padded.length === x.t.ndim;
    const reshaped = same ? x : this.move(x, { op: "reshape", arg: padded });
    if (shape.every((s, i) => s === padded[i])) return reshaped;
    return this.move(reshaped, { op: "expand", arg: [...shape] });
  }
  #binary(x: Node): void {
    const [a, b] = this.#partner(x);
    const { dtype: d } = a.t;
    const both = ["ADD", "SUB", "MUL", "MAX", "CMPLT", "CMPEQ", "CMPNE"] as const;
    const op = this.#random.pick<AluOp>(
      d.isFloat ? both : d.kind === "bool" ? ["AND", "OR", "XOR", "CMPLT"] : [...both, "IDIV", "MOD", "XOR"],
    );
    this.alu(op, a, b);
  }
  /** As in softmax and variance: x and its own reduce, seen at the shape of x again. */
  #back(x: Node): void {
    const low = this.reduce(x, this.#reduceOp(), this.#axes(x));
    if (low.t.ndim !== x.t.ndim || broadcast(low.t.shape, x.t.shape)?.join() !== x.t.shape.join()) return;
    const a = this.cast(x, low.t.dtype);
    if (a.t.dtype !== low.t.dtype) return;
    const op = this.#random.pick<AluOp>(a.t.dtype.kind === "bool" ? ["XOR"] : ["SUB", "ADD", "MAX", "CMPEQ"]);
    const back = this.alu(op, a, this.#expand(low, a.t.shape));
    if (this.#random.chance(50)) this.reduce(back, this.#reduceOp(), this.#axes(back));
  }
  #choose(x: Node): void {
    const [a, b] = this.#partner(x);
    this.alu("WHERE", this.alu("CMPLT", a, b), a, b);
  }
}

/** The common shape, or undefined. */
function broadcast(a: readonly number[], b: readonly number[]): number[] | undefined {
  const out: number[] = [];
  for (let i = 1; i <= Math.max(a.length, b.length); i++) {
    const [x, y] = [a.at(-i) ?? 1, b.at(-i) ?? 1];
    if (x !== y && x !== 1 && y !== 1) return undefined;
    out.unshift(x === 1 ? y : x);
  }
  return out;
}

/** Builds the program of one seed. */
export async function makeProgram(seed: number, device: string, steps: number): Promise<Program> {
  const program = new Program(seed, device);
  try {
    for (let i = new Random(seed).int(1, 3); i > 0; i--) program.input();
    for (let i = 0; i < steps; i++) await program.step();
    return program;
  } catch (cause) {
    throw new Error(`${program.text()}${(cause as Error).message}`, { cause });
  }
}

/** Builds and computes the program of one seed; a failure shows both. */
export async function runProgram(seed: number, device: string, steps: number): Promise<void> {
  const random = new Random(seed * 7 + 1);
  const program = await makeProgram(seed, device, steps);
  try {
    // the last ones share the most; computed together or one by one
    const outs = program.nodes.slice(-random.int(1, 3));
    if (random.chance(50)) await Tensor.realize(...outs.map((o) => o.t));
    for (const { name, t, values } of outs) {
      expectValues(t.dtype, await read(t), values, (i) => `${name}[${i}]`, { zeros: "equal" });
    }
  } catch (cause) {
    throw new Error(`${program.text()}${(cause as Error).message}`, { cause });
  }
}
