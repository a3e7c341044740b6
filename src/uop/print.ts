// A graph as a person would write it: the loops, then one line for each store, with the values that several
// lines need named before them. `data0[r0] = sum over r1 of data1[r0*4 + r1]`. For DEBUG=7, the docs and the
// viewer of passes.

import { toposort } from "../helpers.ts";
import type { AluOp } from "../ops.ts";
import type { Load, Memory, Range, Sink, Stage, Store, UOp } from "./node.ts";

/** How operators are written, and how strongly they bind: as in C. */
const INFIX: Partial<Record<AluOp, readonly [sign: string, strength: number]>> = {
  MUL: ["*", 12],
  DIV: ["/", 12],
  IDIV: ["//", 12],
  MOD: ["%", 12],
  ADD: ["+", 11],
  SUB: ["-", 11],
  SHL: ["<<", 10],
  SHR: [">>", 10],
  CMPLT: ["<", 9],
  CMPEQ: ["==", 8],
  CMPNE: ["!=", 8],
  AND: ["&", 7],
  XOR: ["^", 6],
  OR: ["|", 5],
};
const [ATOM, CHOICE, LOOSE] = [20, 2, 1];

/** The graph below a SINK as text. */
export function showGraph(sink: Sink): string {
  return new Printer(sink).run();
}

class Printer {
  readonly #sink: Sink;
  readonly #nodes: readonly UOp[];
  readonly #uses = new Map<UOp, number>();
  readonly #names = new Map<UOp, string>();
  readonly #lines: string[] = [];

  constructor(sink: Sink) {
    this.#sink = sink;
    this.#nodes = toposort<UOp>([sink], (u) => u.srcs);
    for (const u of this.#nodes) for (const s of u.srcs) this.#uses.set(s, (this.#uses.get(s) ?? 0) + 1);
  }

  run(): string {
    const ranges = this.#nodes.filter((u) => u.op === "RANGE").sort((a, b) => a.axis.id - b.axis.id);
    const loops = ranges.map((r) => `${this.#range(r)} < ${this.#show(r.end)} ${r.axis.kind}`);
    if (loops.length > 0) this.#lines.push(`loops: ${loops.join(", ")}`);
    for (const u of this.#nodes) if (this.#isNamed(u)) this.#name(u);
    for (const s of this.#sink.stores) this.#lines.push(this.#store(s));
    return this.#lines.join("\n");
  }

  /** A value that is needed at several places, or an array, gets a line of its own. */
  #isNamed(u: UOp): boolean {
    if (u.op === "STAGE" || u.op === "TILE") return true;
    const isLeaf = u.srcs.length === 0 || u.op === "RANGE" || u.op === "STORE";
    return !isLeaf && (this.#uses.get(u) ?? 0) > 1;
  }
  #name(u: UOp): void {
    const text = this.#whole(u);
    const name = u.op === "STAGE" ? u.array.name : `${u.op === "TILE" ? "tile" : "t"}${this.#names.size}`;
    this.#names.set(u, name);
    this.#lines.push(u.op === "STAGE" ? text : `${name} = ${text}`);
  }
  #show(u: UOp): string {
    return this.#names.get(u) ?? this.#whole(u);
  }
  /** In parentheses if it binds less strongly than what is around it. */
  #operand(u: UOp, strength: number): string {
    return this.#strength(u) < strength ? `(${this.#show(u)})` : this.#show(u);
  }
  #strength(u: UOp): number {
    if (this.#names.has(u)) return ATOM;
    if (u.op === "REDUCE") return LOOSE;
    if (u.op !== "ALU") return ATOM;
    return INFIX[u.fn]?.[1] ?? (u.fn === "WHERE" ? CHOICE : ATOM);
  }
  #list(us: readonly UOp[]): string {
    return us.map((u) => this.#show(u)).join(", ");
  }
  #range(r: Range): string {
    return `r${r.axis.id}`;
  }
  #memory(m: Memory): string {
    return m.op === "DEFINE_GLOBAL" || m.op === "DEFINE_LOCAL" ? m.name : this.#show(m);
  }
  /** `data0[i .. +4]` is a vector of four neighbours. */
  #access(u: Load | Store): string {
    const { buffer, index, gate } = u;
    const { count } = u.op === "LOAD" ? u.dtype : u.value.dtype;
    const vector = count === 1 ? "" : ` .. +${count}`;
    const condition = gate === undefined ? "" : ` if ${this.#show(gate)}`;
    return `${this.#memory(buffer)}[${this.#show(index)}${vector}${condition}]`;
  }
  #store(s: Store): string {
    return `${this.#access(s)} = ${this.#show(s.value)}`;
  }
  #stage({ stores, ranges, array }: Stage): string {
    const loops = ranges.length === 0 ? "" : `for ${ranges.map((r) => this.#range(r)).join(", ")}: `;
    const all = stores.map((s) => this.#store(s)).join("; ");
    return `${array.name}: ${loops}${all}`;
  }

  #whole(u: UOp): string {
    switch (u.op) {
      case "CONST":
        return String(u.value);
      case "DEFINE_VAR":
        return u.variable.name;
      case "RANGE":
        return this.#range(u);
      case "LOAD":
        return this.#access(u);
      case "STORE":
        return this.#store(u);
      case "ALU": {
        const infix = INFIX[u.fn];
        const [x, y, z] = u.operands;
        if (infix !== undefined && y !== undefined) {
          const [sign, strength] = infix;
          return `${this.#operand(x, strength)} ${sign} ${this.#operand(y, strength + 1)}`;
        }
        if (u.fn !== "WHERE" || y === undefined || z === undefined)
          return `${u.fn.toLowerCase()}(${this.#list(u.operands)})`;
        return [`${this.#operand(x, CHOICE + 1)} ?`, this.#show(y), ":", this.#operand(z, CHOICE)].join(" ");
      }
      case "CAST":
      case "BITCAST":
        return `${u.op.toLowerCase()}<${u.dtype.name}>(${this.#show(u.operand)})`;
      case "REDUCE": {
        const loops = u.ranges.map((r) => this.#range(r)).join(", ");
        const name = u.fn === "REDUCE_MAX" ? "max" : u.fn.toLowerCase();
        return `${name} over ${loops} of ${this.#operand(u.body, CHOICE)}`;
      }
      case "STAGE":
        return this.#stage(u);
      case "TILE":
        return u.tile.coordinates.length > 0
          ? `tile of ${this.#show(u.base)}`
          : `tile of ${this.#memory(u.buffer)} from ${this.#show(u.base)}`;
      case "VECTORIZE":
        return `<${this.#list(u.lanes)}>`;
      case "GEP":
        return `${this.#operand(u.vector, ATOM)}.${u.lane}`;
      case "ELEMENT":
        return `${this.#operand(u.vector, ATOM)}.[${this.#show(u.index)}]`;
      default:
        return "name" in u && typeof u.name === "string"
          ? u.name
          : `${u.op.toLowerCase()}(${this.#list(u.srcs)})`;
    }
  }
}
