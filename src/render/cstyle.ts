// Linear UOps to the text of one kernel in a language like C. A language is a table of spellings
// (languages.ts); this file walks the list once, decides what is inlined and what gets a name, and writes
// lines. It leaves decomposition, clamps and guards to codegen, and the meaning of each op to spelling.ts.

import { type Source, sourceOf } from "../codegen/target.ts";
import { type DType, dtypes, Pointer, scalarOf } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import type { NativeOps } from "../ops.ts";
import type { UOpGraph } from "../uop/list.ts";
import type { TensorCore } from "../uop/matrix.ts";
import { type UOp, type UOpName, valueType } from "../uop/node.ts";
import { extremeOf } from "./extreme.ts";
import { overflowing } from "./overflow.ts";
import { literal, type Spell, spellCast, type Words } from "./spelling.ts";
import {
  isByLane,
  vectorAlu,
  vectorBitcast,
  vectorCast,
  vectorExtreme,
  vectorFma,
  vectorLane,
  vectorMake,
  vectorMemory,
  vectorRead,
  vectorUnsigned,
  vectorWritten,
} from "./vectors.ts";
import { KernelWriter, lanesOf, type Prefix, refuseUOp, stripParens } from "./writer.ts";

/**
 * The types and the text of a finished body: what a language needs to know to write what stands before it.
 */
export interface KernelFacts {
  readonly scalars: ReadonlySet<DType>;
  readonly vectors: ReadonlySet<DType>;
  readonly body: string;
}

/**
 * What the items of a warp do together, and copies that they do not wait for. `helper` is a function that a
 * text calls.
 */
export interface WarpWords {
  /** the value of the item whose place in the warp differs by these bits */
  readonly shuffle: (x: string, mask: number) => string;
  readonly copy: (to: string, from: string, bytes: number) => Helped;
  readonly commit: string;
  readonly wait: (left: number) => string;
  readonly loadMatrix: (address: string, words: number, turned: boolean) => Helped;
  readonly multiply: (core: TensorCore, a: string, b: string, c: string) => Helped;
}
export interface Helped {
  readonly text: string;
  readonly helper: string;
}

/** What is known of a kernel when it is spelt. */
export type Size = Pick<KernelText, "items" | "dynamicShared" | "multiplies" | "copies" | "accumulators">;

/** All that differs between the languages, as data. */
export interface CStyleLanguage extends Words {
  readonly kernelPrefix: string;
  readonly bufferPrefix: string;
  readonly smemPrefix: string;
  /** stands before smemPrefix, so that vectors can be read from the array */
  readonly smemAlign: string;
  /** pointers are cast with the address space in front */
  readonly prefixForCast: boolean;
  readonly argIntPrefix: string;
  readonly barrier: string;
  /** undefined where the items of a warp do nothing together */
  readonly warp: WarpWords | undefined;
  /**
   * bytes of shared memory that a kernel can declare; where it takes more, the launch says how much
   * (`sharedBytes`)
   */
  readonly staticShared: number;
  /**
   * What stands between `void` and the name of a kernel: how large its workgroups are, and what it keeps in
   * registers.
   */
  readonly launchBounds: (size: Size) => string;
  /** how a float4 is made; other vectors replace the name in it */
  readonly float4: string;
  readonly vectorBrackets: readonly [string, string];
  /** `*(data0+i)` instead of `data0[i]` */
  readonly usesPtrArithmetic: boolean;
  readonly extraArgs: readonly string[];
  /**
   * the group id and the local id along a dimension; absent where the caller says which part of a loop to do
   */
  readonly codeForWorkitem: Readonly<Record<"g" | "l", (dim: number) => string>> | undefined;
  readonly codeForOp: NativeOps<Spell>;
  readonly lane: (vector: string, lane: number, count: number) => string;
  readonly bitcast: (to: DType, from: DType, x: string) => string;
  /** a function that `bitcast` calls, if it does */
  readonly bitcastHelper: (to: DType, from: DType) => string;
  /** vectors are operands like any other, as vectors.ts says; otherwise they are computed lane by lane */
  readonly hasVectors: boolean;
  /** MULACC of float32 rounds once */
  readonly fused: boolean;
  /** signed integers wrap (under `flags`) */
  readonly wrapsSigned: boolean;
  /** what the compiler must be told for the text to mean what ops.ts says */
  readonly flags: readonly string[];
  readonly preamble: (facts: KernelFacts) => readonly string[];
}

/** The array that all of a kernel's shared memory is in, where its size is the launch's to say. */
const SHARED_MEMORY = "shared_memory";

/** What a kernel takes of shared memory, each array at a multiple of 16. */
const sharedBytes = (uops: Iterable<UOp>): number => {
  let bytes = 0;
  for (const u of uops) {
    if (u.op !== "DEFINE_LOCAL") continue;
    bytes += Math.ceil((u.arg[1] * (u.dtype as Pointer).base.itemsize) / 16) * 16;
  }
  return bytes;
};

class KernelText extends KernelWriter {
  readonly buffers: UOp<"DEFINE_GLOBAL">[] = [];
  readonly variables: UOp<"DEFINE_VAR">[] = [];
  readonly scalars = new Set<DType>();
  readonly vectors = new Set<DType>();
  readonly language: CStyleLanguage;
  /** what follows runs for a part of a loop, from begin to end */
  part = false;
  /** of a workgroup */
  items = 1;
  /** it has WMMA; it copies to shared memory ahead */
  multiplies = false;
  copies = false;
  /** elements of all accumulators of an item */
  accumulators = 0;
  /** bytes of shared memory so far */
  shared = 0;
  /**
   * shared memory is one array of so many bytes, which the launch has to give; 0: the text declares all of it
   */
  readonly dynamicShared: number;
  readonly #unsigned: ReadonlySet<UOp>;

  constructor(language: CStyleLanguage, uops: readonly UOp[]) {
    super(uops, language.hasVectors ? isByLane : undefined);
    this.language = language;
    this.#unsigned = language.wrapsSigned ? new Set() : overflowing(uops);
    for (const u of uops) this.#note(u);
    const bytes = sharedBytes(uops);
    this.dynamicShared = bytes > language.staticShared ? bytes : 0;
    if (this.dynamicShared > 0) {
      const { smemAlign, smemPrefix } = language;
      this.line(`extern ${smemAlign}${smemPrefix}unsigned char ${SHARED_MEMORY}[];`);
    }
    for (const u of uops) (RENDER[u.op] as (k: KernelText, u: UOp) => void)(this, u);
    if (this.part) this.close();
  }

  #note(u: UOp): void {
    if (u.dtype === undefined) return;
    const d = u.dtype instanceof Pointer ? u.dtype.base : u.dtype;
    this.scalars.add(scalarOf(d));
    if (d.count > 1) this.vectors.add(d);
  }

  override declare(u: UOp, prefix: Prefix, text: string): string {
    const name = this.fresh(prefix);
    this.line(`${this.language.typeName(valueType(u))} ${name} = ${text};`);
    return name;
  }

  vector(d: DType, lanes: readonly string[]): string {
    if (this.language.hasVectors) return vectorMake(d, lanes);
    const [open, close] = this.language.vectorBrackets;
    return `${this.language.float4.replace("float4", this.language.typeName(d))}${open}${lanes.join(",")}${close}`;
  }
  constant(d: DType, value: number | bigint): string {
    const one = literal(this.language, scalarOf(d), value);
    return d.count === 1 ? one : this.vector(d, Array<string>(d.count).fill(one));
  }

  /** Lane by lane where a vector is computed: not every language has operators on vectors. */
  perLane(d: DType, srcs: readonly UOp[], spell: (...srcs: string[]) => string): string {
    const lanes = Array.from({ length: d.count }, (_, i) => spell(...srcs.map((s) => this.lane(s, i))));
    return d.count === 1 ? (lanes[0] ?? "") : this.vector(d, lanes);
  }
  lane(u: UOp, i: number): string {
    if (lanesOf(u) === 1) return this.text(u);
    if (u.op === "CONST") return literal(this.language, scalarOf(valueType(u)), u.arg);
    if (this.language.hasVectors) return vectorLane(valueType(u), this.text(u), i);
    return this.language.lane(this.text(u), i, lanesOf(u));
  }
  /** The value as one expression on whole vectors, where it is a vector and the language can. */
  whole(u: UOp, spell: (from: DType, ...srcs: string[]) => string | undefined): string | undefined {
    if (!this.language.hasVectors || lanesOf(u) === 1) return undefined;
    return spell(valueType(u.srcs.at(-1) as UOp), ...u.srcs.map((s) => this.text(s)));
  }

  alu(u: UOp<"ALU">): string {
    const last = u.srcs.at(-1);
    const type = scalarOf(valueType(last ?? u));
    if (this.language.fused && u.arg === "MULACC" && type === dtypes.float32) {
      const xs = u.srcs.map((x) => this.text(x));
      return lanesOf(u) > 1 ? vectorFma(valueType(u), ...xs) : `__builtin_fmaf(${xs.join(",")})`;
    }
    const [condition] = u.srcs;
    const extreme = this.language.hasVectors && lanesOf(u) > 1 && type.isFloat ? extremeOf(u) : undefined;
    if (extreme !== undefined && !isByLane(u))
      return vectorExtreme(extreme.largest)(valueType(u), ...extreme.of.map((x) => this.text(x)));
    const unsigned = this.#unsigned.has(u);
    const whole = this.whole(u, (d, ...xs) =>
      unsigned
        ? vectorUnsigned(u.arg, d, ...xs)
        : u.arg === "WHERE" && lanesOf(condition) === 1
          ? `(${xs[0]}?${xs[1]}:${xs[2]})`
          : vectorAlu(u.arg, d, ...xs),
    );
    if (whole !== undefined) return whole;
    const spell = this.language.codeForOp[u.arg];
    if (spell === undefined)
      throw new InternalError(`${u.arg}: the language has none; codegen decomposes it`);
    if (!unsigned) return this.perLane(valueType(u), u.srcs, (...xs) => spell(type, ...xs));
    const { typeName } = this.language;
    const twin = type.itemsize === 8 ? dtypes.uint64 : dtypes.uint32;
    const cast = (x: string, i: number): string =>
      u.arg === "SHL" && i === 1 ? x : `(${typeName(twin)})(${x})`;
    return this.perLane(
      valueType(u),
      u.srcs,
      (...xs) => `(${typeName(type)})${spell(twin, ...xs.map(cast))}`,
    );
  }

  /** Only a sum stands beside the plus without brackets: other operators may bind less. */
  address(buffer: UOp | undefined, idx: UOp | undefined): string {
    const at = this.text(idx);
    return `${this.text(buffer)}+${idx?.op === "ALU" && idx.arg === "ADD" ? stripParens(at) : at}`;
  }
  /** An element, or `d.count` elements from `idx` on. */
  access(buffer: UOp | undefined, idx: UOp | undefined, d: DType): string {
    const { usesPtrArithmetic, prefixForCast, bufferPrefix, smemPrefix, typeName } = this.language;
    const at = this.text(idx);
    const pointer = this.address(buffer, idx);
    if (d.count > 1) {
      const local = buffer?.dtype instanceof Pointer && buffer.dtype.local;
      const space = prefixForCast ? (local ? smemPrefix : bufferPrefix) : "";
      const type = this.language.hasVectors ? vectorMemory(d) : d;
      return `*((${space}${typeName(type)}*)(${pointer}))`;
    }
    return usesPtrArithmetic ? `*(${pointer})` : `${this.text(buffer)}[${stripParens(at)}]`;
  }

  warp(u: UOp): WarpWords {
    const { warp } = this.language;
    if (warp === undefined)
      throw new InternalError(`${u.op}: in this language the items of a warp do nothing together`);
    return warp;
  }
  helped({ text, helper }: Helped): string {
    this.helpers.add(helper);
    return text;
  }

  bitcast(u: UOp<"BITCAST">): string {
    const [wide, given] = [valueType(u), valueType(u.srcs[0] as UOp)];
    if (wide.count !== given.count) {
      this.helpers.add(this.language.bitcastHelper(wide, given));
      return this.language.bitcast(wide, given, this.text(u.srcs[0]));
    }
    const whole = this.whole(u, (d, x = "") => vectorBitcast(valueType(u), d, x));
    if (whole !== undefined) return whole;
    const [to, from] = [scalarOf(valueType(u)), scalarOf(valueType(u.srcs[0] as UOp))];
    const helper = this.language.bitcastHelper(to, from);
    if (helper !== "") this.helpers.add(helper);
    // C computes narrow types in int, and the bits of an int are not the bits of a char
    const exact = (x: string): string => (from.itemsize < 4 ? `(${this.language.typeName(from)})(${x})` : x);
    return this.perLane(valueType(u), u.srcs, (x = "") => this.language.bitcast(to, from, exact(x)));
  }
}

const RENDER: { readonly [K in UOpName]: (k: KernelText, u: UOp<K>) => void } = {
  DEFINE_GLOBAL: (k, u) => {
    k.buffers.push(u);
    k.set(u, u.arg[1]);
  },
  DEFINE_VAR: (k, u) => {
    k.variables.push(u);
    k.set(u, u.arg.name);
  },
  DEFINE_LOCAL: (k, u) => {
    const [name, size] = u.arg;
    const { smemAlign, smemPrefix, typeName } = k.language;
    const { base } = u.dtype as Pointer;
    if (k.dynamicShared > 0)
      k.line(`${typeName(base)}* ${name} = (${typeName(base)}*)(${SHARED_MEMORY}+${k.shared});`);
    else k.line(`${smemAlign}${smemPrefix}${typeName(base)} ${name}[${size}];`);
    k.shared += Math.ceil((size * base.itemsize) / 16) * 16;
    k.set(u, name);
  },
  DEFINE_ACC: (k, u) => {
    k.accumulators += lanesOf(u);
    k.set(u, k.declare(u, "acc", k.constant(valueType(u), u.arg)));
  },
  SPECIAL: (k, u) => {
    const [dim, name, size] = u.arg;
    k.set(u, name);
    if (name.startsWith("l")) k.items *= size;
    const code = k.language.codeForWorkitem?.[name.startsWith("g") ? "g" : "l"];
    if (code !== undefined) k.line(`int ${name} = ${code(dim)}; /* ${size} */`);
    else if (name !== "gidx0" || k.part) {
      throw new InternalError(
        `SPECIAL ${name}: this language has no grid of work items, only parts of one loop`,
      );
    } else {
      k.part = true;
      k.open(`for (int ${name} = begin; ${name} < end; ${name}++) { /* ${size} */`);
    }
  },
  CONST: (k, u) => k.set(u, k.constant(valueType(u), u.arg)),
  LOOP: (k, u) => {
    const i = k.fresh("ridx");
    k.open(`for (int ${i} = ${k.text(u.srcs[0])}; ${i} < ${k.text(u.srcs[1])}; ${i}++) {`);
    k.set(u, i);
  },
  ENDLOOP: (k) => k.close(),
  IF: (k, u) => k.open(`if (${stripParens(k.text(u.srcs[0]))}) {`),
  ENDIF: (k) => k.close(),
  LOAD: (k, u) => {
    const [buffer, idx, gate, alt] = u.srcs;
    const read = k.access(buffer, idx, valueType(u));
    const element = k.language.hasVectors && lanesOf(u) > 1 ? vectorRead(valueType(u), read) : read;
    k.set(
      u,
      k.declare(u, "val", gate === undefined ? element : `(${k.text(gate)}?${element}:${k.text(alt)})`),
    );
  },
  STORE: (k, u) => {
    const [buffer, idx, value, gate] = u.srcs;
    const condition = gate === undefined ? "" : `if (${stripParens(k.text(gate))}) `;
    const d = valueType(value as UOp);
    const text = k.language.hasVectors && d.count > 1 ? vectorWritten(d, k.text(value)) : k.text(value);
    k.line(`${condition}${k.access(buffer, idx, d)} = ${text};`);
  },
  ALU: (k, u) => k.value(u, "alu", k.alu(u)),
  CAST: (k, u) => {
    const from = scalarOf(valueType(u.srcs[0] as UOp));
    const spell = (x = ""): string => spellCast(k.language, scalarOf(valueType(u)), from, x);
    const whole = k.whole(u, (d, x = "") => vectorCast(valueType(u), d, x));
    k.value(u, "cast", whole ?? k.perLane(valueType(u), u.srcs, spell));
  },
  BITCAST: (k, u) => k.value(u, "cast", k.bitcast(u)),
  PHI: (k, u) => {
    const [acc, value] = u.srcs;
    k.line(`${k.text(acc)} = ${k.text(value)};`);
    k.set(u, k.text(acc));
  },
  BARRIER: (k) => {
    if (k.language.barrier !== "") k.line(k.language.barrier);
  },
  SHFL: (k, u) => k.set(u, k.declare(u, "val", k.warp(u).shuffle(k.text(u.srcs[0]), u.arg))),
  ASYNC: (k, u) => {
    k.copies = true;
    const [to, place, from, index, gate] = u.srcs;
    const bytes = u.arg * ((from as UOp).dtype as Pointer).base.itemsize;
    const copy = k.helped(k.warp(u).copy(k.address(to, place), k.address(from, index), bytes));
    k.line(`${gate === undefined ? "" : `if (${stripParens(k.text(gate))}) `}${copy};`);
  },
  COMMIT: (k, u) => k.line(k.warp(u).commit),
  WAIT: (k, u) => k.line(k.warp(u).wait(u.arg)),
  LDMATRIX: (k, u) => {
    const address = k.address(u.srcs[0], u.srcs[1]);
    k.set(u, k.declare(u, "val", k.helped(k.warp(u).loadMatrix(address, lanesOf(u), u.arg))));
  },
  WMMA: (k, u) => {
    const [a, b, c] = u.srcs;
    k.multiplies = true;
    const zero = k.constant(valueType(u), 0);
    const text = k.warp(u).multiply(u.arg, k.text(a), k.text(b), c === undefined ? zero : k.text(c));
    k.set(u, k.declare(u, "val", k.helped(text)));
  },
  GEP: (k, u) => k.value(u, "val", k.lane(u.srcs[0] as UOp, u.arg)),
  VECTORIZE: (k, u) =>
    k.value(
      u,
      "vec",
      k.vector(
        valueType(u),
        u.srcs.map((s) => k.text(s)),
      ),
    ),
  RANGE: refuseUOp,
  REDUCE: refuseUOp,
  STAGE: refuseUOp,
  TILE: refuseUOp,
  ELEMENT: refuseUOp,
  SINK: refuseUOp,
};

function parameters(k: KernelText): string {
  const { bufferPrefix, argIntPrefix, extraArgs, typeName } = k.language;
  const buffers = k.buffers
    .toSorted((a, b) => a.arg[0] - b.arg[0])
    .map((u) => {
      const [, name, mutable] = u.arg;
      return `${mutable ? "" : "const "}${bufferPrefix}${typeName((u.dtype as Pointer).base)}* ${name}`;
    });
  const variables = k.variables.map((u) => `${argIntPrefix} ${u.arg.name}`);
  const part = k.part ? ["const int begin", "const int end"] : [];
  return [...buffers, ...variables, ...part, ...extraArgs].join(", ");
}

/** The text of a kernel. */
export const uopsToCStyle = (
  language: CStyleLanguage,
  name: string,
  uops: UOpGraph | readonly UOp[],
): string => renderCStyle(language, name, uops).code;

/** A kernel that takes its buffers by position and then its variables. */
export function renderCStyle(
  language: CStyleLanguage,
  name: string,
  uops: UOpGraph | readonly UOp[],
): Source<string> {
  const k = new KernelText(language, [...uops]);
  const body = k.lines.join("\n");
  const before = [...language.preamble({ scalars: k.scalars, vectors: k.vectors, body }), ...k.helpers];
  const bounds = k.items > 1 ? language.launchBounds(k) : "";
  const head = `${language.kernelPrefix}void ${bounds}${name}(${parameters(k)}) {`;
  return sourceOf(`${before.map((line) => `${line}\n`).join("")}${head}\n${body}\n}`, {
    buffers: k.buffers.length,
    vals: k.variables.length,
    isPart: k.part,
    dynamicShared: k.dynamicShared,
  });
}
