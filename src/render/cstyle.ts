// Linear UOps to the text of one kernel in a language like C. A language is a table of spellings
// (languages.ts); this file walks the list once, decides what is inlined and what gets a name, and writes
// lines. It leaves decomposition, clamps and guards to codegen, and the meaning of each op to spelling.ts.

import { type Source, sourceOf } from "../codegen/target.ts";
import { type DType, dtypes, Pointer, scalarOf } from "../dtype.ts";
import { InternalError } from "../errors.ts";
import { identifier, kernelIdentifier, ownIdentifier } from "../names.ts";
import type { NativeOps } from "../ops.ts";
import type { UOpGraph } from "../uop/list.ts";
import type { Alu, Expr, Memory, UOp, UOpName } from "../uop/node.ts";
import { allGlobals } from "./globals.ts";
import { minMaxOf } from "./minmax.ts";
import { overflowing } from "./overflow.ts";
import { literal, type Spell, spellCast, type Words } from "./spelling.ts";
import {
  isByLane,
  vectorAlu,
  vectorBitcast,
  vectorCast,
  vectorFma,
  vectorLane,
  vectorMake,
  vectorMemory,
  vectorMinMax,
  vectorRead,
  vectorUnsigned,
  vectorWritten,
} from "./vectors.ts";
import type { Helped, WarpWords } from "./warp.ts";
import { KernelWriter, lanesOf, type Prefix, refuseUOp, stripParens } from "./writer.ts";

/**
 * The types and the text of a finished body: what a language needs to know to write what stands before it.
 */
export interface BodyFacts {
  readonly scalars: ReadonlySet<DType>;
  readonly vectors: ReadonlySet<DType>;
  readonly body: string;
}

/** 2-D images (src/images.ts): pixels of four float32 at (x, y). */
export interface ImageWords {
  /** what stands before the name of a parameter */
  readonly parameter: (isWritten: boolean) => string;
  /** a line at the start of every kernel that has an image */
  readonly sampler: string;
  readonly read: (image: string, at: string) => string;
  readonly write: (image: string, at: string, value: string) => string;
}

/** What is known of a kernel once its body is written. */
export type LaunchFacts = Pick<
  KernelText,
  "threads" | "dynamicShared" | "multiplies" | "copies" | "accumulators"
>;

/** Everything that differs between the languages, as data. */
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
  /** absent where there are no images */
  readonly images?: ImageWords;
  /** undefined where the threads of a warp do nothing together */
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
  readonly launchBounds: (size: LaunchFacts) => string;
  /** what stands before kernelPrefix, where something does */
  readonly attributes?: (size: LaunchFacts) => string;
  /** how a float4 is made; other vectors replace the name in it */
  readonly float4: string;
  readonly vectorBrackets: readonly [string, string];
  /** how a vector is made that is not made like a float4 */
  readonly longVector?: (d: DType, lanes: readonly string[]) => string | undefined;
  /** `*(data0+i)` instead of `data0[i]` */
  readonly usesPtrArithmetic: boolean;
  readonly extraArgs: readonly string[];
  /**
   * the group id and the local id along a dimension; absent where the caller says which part of a loop to do
   */
  readonly codeForWorkitem: Readonly<Record<"g" | "l", (dim: number) => string>> | undefined;
  /**
   * how a kernel knows which part of a loop of `size` it does: lines that declare `begin` and `end`; absent
   * where the caller gives both
   */
  readonly partOf?: (size: number) => readonly string[];
  readonly codeForOp: NativeOps<Spell>;
  readonly lane: (vector: string, lane: number, d: DType) => string;
  readonly bitcast: (to: DType, from: DType, x: string) => string;
  /** a function that `bitcast` calls, if it does */
  readonly bitcastHelper: (to: DType, from: DType) => string;
  /** vectors are operands like any other, as vectors.ts says; otherwise they are computed lane by lane */
  readonly hasVectors: boolean;
  /** MULACC of float32 rounds once */
  readonly fused: boolean;
  /** signed integers wrap (under `flags`) */
  readonly wrapsSigned: boolean;
  /** the flags with which a compiler computes what ops.ts says */
  readonly flags: readonly string[];
  readonly preamble: (facts: BodyFacts) => readonly string[];
}

/** (x, y) of a pixel. */
export const PIXEL_INDEX = dtypes.int32.vec(2);
/** The array with all shared memory of a kernel, where the launch gives its size. */
const SHARED_MEMORY = "shared_memory";

/** The shared memory of a kernel; each array starts at a multiple of 16 bytes. */
const sharedBytes = (uops: Iterable<UOp>): number => {
  let bytes = 0;
  for (const u of uops) {
    if (u.op !== "DEFINE_LOCAL") continue;
    bytes += Math.ceil((u.elements * u.dtype.base.itemsize) / 16) * 16;
  }
  return bytes;
};

class KernelText extends KernelWriter {
  readonly buffers: UOp<"DEFINE_GLOBAL">[] = [];
  readonly variables: UOp<"DEFINE_VAR">[] = [];
  readonly scalars = new Set<DType>();
  readonly vectors = new Set<DType>();
  readonly language: CStyleLanguage;
  /** the rest of the body runs a part of a loop, from begin to end */
  part = false;
  /** of a workgroup */
  threads = 1;
  /** it has WMMA; it has asynchronous copies to shared memory */
  multiplies = false;
  copies = false;
  /** elements of all accumulators of a thread */
  accumulators = 0;
  /** bytes of shared memory so far */
  shared = 0;
  /**
   * shared memory is one array of this many bytes, which the launch has to give; 0: the text declares all of
   * it
   */
  readonly dynamicShared: number;
  readonly #unsigned: ReadonlySet<UOp>;
  /** loops and branches around this line */
  #nested = 0;

  constructor(language: CStyleLanguage, uops: readonly UOp[]) {
    super(uops, language.hasVectors ? isByLane : (user) => user.op !== "STORE" && user.op !== "LOAD");
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

  override declare(u: Expr, prefix: Prefix, text: string): string {
    const name = this.fresh(prefix);
    this.line(`${this.language.typeName(u.dtype)} ${name} = ${text};`);
    return name;
  }

  override open(text: string): void {
    super.open(text);
    this.#nested++;
  }
  override close(): void {
    super.close();
    this.#nested--;
  }
  /** OpenCL and Metal want memory that threads share declared outside of loops and branches. */
  array(text: string): void {
    if (this.language.smemPrefix !== "" && this.#nested > 0) this.lines.unshift(`  ${text}`);
    else this.line(text);
  }

  vector(d: DType, lanes: readonly string[]): string {
    // where a pixel is has the language's own type, whatever other vectors are
    if (this.language.hasVectors && d !== PIXEL_INDEX) return vectorMake(d, lanes);
    const { float4, longVector, vectorBrackets, typeName } = this.language;
    const plain = float4.replace("float4", typeName(d)) + vectorBrackets.join(lanes.join(","));
    return longVector?.(d, lanes) ?? plain;
  }
  constant(d: DType, value: number | bigint): string {
    const one = literal(this.language, scalarOf(d), value);
    return d.count === 1 ? one : this.vector(d, Array<string>(d.count).fill(one));
  }

  /** Lane by lane where a vector is computed: not every language has operators on vectors. */
  perLane(d: DType, operands: readonly Expr[], spell: (...xs: string[]) => string): string {
    const lanes = Array.from({ length: d.count }, (_, i) => spell(...operands.map((x) => this.lane(x, i))));
    return d.count === 1 ? (lanes[0] ?? "") : this.vector(d, lanes);
  }
  lane(u: Expr, i: number): string {
    if (lanesOf(u) === 1) return this.text(u);
    if (u.op === "CONST") return literal(this.language, scalarOf(u.dtype), u.value);
    if (this.language.hasVectors) return vectorLane(u.dtype, this.text(u), i);
    return this.language.lane(this.text(u), i, u.dtype);
  }
  /** The value as one expression on whole vectors, where it is a vector and the language can. */
  whole(
    u: Expr,
    operands: readonly Expr[],
    spell: (...xs: string[]) => string | undefined,
  ): string | undefined {
    if (!this.language.hasVectors || lanesOf(u) === 1) return undefined;
    return spell(...operands.map((x) => this.text(x)));
  }

  alu(u: Alu): string {
    const type = scalarOf(u.operandType);
    if (this.language.fused && u.fn === "MULACC" && type === dtypes.float32) {
      const xs = u.operands.map((x) => this.text(x));
      return lanesOf(u) > 1 ? vectorFma(u.dtype, ...xs) : `__builtin_fmaf(${xs.join(",")})`;
    }
    const minMax = this.language.hasVectors && lanesOf(u) > 1 && type.isFloat ? minMaxOf(u) : undefined;
    if (minMax !== undefined && !isByLane(u))
      return vectorMinMax(minMax.isMax)(u.dtype, ...minMax.operands.map((x) => this.text(x)));
    const unsigned = this.#unsigned.has(u);
    const whole = this.whole(u, u.operands, (...xs) => {
      if (unsigned) return vectorUnsigned(u.fn, u.operandType, ...xs);
      if (u.fn === "WHERE" && lanesOf(u.operands[0]) === 1) return `(${xs[0]}?${xs[1]}:${xs[2]})`;
      return vectorAlu(u.fn, u.operandType, ...xs);
    });
    if (whole !== undefined) return whole;
    const spell = this.language.codeForOp[u.fn];
    if (spell === undefined) throw new InternalError(`${u.fn}: the language has none; codegen decomposes it`);
    if (!unsigned) return this.perLane(u.dtype, u.operands, (...xs) => spell(type, ...xs));
    const { typeName } = this.language;
    const twin = type.itemsize === 8 ? dtypes.uint64 : dtypes.uint32;
    const cast = (x: string, i: number): string =>
      u.fn === "SHL" && i === 1 ? x : `(${typeName(twin)})(${x})`;
    return this.perLane(u.dtype, u.operands, (...xs) => `(${typeName(type)})${spell(twin, ...xs.map(cast))}`);
  }

  /** Only a sum stands beside the plus without brackets: other operators may bind less. */
  address(buffer: Memory, index: Expr): string {
    const at = this.text(index);
    return `${this.text(buffer)}+${index.op === "ALU" && index.fn === "ADD" ? stripParens(at) : at}`;
  }
  /** How the buffer is accessed if it is an image. */
  image(buffer: Memory): ImageWords | undefined {
    if (buffer.dtype.image === undefined) return undefined;
    const { images } = this.language;
    if (images === undefined) throw new InternalError(`${buffer.dtype}: this language has no images`);
    return images;
  }
  /** An element, or `d.count` elements from `index` on. */
  access(buffer: Memory, index: Expr, d: DType): string {
    const { usesPtrArithmetic, prefixForCast, bufferPrefix, smemPrefix, typeName } = this.language;
    const at = this.text(index);
    const pointer = this.address(buffer, index);
    if (d.count > 1) {
      const space = prefixForCast ? (buffer.dtype.local ? smemPrefix : bufferPrefix) : "";
      const type = this.language.hasVectors ? vectorMemory(d) : d;
      return `*((${space}${typeName(type)}*)(${pointer}))`;
    }
    return usesPtrArithmetic ? `*(${pointer})` : `${this.text(buffer)}[${stripParens(at)}]`;
  }

  warp(u: UOp): WarpWords {
    const { warp } = this.language;
    if (warp === undefined)
      throw new InternalError(`${u.op}: in this language the threads of a warp do nothing together`);
    return warp;
  }
  helped({ text, helper }: Helped): string {
    if (helper !== "") this.helpers.add(helper);
    return text;
  }

  bitcast(u: UOp<"BITCAST">): string {
    const [wide, given] = [u.dtype, u.operand.dtype];
    if (wide.count !== given.count) {
      this.helpers.add(this.language.bitcastHelper(wide, given));
      return this.language.bitcast(wide, given, this.text(u.operand));
    }
    const whole = this.whole(u, [u.operand], (x = "") => vectorBitcast(wide, given, x));
    if (whole !== undefined) return whole;
    const [to, from] = [scalarOf(wide), scalarOf(given)];
    const helper = this.language.bitcastHelper(to, from);
    if (helper !== "") this.helpers.add(helper);
    // C computes narrow types in int, and the bits of an int are not the bits of a char
    const exact = (x: string): string => (from.itemsize < 4 ? `(${this.language.typeName(from)})(${x})` : x);
    return this.perLane(wide, [u.operand], (x = "") => this.language.bitcast(to, from, exact(x)));
  }
}

const RENDER: { readonly [K in UOpName]: (k: KernelText, u: UOp<K>) => void } = {
  DEFINE_GLOBAL: (k, u) => {
    k.buffers.push(u);
    k.set(u, k.parameter(ownIdentifier(u.name)));
  },
  DEFINE_VAR: (k, u) => {
    k.variables.push(u);
    k.set(u, k.parameter(identifier(u.variable.name)));
  },
  DEFINE_LOCAL: (k, u) => {
    const { elements } = u;
    const name = k.parameter(ownIdentifier(u.name));
    const { smemAlign, smemPrefix, typeName } = k.language;
    const { base } = u.dtype;
    if (k.dynamicShared > 0)
      k.line(`${typeName(base)}* ${name} = (${typeName(base)}*)(${SHARED_MEMORY}+${k.shared});`);
    else k.array(`${smemAlign}${smemPrefix}${typeName(base)} ${name}[${elements}];`);
    k.shared += Math.ceil((elements * base.itemsize) / 16) * 16;
    k.set(u, name);
  },
  DEFINE_ACC: (k, u) => {
    k.accumulators += lanesOf(u);
    k.set(u, k.declare(u, "acc", k.constant(u.dtype, u.initial)));
  },
  SPECIAL: (k, u) => {
    const { dimension, size } = u;
    const name = ownIdentifier(u.name);
    k.set(u, name);
    if (name.startsWith("l")) k.threads *= size;
    const code = k.language.codeForWorkitem?.[name.startsWith("g") ? "g" : "l"];
    if (code !== undefined) k.line(`int ${name} = ${code(dimension)}; /* ${size} */`);
    else if (name !== "gidx0" || k.part) {
      throw new InternalError(
        `SPECIAL ${name}: this language has no grid of threads, only parts of one loop`,
      );
    } else {
      k.part = true;
      for (const line of k.language.partOf?.(size) ?? []) k.line(line);
      k.open(`for (int ${name} = begin; ${name} < end; ${name}++) { /* ${size} */`);
    }
  },
  CONST: (k, u) => k.set(u, k.constant(u.dtype, u.value)),
  LOOP: (k, u) => {
    const i = k.fresh("ridx");
    k.open(
      `for (${k.language.typeName(u.dtype)} ${i} = ${k.text(u.start)}; ${i} < ${k.text(u.end)}; ${i}++) {`,
    );
    k.set(u, i);
  },
  ENDLOOP: (k) => k.close(),
  IF: (k, u) => k.open(`if (${stripParens(k.text(u.condition))}) {`),
  ENDIF: (k) => k.close(),
  LOAD: (k, u) => {
    const { buffer, index, gate, otherwise } = u;
    const image = k.image(buffer);
    const read =
      image === undefined ? k.access(buffer, index, u.dtype) : image.read(k.text(buffer), k.text(index));
    const element = k.language.hasVectors && lanesOf(u) > 1 ? vectorRead(u.dtype, read) : read;
    k.set(
      u,
      k.declare(u, "val", gate === undefined ? element : `(${k.text(gate)}?${element}:${k.text(otherwise)})`),
    );
  },
  STORE: (k, u) => {
    const { buffer, index, value, gate } = u;
    const condition = gate === undefined ? "" : `if (${stripParens(k.text(gate))}) `;
    const d = value.dtype;
    const text = k.language.hasVectors && d.count > 1 ? vectorWritten(d, k.text(value)) : k.text(value);
    const write = k.image(buffer)?.write(k.text(buffer), k.text(index), text);
    k.line(`${condition}${write ?? `${k.access(buffer, index, d)} = ${text}`};`);
  },
  ALU: (k, u) => k.value(u, "alu", k.alu(u)),
  CAST: (k, u) => {
    const { operand } = u;
    const [to, from] = [scalarOf(u.dtype), scalarOf(operand.dtype)];
    const whole = k.whole(u, [operand], (x = "") => vectorCast(u.dtype, operand.dtype, x));
    k.value(
      u,
      "cast",
      whole ?? k.perLane(u.dtype, [operand], (x = "") => spellCast(k.language, to, from, x)),
    );
  },
  BITCAST: (k, u) => k.value(u, "cast", k.bitcast(u)),
  PHI: (k, u) => {
    k.line(`${k.text(u.accumulator)} = ${k.text(u.value)};`);
    k.set(u, k.text(u.accumulator));
  },
  BARRIER: (k) => {
    if (k.language.barrier !== "") k.line(k.language.barrier);
  },
  SHFL: (k, u) => k.set(u, k.declare(u, "val", k.helped(k.warp(u).shuffle(k.text(u.operand), u.mask)))),
  ASYNC: (k, u) => {
    k.copies = true;
    const { to, toIndex, from, fromIndex, gate, inside } = u;
    const bytes = u.elements * from.dtype.base.itemsize;
    const where = inside && stripParens(k.text(inside));
    const copy = k.helped(k.warp(u).copy(k.address(to, toIndex), k.address(from, fromIndex), bytes, where));
    const isAlways = gate === undefined || gate.op === "CONST";
    k.line(`${isAlways ? "" : `if (${stripParens(k.text(gate))}) `}${copy};`);
  },
  COMMIT: (k, u) => k.line(k.warp(u).commit),
  WAIT: (k, u) => k.line(k.warp(u).wait(u.pending)),
  LDMATRIX: (k, u) => {
    const address = k.address(u.buffer, u.index);
    k.set(u, k.declare(u, "val", k.helped(k.warp(u).loadMatrix(address, lanesOf(u), u.isTransposed))));
  },
  LDFRAGMENT: refuseUOp,
  WMMA: (k, u) => {
    const { a, b, c } = u;
    k.multiplies = true;
    const zero = k.constant(u.dtype, 0);
    const text = k.warp(u).multiply(u.core, k.text(a), k.text(b), c === undefined ? zero : k.text(c));
    k.set(u, k.declare(u, "val", k.helped(text)));
  },
  GEP: (k, u) => k.value(u, "val", k.lane(u.vector, u.lane)),
  VECTORIZE: (k, u) =>
    k.value(
      u,
      "vec",
      k.vector(
        u.dtype,
        u.lanes.map((x) => k.text(x)),
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
  const { bufferPrefix, argIntPrefix, extraArgs, partOf, typeName } = k.language;
  const buffers = k.buffers
    .toSorted((a, b) => a.position - b.position)
    .map((u) => {
      const image = k.image(u);
      if (image !== undefined) return `${image.parameter(u.isWritten)} ${k.text(u)}`;
      const constant = u.isWritten ? "" : "const ";
      return `${constant}${bufferPrefix}${typeName(u.dtype.base)}* ${k.text(u)}`;
    });
  const variables = k.variables.map((u) => `${argIntPrefix} ${k.text(u)}`);
  const part = k.part && partOf === undefined ? ["const int begin", "const int end"] : [];
  return [...buffers, ...variables, ...part, ...extraArgs].join(", ");
}

/** The text of a kernel. */
export const uopsToCStyle = (
  language: CStyleLanguage,
  name: string,
  uops: UOpGraph | readonly UOp[],
): string => renderCStyle(language, name, allGlobals("uopsToCStyle", uops)).code;

/** A kernel that takes its buffers by position and then its variables. */
export function renderCStyle(
  language: CStyleLanguage,
  name: string,
  uops: UOpGraph | readonly UOp[],
): Source<string> {
  const k = new KernelText(language, [...uops]);
  const sampler = k.buffers.map((u) => k.image(u)?.sampler).find((line) => line !== undefined);
  const body = (sampler === undefined ? k.lines : [sampler, ...k.lines]).join("\n");
  const before = [...language.preamble({ scalars: k.scalars, vectors: k.vectors, body }), ...k.helpers];
  const bounds = k.threads > 1 ? language.launchBounds(k) : "";
  const attributes = language.attributes?.(k) ?? "";
  const head = `${attributes}${language.kernelPrefix}void ${bounds}${kernelIdentifier(name)}(${parameters(k)}) {`;
  return sourceOf(`${before.map((line) => `${line}\n`).join("")}${head}\n${body}\n}`, {
    buffers: k.buffers.length,
    vals: k.variables.length,
    isPart: k.part,
    dynamicShared: k.dynamicShared,
  });
}
