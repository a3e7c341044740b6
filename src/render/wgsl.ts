// Linear UOps to WGSL, the language of WebGPU. One kernel is one module: its buffers are bindings of group 0
// in their order, its variables immediates or one uniform of group 1. Types and ops are in wgslops.ts, memory
// in wgslmemory.ts. float64 is refused by `support`.

import { rangesOf, type ValueBounds } from "../codegen/analysis/ranges.ts";
import { type Sharing, type Source, sourceOf } from "../codegen/target.ts";
import { type DType, dtypes, Pointer, scalarOf, type Value } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import { getOrMake, prod, range } from "../helpers.ts";
import { identifier, kernelIdentifier, ownIdentifier } from "../names.ts";
import type { UOpGraph } from "../uop/list.ts";
import type { TensorCore } from "../uop/matrix.ts";
import type { Alu, DefineGlobal, Expr, Memory, UOp, UOpName } from "../uop/node.ts";
import { allGlobals } from "./globals.ts";
import { carefulFloat } from "./wgslfloats.ts";
import { helperTexts } from "./wgslhelpers.ts";
import { IndexQuotients } from "./wgslindex.ts";
import type { MatrixSpelling } from "./wgslmatrix.ts";
import {
  type AccessIndex,
  dividedBy,
  elementType,
  type Layout,
  laneCount,
  layoutsOf,
  loadText,
  storeTexts,
} from "./wgslmemory.ts";
import { bitcast, cast, literal, type Need, spellOp, typeName } from "./wgslops.ts";
import { KernelWriter, lanesOf, type Prefix, refuseUOp, stripParens } from "./writer.ts";

/** What a kernel is given that is one of several in a module: its buffers are theirs, too. */
export interface SharedModule {
  /** the names of its buffers, and how their elements are reached */
  readonly names: readonly string[];
  readonly layouts: readonly Layout[];
  /** begins the names of its workgroup memory */
  readonly prefix: string;
  /** the name of what says whether a thread stores; those that do not have indexes of some that do */
  readonly guard?: string;
}

export class WGSLText extends KernelWriter {
  readonly buffers: DefineGlobal[];
  readonly variables: UOp<"DEFINE_VAR">[] = [];
  readonly locals: string[] = [];
  readonly local = [1, 1, 1];
  readonly sharing: Sharing;
  usesHalf = false;
  usesSubgroups = false;
  readonly #layouts: ReadonlyMap<Memory, Layout>;
  readonly matrices: ReadonlyMap<UOp, TensorCore>;
  readonly #spelling: MatrixSpelling | undefined;
  readonly prefix: string;
  readonly guard: string | undefined;
  readonly #uops: readonly UOp[];
  readonly quotients = new IndexQuotients((u) => this.text(u));
  #ranges: ReadonlyMap<UOp, ValueBounds> | undefined;
  /** what was read of the matrices whose elements are used */
  readonly #elements = new Map<UOp, readonly string[]>();

  /** `spelling`: of matrices of subgroups, where the device has them. `module`: one of several kernels. */
  constructor(
    uops: readonly UOp[],
    sharing: Sharing | undefined,
    spelling?: MatrixSpelling,
    module?: SharedModule,
  ) {
    super(uops);
    this.#uops = uops;
    this.#spelling = spelling;
    this.prefix = module?.prefix ?? "";
    this.guard = module?.guard;
    this.buffers = uops.filter((u) => u.op === "DEFINE_GLOBAL").toSorted((a, b) => a.position - b.position);
    this.sharing = sharing ?? ownMemory(this.buffers);
    const layouts = new Map(layoutsOf(uops, (u) => this.first(u)));
    this.buffers.forEach((u, i) => {
      const given = module?.layouts[i];
      if (given !== undefined) layouts.set(u, given);
    });
    this.#layouts = layouts;
    for (const u of uops)
      if (u.op === "LOAD" || u.op === "STORE")
        this.quotients.need(u.index, dividedBy(this.layout(u.buffer), laneCount(u)));
    this.matrices = spelling?.matricesOf(uops) ?? new Map();
    this.buffers.forEach((u, i) => {
      const first = this.first(u);
      const own = (): string => (first === u ? this.parameter(ownIdentifier(u.name)) : this.text(first));
      this.set(u, module?.names[i] ?? own());
    });
    for (const u of uops) {
      const d = u.dtype instanceof Pointer ? u.dtype.base : u.dtype;
      if (d !== undefined && scalarOf(d) === dtypes.float16) this.usesHalf = true;
      (RENDER[u.op] as (k: WGSLText, u: UOp) => void)(this, u);
    }
  }

  /** The buffer that stands for this one. */
  first(u: DefineGlobal): DefineGlobal {
    const at = this.sharing.sameAs[this.buffers.indexOf(u)];
    return (at === undefined ? undefined : this.buffers[at]) ?? u;
  }
  layout(memory: Memory): Layout {
    const known = this.#layouts.get(memory.op === "DEFINE_GLOBAL" ? this.first(memory) : memory);
    if (known === undefined) throw new InternalError(`${memory.op}: a list has no such memory`);
    return known;
  }

  /** vec2 and the like are types. */
  override fresh(prefix: Prefix): string {
    const name = super.fresh(prefix);
    return prefix === "vec" ? name.replace("vec", "lanes") : name;
  }
  need: Need = (name) => {
    this.helpers.add(name);
    return name;
  };
  override declare(_: UOp, prefix: Prefix, text: string): string {
    return this.named(text, prefix);
  }
  named(text: string, prefix: Prefix = "vec"): string {
    const name = this.fresh(prefix);
    this.line(`let ${name} = ${text};`);
    return name;
  }
  constant(d: DType, value: Value): string {
    const one = literal(scalarOf(d), value, this.need);
    return d.count === 1 ? one : `${typeName(d)}(${Array(d.count).fill(one).join(",")})`;
  }
  lane(u: Expr, i: number): string {
    if (u.op === "CONST") return literal(scalarOf(u.dtype), u.value, this.need);
    const core = this.matrices.get(u);
    if (core !== undefined) return this.#elementsOf(u, core)[i] as string;
    return lanesOf(u) === 1 ? this.text(u) : `${this.text(u)}[${i}]`;
  }
  get spelling(): MatrixSpelling {
    if (this.#spelling === undefined) throw new InternalError("this WGSL has no matrices of subgroups");
    return this.#spelling;
  }
  #elementsOf(matrix: Expr, core: TensorCore): readonly string[] {
    return getOrMake(this.#elements, matrix, () => {
      const { before, elements } = this.spelling.elements(this.text(matrix), core);
      for (const line of before) this.line(line);
      return elements.map((text) => this.named(text));
    });
  }
  perLane(d: DType, operands: readonly Expr[], spell: (...xs: string[]) => string): string {
    const lanes = range(d.count).map((i) => spell(...operands.map((x) => this.lane(x, i))));
    return d.count === 1 ? (lanes[0] ?? "") : `${typeName(d)}(${lanes.join(",")})`;
  }
  alu(u: Alu): string {
    const d = scalarOf(u.operandType);
    const careful = d.isFloat ? carefulFloat(u, d, this) : this.#unsignedDivision(u, d);
    return careful ?? this.perLane(u.dtype, u.operands, (...xs) => spellOp(u.fn, d, this.need, xs));
  }
  /**
   * A quotient or remainder of a number that is not negative, by a constant: as of unsigned numbers, since
   * WGSL has those of signed ones checked for what cannot be here.
   */
  #unsignedDivision({ fn, dtype, operands }: Alu, d: DType): string | undefined {
    const [a, by] = fn === "IDIV" || fn === "MOD" ? operands : [];
    if (d !== dtypes.int32 || a === undefined || by?.op !== "CONST") return undefined;
    this.#ranges ??= rangesOf(this.#uops);
    const n = Number(by.value);
    if (n <= 0 || !((this.#ranges.get(a)?.[0] ?? -1) >= 0)) return undefined;
    const bits = Math.log2(n);
    return this.perLane(dtype, [a], (x) => {
      if (Number.isInteger(bits)) return fn === "IDIV" ? `(${x}>>${bits}u)` : `(${x}&${n - 1})`;
      return `i32(u32(${x})${fn === "IDIV" ? "/" : "%"}${n}u)`;
    });
  }
  /** An index; one of 64 bits has its value in the low word, since no buffer is larger. */
  at(index: Expr): AccessIndex {
    const text = index.dtype.isBig ? `(${this.text(index)}).x` : stripParens(this.text(index));
    const over = (n: number): string =>
      n === 1 ? text : (this.quotients.of(index, n) ?? `(${text})>>${Math.log2(n)}u`);
    return { text, over };
  }
}

const ownMemory = (buffers: readonly DefineGlobal[]): Sharing => ({
  sameAs: buffers.map((_, i) => i),
  written: buffers.map((u) => u.isWritten),
});

const RENDER: { readonly [K in UOpName]: (k: WGSLText, u: UOp<K>) => void } = {
  // named before the walk: one may stand for another
  DEFINE_GLOBAL: () => {},
  DEFINE_VAR: (k, u) => {
    k.variables.push(u);
    k.set(u, `vars.${k.parameter(identifier(u.variable.name))}`);
  },
  DEFINE_LOCAL: (k, u) => {
    const name = k.parameter(k.prefix + ownIdentifier(u.name));
    const layout = k.layout(u);
    const [type, size] = [
      elementType(u.dtype.base, layout),
      Math.ceil(u.elements / (layout.width * layout.perWord)),
    ];
    k.locals.push(`var<workgroup> ${name}: array<${type}, ${size}>;`);
    k.set(u, name);
  },
  DEFINE_ACC: (k, u) => {
    const name = k.fresh("acc");
    const core = k.matrices.get(u);
    if (core !== undefined) {
      // it starts as zeros
      if (Number(u.initial) !== 0) throw new InternalError(`a sum of matrices starts at ${u.initial}`);
      k.line(`var ${name}: ${k.spelling.resultType(core)};`);
      return k.set(u, name);
    }
    k.line(`var ${name}: ${typeName(u.dtype)} = ${k.constant(u.dtype, u.initial)};`);
    k.set(u, name);
  },
  SPECIAL: (k, u) => {
    const { dimension, size } = u;
    const name = ownIdentifier(u.name);
    const isGroup = name.startsWith("g");
    if (!isGroup) k.local[dimension] = size;
    k.line(`let ${name} = i32(${isGroup ? "gid" : "lid"}.${"xyz"[dimension]}); /* ${size} */`);
    k.set(u, name);
  },
  CONST: (k, u) => k.set(u, k.constant(u.dtype, u.value)),
  LOOP: (k, u) => {
    const i = k.fresh("ridx");
    k.open(`for (var ${i}: i32 = ${k.text(u.start)}; ${i} < ${k.text(u.end)}; ${i}++) {`);
    k.set(u, i);
  },
  ENDLOOP: (k) => k.close(),
  IF: (k, u) => k.open(`if (${stripParens(k.text(u.condition))}) {`),
  ENDIF: (k) => k.close(),
  LOAD: (k, u) => {
    const { buffer, index, gate, otherwise, dtype: d } = u;
    const load = (): string =>
      loadText(k.text(buffer), scalarOf(d), k.layout(buffer), k.at(index), d.count, (text) => k.named(text));
    if (gate === undefined) return k.set(u, k.declare(u, "val", load()));
    // select would read the memory in any case
    const name = k.fresh("val");
    k.line(`var ${name}: ${typeName(d)} = ${k.text(otherwise)};`);
    k.open(`if (${stripParens(k.text(gate))}) {`);
    k.line(`${name} = ${load()};`);
    k.close();
    k.set(u, name);
  },
  STORE: (k, u) => {
    const { buffer, index, value, gate } = u;
    const count = lanesOf(value);
    const gates = [
      ...(k.guard === undefined ? [] : [k.guard]),
      ...(gate === undefined ? [] : [k.text(gate)]),
    ];
    if (gates.length > 0) k.open(`if (${stripParens(gates.join(" && "))}) {`);
    const text = k.text(value);
    const layout = k.layout(buffer);
    const d = scalarOf(value.dtype);
    const store = (lanes: readonly string[]): void => {
      for (const line of storeTexts(k.text(buffer), d, layout, k.at(index), lanes)) k.line(line);
    };
    if (count === layout.width) store([text]);
    else {
      const name = /^\w+$/.test(text) ? text : k.named(text);
      store(range(count).map((i) => `${name}[${i}]`));
    }
    if (gates.length > 0) k.close();
  },
  ALU: (k, u) => {
    k.value(u, "alu", k.alu(u));
    if (/^\w+$/.test(k.text(u))) k.quotients.declare(u, (text) => k.declare(u, "alu", text));
  },
  CAST: (k, u) => {
    const [to, from] = [scalarOf(u.dtype), scalarOf(u.operand.dtype)];
    k.value(
      u,
      "cast",
      k.perLane(u.dtype, [u.operand], (x = "") => cast(to, from, x, k.need)),
    );
  },
  BITCAST: (k, u) => {
    const [to, from] = [scalarOf(u.dtype), scalarOf(u.operand.dtype)];
    k.value(
      u,
      "cast",
      k.perLane(u.dtype, [u.operand], (x = "") => bitcast(to, from, x)),
    );
  },
  PHI: (k, u) => {
    k.line(`${k.text(u.accumulator)} = ${k.text(u.value)};`);
    k.set(u, k.text(u.accumulator));
  },
  BARRIER: (k) => k.line("workgroupBarrier();"),
  SHFL: (k, u) => {
    k.usesSubgroups = true;
    const isBool = u.dtype.kind === "bool";
    const value = isBool ? `select(0u,1u,${k.text(u.operand)})` : k.text(u.operand);
    const other = `subgroupShuffleXor(${value},${u.mask}u)`;
    k.set(u, k.declare(u, "val", isBool ? `(${other}!=0u)` : other));
  },
  LDFRAGMENT: (k, u) => {
    k.set(u, k.declare(u, "val", k.spelling.load(k.text(u.buffer), k.at(u.index).text, u.operandLoad)));
  },
  WMMA: (k, u) => {
    const { a, b, c, core } = u;
    const before = c === undefined || c.op === "CONST" ? `${k.spelling.resultType(core)}()` : k.text(c);
    k.set(u, k.declare(u, "val", k.spelling.multiply(k.text(a), k.text(b), before)));
  },
  // the target has no asynchronous copies, and no matrices whose elements threads hold
  ASYNC: refuseUOp,
  COMMIT: refuseUOp,
  WAIT: refuseUOp,
  LDMATRIX: refuseUOp,
  TILE: refuseUOp,
  ELEMENT: refuseUOp,
  GEP: (k, u) => k.value(u, "val", k.lane(u.vector, u.lane)),
  VECTORIZE: (k, u) => {
    const lanes = u.lanes.map((x) => k.text(x)).join(",");
    k.value(u, "vec", `${typeName(u.dtype)}(${lanes})`);
  },
  RANGE: refuseUOp,
  REDUCE: refuseUOp,
  STAGE: refuseUOp,
  SINK: refuseUOp,
};

/** Whether the variables fit what a pass takes without a buffer. */
const areImmediate = ({ variables }: WGSLText, bytes: number): boolean =>
  variables.length > 0 && 4 * variables.length <= bytes;

export const bindingText = (binding: number, name: string, element: string, isWritten: boolean): string =>
  `@group(0) @binding(${binding}) var<storage, ${isWritten ? "read_write" : "read"}> ${name}: array<${element}>;`;

/** The bindings: buffers by their order, then all variables as one struct. */
function bindings(k: WGSLText, immediates: number): string[] {
  const buffers = k.buffers.flatMap((u, i) => {
    if (k.first(u) !== u) return [];
    return [bindingText(i, k.text(u), elementType(u.dtype.base, k.layout(u)), k.sharing.written[i] === true)];
  });
  if (k.variables.length === 0) return buffers;
  const members = k.variables.map((u) => `${k.text(u).slice("vars.".length)}: i32`).join(", ");
  const vars = areImmediate(k, immediates)
    ? "var<immediate> vars: Vars;"
    : "@group(1) @binding(0) var<uniform> vars: Vars;";
  return [...buffers, `struct Vars { ${members} }`, vars];
}

/** The text of a module with one entry point, `name`. */
export const uopsToWGSL = (name: string, uops: UOpGraph | readonly UOp[], sharing?: Sharing): string =>
  moduleOf(name, new WGSLText([...allGlobals("uopsToWGSL", uops)], sharing));

function moduleOf(name: string, k: WGSLText, immediates = 0): string {
  const [core] = k.matrices.values();
  const args = [
    "@builtin(workgroup_id) gid: vec3<u32>, @builtin(local_invocation_id) lid: vec3<u32>",
    ...(core === undefined ? [] : ["@builtin(local_invocation_index) lidx: u32"]),
  ].join(", ");
  return [
    ...(k.usesHalf ? ["enable f16;"] : []),
    ...(k.usesSubgroups || core !== undefined ? ["enable subgroups;"] : []),
    ...(core === undefined ? [] : k.spelling.enable),
    ...(areImmediate(k, immediates) ? ["requires immediate_address_space;"] : []),
    ...bindings(k, immediates),
    ...k.locals,
    ...(core === undefined ? [] : [k.spelling.room(core, prod(k.local))]),
    ...helperTexts(k.helpers),
    `@compute @workgroup_size(${k.local.join(", ")}) fn ${kernelIdentifier(name)}(${args}) {`,
    ...k.lines,
    "}",
  ].join("\n");
}

/** `immediates`: bytes of variables that the device takes without a buffer. */
export function renderWGSL(
  name: string,
  uops: UOpGraph,
  immediates = 0,
  spelling?: MatrixSpelling,
): Source<string> {
  const k = new WGSLText([...uops], undefined, spelling);
  return sourceOf(moduleOf(name, k, immediates), {
    buffers: k.buffers.length,
    vals: k.variables.length,
    binding: {
      uops,
      written: k.sharing.written,
      types: k.buffers.map((u) => u.dtype.base.name),
      immediate: areImmediate(k, immediates),
      shared: (sharing) => moduleOf(name, new WGSLText([...uops], sharing, spelling), immediates),
    },
  });
}
