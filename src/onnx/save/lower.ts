// The lazy graph becomes a graph of ONNX nodes. The lazy graph has all that a tensor is, whoever built it:
// a method, a gradient, a model that was imported. So it is read back, instead of recording which methods
// were called: a record would need an entry for each method and lose what is combined from them. Sums over
// products become MatMul and Conv (contraction.ts, windows.ts), sums that choose become Gather
// (lookups.ts), and functions that are long formulas become one node (functions.ts).

import { toposort } from "../../helpers.ts";
import type { LazyBuffer } from "../../lazy/lazybuffer.ts";
import { type AluOp, isAluOp, isReduceOp, type ReduceOp } from "../../ops.ts";
import { isDraw } from "../../tensor/random/threefry.ts";
import { OnnxError } from "../errors.ts";
import { constantIn } from "./constants.ts";
import { alu, bitcast, convert, writtenAs } from "./elementwise.ts";
import { recognised } from "./functions.ts";
import type { ExportNode, GraphBuilder } from "./graph.ts";
import { loopResult } from "./loops.ts";
import { reduced } from "./reduces.ts";
import { boxSelected } from "./select.ts";
import { through, whole } from "./views.ts";

/** What a graph is read with: nodes that have a meaning of their own, such as inputs. */
export class GraphReader {
  readonly b: GraphBuilder;
  readonly #values: Map<LazyBuffer, ExportNode>;
  /** nodes of the traced function have ids from here on */
  readonly since: number;
  /** nodes that stand for something else, in the body of a loop */
  readonly #standsFor: (base: LazyBuffer) => ExportNode | undefined;

  constructor(
    b: GraphBuilder,
    since: number,
    given: ReadonlyMap<LazyBuffer, ExportNode>,
    standsFor: (base: LazyBuffer) => ExportNode | undefined = () => undefined,
  ) {
    this.b = b;
    this.since = since;
    this.#values = new Map(given);
    this.#standsFor = standsFor;
  }

  /** The node of a result, in its full shape. */
  full(lb: LazyBuffer): ExportNode {
    this.prepare([lb]);
    const shape = lb.shape.map(whole);
    const seen = this.operand(lb);
    return this.b.expand(
      seen.shape.length === 0
        ? this.b.reshape(
            seen,
            shape.map(() => 1),
          )
        : seen,
      shape,
    );
  }
  /** Reads all that these are made of. */
  prepare(roots: readonly LazyBuffer[]): void {
    const all = toposort(
      roots.map((r) => r.base),
      (x) => (this.#values.has(x) ? [] : sourcesOf(x).map((s) => s.base)),
    );
    for (const base of all) if (!this.#values.has(base)) this.#values.set(base, this.#one(base));
  }
  /** The node of a base that has been read. */
  value(base: LazyBuffer): ExportNode {
    const known = this.#values.get(base);
    if (known === undefined) throw new OnnxError(`save: internal: ${base} has not been read`);
    return known;
  }
  /** What a node reads: it can be broadcast to the shape of `lb`, and has its rank or none. */
  operand(lb: LazyBuffer): ExportNode {
    const x = this.value(lb.base);
    const isPlain = lb.base.shape.length === 0 && lb.st.views.every((v) => v.mask === undefined);
    if (isPlain && x.op === "Number") return x;
    return through(this.b, x, lb.base.shape.map(whole), lb.st);
  }

  #one(base: LazyBuffer): ExportNode {
    const { op } = base;
    const { b } = this;
    const other = this.#standsFor(base);
    if (other !== undefined) return other;
    if (base.realized !== undefined || op === "EMPTY") return this.#weight(base);
    const function_ = recognised(this, base);
    if (function_ !== undefined) return function_;
    const srcs = base.sources;
    const shape = base.shape.map(whole);
    if (op === "CONST") return b.number(constantOf(base), writtenAs(base.dtype));
    if (op === "ARANGE") return b.cast(b.lattice(0, [1], shape), base.dtype);
    if (op === "COPY" || op === "CONTIGUOUS") return this.#same(srcs[0] as LazyBuffer, shape);
    if (op === "CAST")
      return this.#same(srcs[0] as LazyBuffer, shape, (x) => convert(b, x, writtenAs(base.dtype)));
    if (op === "BITCAST") return this.#same(srcs[0] as LazyBuffer, shape, (x) => this.#bits(base, x));
    if (op === "ASSIGN") return this.#assigned(base, shape);
    if (op === "SCAN") return loopResult(this, base);
    if (op !== undefined && isReduceOp(op)) return reduced(this, base, op as ReduceOp);
    if (op !== undefined && isAluOp(op)) return this.#elementwise(base, op, shape);
    throw new OnnxError(
      `save: the function uses a custom op, which a file cannot say; expected ops of tensors: write it with methods of Tensor`,
      { op: op ?? "" },
    );
  }
  /** What is repeated along a dim may have size 1 there; a number of rank 0 gets the rank. */
  #same(src: LazyBuffer, shape: readonly number[], change = (x: ExportNode): ExportNode => x): ExportNode {
    const made = change(this.operand(src));
    return made.shape.length === 0
      ? this.b.reshape(
          made,
          shape.map(() => 1),
        )
      : made;
  }
  #elementwise(base: LazyBuffer, op: AluOp, shape: readonly number[]): ExportNode {
    const xs = base.sources.map((s) => this.operand(s));
    const made = (op === "WHERE" ? boxSelected(this.b, xs, shape) : undefined) ?? alu(this.b, op, xs);
    return made.shape.length === 0
      ? this.b.reshape(
          made,
          shape.map(() => 1),
        )
      : made;
  }
  #bits(base: LazyBuffer, x: ExportNode): ExportNode {
    const [src] = base.sources as [LazyBuffer];
    if (writtenAs(src.dtype) === src.dtype && writtenAs(base.dtype) === base.dtype)
      return bitcast(this.b, x, base.dtype);
    throw new OnnxError(
      `save: the bits of ${src.dtype.name} are read as ${base.dtype.name}; expected types of at least a byte: cast the ` +
        "weights to an ordinary type and realize them before",
      { op: "BITCAST" },
    );
  }
  #assigned(base: LazyBuffer, shape: readonly number[]): ExportNode {
    const [value, target] = base.sources as [LazyBuffer, LazyBuffer];
    if (target.base.id >= this.since) return this.#same(value, shape);
    throw new OnnxError(
      `save: the function assigns to a tensor of shape [${shape.join(", ")}] that was there before; a file has no state: ` +
        "take the tensor as an input and return its new value as an output",
      { op: "ASSIGN" },
    );
  }
  #weight(base: LazyBuffer): ExportNode {
    const buffer = base.buffer;
    if (isDraw(buffer)) {
      throw new OnnxError(
        "save: the function draws random numbers, which would be the same in every run of the file; draw them outside " +
          "and pass them as an input, or leave dropout out: save runs the function as Tensor.noGrad does",
        { op: "RandomUniform" },
      );
    }
    const known = base.id < this.since ? undefined : constantIn(this.b, base);
    if (known !== undefined) return known;
    return this.b.node("Weight", {
      weight: base,
      shape: base.shape.map(whole),
      dtype: writtenAs(base.dtype),
    });
  }
}

export const sourcesOf = (base: LazyBuffer): readonly LazyBuffer[] =>
  base.realized === undefined ? (base.srcs ?? []) : [];
export function constantOf(base: LazyBuffer): number | bigint {
  const { arg } = base;
  return typeof arg === "bigint" ? arg : Number(arg);
}
