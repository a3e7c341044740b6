// The WebAssembly binary assembler: opcodes as data, a growing byte writer, functions and modules.
// In go calls such as `f.op(OP["i32.add"])`, out comes the Uint8Array of a module. It checks nothing:
// what the code means, and whether its stack fits, is left to the renderer and to WebAssembly.validate.

import type { VectorOpcode } from "./vectorops.ts";

export const I32 = 0x7f;
export const I64 = 0x7e;
export const F32 = 0x7d;
export const F64 = 0x7c;
export const V128 = 0x7b;
export type ValType = typeof I32 | typeof I64 | typeof F32 | typeof F64 | typeof V128;
/** The type of a block that leaves nothing on the stack. */
const VOID = 0x40;
type BlockType = ValType | typeof VOID;

/** Prefixed opcodes are `prefix << 16 | number`, so that one integer names any instruction. */
// biome-ignore format: a table
export const OP = {
  unreachable: 0x00, nop: 0x01, block: 0x02, loop: 0x03, if: 0x04, else: 0x05, end: 0x0b, br: 0x0c,
  br_if: 0x0d, return: 0x0f, call: 0x10, drop: 0x1a, select: 0x1b, "local.get": 0x20, "local.set": 0x21,
  "local.tee": 0x22, "global.get": 0x23, "i32.load": 0x28, "i64.load": 0x29, "f32.load": 0x2a,
  "f64.load": 0x2b, "i32.load8_s": 0x2c, "i32.load8_u": 0x2d, "i32.load16_s": 0x2e, "i32.load16_u": 0x2f,
  "i32.store": 0x36, "i64.store": 0x37, "f32.store": 0x38, "f64.store": 0x39, "i32.store8": 0x3a,
  "i32.store16": 0x3b, "i32.const": 0x41, "i64.const": 0x42, "f32.const": 0x43, "f64.const": 0x44,
  "i32.eqz": 0x45, "i32.eq": 0x46, "i32.ne": 0x47, "i32.lt_s": 0x48, "i32.lt_u": 0x49, "i32.gt_s": 0x4a,
  "i32.gt_u": 0x4b, "i64.eqz": 0x50, "i64.eq": 0x51, "i64.ne": 0x52, "i64.lt_s": 0x53, "i64.lt_u": 0x54,
  "i64.gt_s": 0x55, "i64.gt_u": 0x56, "f32.eq": 0x5b, "f32.ne": 0x5c, "f32.lt": 0x5d, "f64.eq": 0x61,
  "f64.ne": 0x62, "f64.lt": 0x63, "f64.gt": 0x64, "f64.le": 0x65, "f64.ge": 0x66, "i32.add": 0x6a,
  "i32.sub": 0x6b, "i32.mul": 0x6c, "i32.div_s": 0x6d, "i32.div_u": 0x6e, "i32.rem_s": 0x6f,
  "i32.rem_u": 0x70, "i32.and": 0x71, "i32.or": 0x72, "i32.xor": 0x73, "i32.shl": 0x74,
  "i32.shr_s": 0x75, "i32.shr_u": 0x76, "i64.add": 0x7c, "i64.sub": 0x7d, "i64.mul": 0x7e,
  "i64.div_s": 0x7f, "i64.div_u": 0x80, "i64.rem_s": 0x81, "i64.rem_u": 0x82, "i64.and": 0x83,
  "i64.or": 0x84, "i64.xor": 0x85, "i64.shl": 0x86, "i64.shr_s": 0x87, "i64.shr_u": 0x88,
  "f32.neg": 0x8c, "f32.trunc": 0x8f, "f32.sqrt": 0x91, "f32.add": 0x92, "f32.sub": 0x93,
  "f32.mul": 0x94, "f32.div": 0x95, "f32.max": 0x97, "f64.abs": 0x99, "f64.neg": 0x9a, "f64.trunc": 0x9d,
  "f64.sqrt": 0x9f, "f64.add": 0xa0, "f64.sub": 0xa1, "f64.mul": 0xa2, "f64.div": 0xa3, "f64.max": 0xa5,
  "f64.copysign": 0xa6, "i32.wrap_i64": 0xa7, "i64.extend_i32_s": 0xac, "i64.extend_i32_u": 0xad,
  "f32.convert_i32_s": 0xb2, "f32.convert_i32_u": 0xb3, "f32.convert_i64_s": 0xb4,
  "f32.convert_i64_u": 0xb5, "f32.demote_f64": 0xb6, "f64.convert_i32_s": 0xb7,
  "f64.convert_i32_u": 0xb8, "f64.convert_i64_s": 0xb9, "f64.convert_i64_u": 0xba,
  "f64.promote_f32": 0xbb, "i32.reinterpret_f32": 0xbc, "i64.reinterpret_f64": 0xbd,
  "f32.reinterpret_i32": 0xbe, "f64.reinterpret_i64": 0xbf, "i32.extend8_s": 0xc0,
  "i32.extend16_s": 0xc1, "i32.trunc_sat_f32_s": 0xfc0000, "i32.trunc_sat_f64_s": 0xfc0002,
  "i64.trunc_sat_f32_s": 0xfc0004, "i64.trunc_sat_f32_u": 0xfc0005, "i64.trunc_sat_f64_s": 0xfc0006,
  "i64.trunc_sat_f64_u": 0xfc0007, "v128.const": 0xfd000c,
  "f32x4.relaxed_madd": 0xfd0105,
} as const;
export type Opcode = (typeof OP)[keyof typeof OP] | VectorOpcode;

const scratch = new DataView(new ArrayBuffer(8));
const scratchBytes = new Uint8Array(scratch.buffer);
const utf8 = new TextEncoder();

/**
 * Bytes in the making, with the number formats of the binary format. A plain array: kernels are small and
 * many.
 */
class ByteWriter {
  readonly bytes: number[] = [];

  get length(): number {
    return this.bytes.length;
  }
  byte(b: number): void {
    this.bytes.push(b);
  }
  raw(bytes: ArrayLike<number>): void {
    for (let i = 0; i < bytes.length; i++) this.bytes.push(bytes[i] as number);
  }
  /** Unsigned LEB128 of 0 .. 2^32-1. */
  uleb(x: number): void {
    while (x >= 128) {
      this.byte((x % 128) | 128);
      x = Math.floor(x / 128);
    }
    this.byte(x);
  }
  /** Signed LEB128 of an int32. */
  sleb(x: number): void {
    while (x < -64 || x > 63) {
      this.byte((x & 127) | 128);
      x >>= 7;
    }
    this.byte(x & 127);
  }
  /** Signed LEB128 of an int64. */
  sleb64(x: bigint): void {
    while (x < -0x40000000n || x > 0x3fffffffn) {
      this.byte(Number(x & 127n) | 128);
      x >>= 7n;
    }
    this.sleb(Number(x));
  }
  f32(x: number): void {
    scratch.setFloat32(0, x, true);
    for (let i = 0; i < 4; i++) this.bytes.push(scratchBytes[i] as number);
  }
  f64(x: number): void {
    scratch.setFloat64(0, x, true);
    this.raw(scratchBytes);
  }
  name(text: string): void {
    const bytes = utf8.encode(text);
    this.uleb(bytes.length);
    this.raw(bytes);
  }
}

interface FunctionType {
  readonly params: readonly ValType[];
  readonly results: readonly ValType[];
}

/** One function body. Locals may be declared at any time; their numbers follow the parameters. */
export class FunctionBuilder {
  readonly type: FunctionType;
  readonly code = new ByteWriter();
  readonly #locals: ValType[] = [];

  constructor(type: FunctionType) {
    this.type = type;
  }

  /** Declares `count` locals with consecutive numbers and returns the first. */
  local(type: ValType, count = 1): number {
    const first = this.type.params.length + this.#locals.length;
    for (let i = 0; i < count; i++) this.#locals.push(type);
    return first;
  }
  op(code: Opcode): void {
    if (code <= 0xff) this.code.byte(code);
    else {
      this.code.byte(code >> 16);
      this.code.uleb(code & 0xffff);
    }
  }
  get(local: number): void {
    this.code.byte(OP["local.get"]);
    this.code.uleb(local);
  }
  set(local: number): void {
    this.code.byte(OP["local.set"]);
    this.code.uleb(local);
  }
  tee(local: number): void {
    this.code.byte(OP["local.tee"]);
    this.code.uleb(local);
  }
  i32(x: number): void {
    this.code.byte(OP["i32.const"]);
    this.code.sleb(x | 0);
  }
  i64(x: bigint): void {
    this.code.byte(OP["i64.const"]);
    this.code.sleb64(BigInt.asIntN(64, x));
  }
  f32(x: number): void {
    this.code.byte(OP["f32.const"]);
    this.code.f32(x);
  }
  f64(x: number): void {
    this.code.byte(OP["f64.const"]);
    this.code.f64(x);
  }
  /** A vector of four lanes. */
  v128(lanes: Uint32Array): void {
    this.op(OP["v128.const"]);
    this.code.raw(new Uint8Array(lanes.buffer, lanes.byteOffset, 16));
  }
  /** A load or store: `align` is the log2 of the alignment, `offset` in bytes is added to the address. */
  memory(code: Opcode, align: number, offset: number): void {
    this.op(code);
    this.code.uleb(align);
    this.code.uleb(offset);
  }
  block(type: BlockType = VOID): void {
    this.code.byte(OP.block);
    this.code.byte(type);
  }
  loop(type: BlockType = VOID): void {
    this.code.byte(OP.loop);
    this.code.byte(type);
  }
  if(type: BlockType = VOID): void {
    this.code.byte(OP.if);
    this.code.byte(type);
  }
  else(): void {
    this.code.byte(OP.else);
  }
  end(): void {
    this.code.byte(OP.end);
  }
  /** Jumps out of `depth` blocks, or to the start of the loop that is `depth` blocks out. */
  br(depth: number): void {
    this.code.byte(OP.br);
    this.code.uleb(depth);
  }
  brIf(depth: number): void {
    this.code.byte(OP.br_if);
    this.code.uleb(depth);
  }
  globalGet(index: number): void {
    this.code.byte(OP["global.get"]);
    this.code.uleb(index);
  }
  call(fn: number): void {
    this.code.byte(OP.call);
    this.code.uleb(fn);
  }

  /** The entry of the code section: size, locals in runs of one type, code, end. */
  entry(): Bytes[] {
    const runs = new ByteWriter();
    let n = 0;
    for (let i = 0; i < this.#locals.length; n++) {
      const type = this.#locals[i] as ValType;
      let j = i + 1;
      while (j < this.#locals.length && this.#locals[j] === type) j++;
      runs.uleb(j - i);
      runs.byte(type);
      i = j;
    }
    const count = new ByteWriter();
    count.uleb(n);
    return sized([count.bytes, runs.bytes, this.code.bytes, [OP.end]]);
  }
}

interface MemoryType {
  readonly min: number;
  readonly max: number;
  readonly shared: boolean;
  readonly wide?: boolean;
}
interface ModuleSpec {
  /** `env.memory`, in pages of 64 KiB; where it is `wide`, its addresses are i64 */
  readonly memory: MemoryType;
  /** a constant i32 is imported too, as global 0: `env.scratch` */
  readonly scratch?: boolean;
  /** vectors as globals, which come after the imported one; they count as variable */
  readonly vectors?: readonly Uint32Array[];
  readonly functions: readonly FunctionBuilder[];
  /** names of the first functions, in order */
  readonly exports: readonly string[];
}

const SECTION = { type: 1, import: 2, function: 3, global: 6, export: 7, code: 10 } as const;

/** The module as bytes: one imported memory, maybe a number, the functions, their vectors, the exports. */
export function assemble(spec: ModuleSpec): Uint8Array<ArrayBuffer> {
  const parts: Bytes[] = [HEADER];
  const section = (id: number, fill: (w: ByteWriter) => void, ...more: readonly Bytes[]) => {
    const payload = new ByteWriter();
    fill(payload);
    parts.push([id], ...sized([payload.bytes, ...more]));
  };

  section(SECTION.type, (w) => {
    w.uleb(spec.functions.length);
    for (const f of spec.functions) {
      w.byte(0x60);
      for (const list of [f.type.params, f.type.results]) {
        w.uleb(list.length);
        for (const t of list) w.byte(t);
      }
    }
  });
  section(SECTION.import, (w) => {
    w.uleb(spec.scratch ? 2 : 1);
    w.name("env");
    w.name("memory");
    w.byte(2);
    w.byte((spec.memory.shared ? 3 : 1) | (spec.memory.wide ? 4 : 0));
    w.uleb(spec.memory.min);
    w.uleb(spec.memory.max);
    if (!spec.scratch) return;
    w.name("env");
    w.name("scratch");
    w.byte(3);
    w.byte(I32);
    w.byte(0);
  });
  section(SECTION.function, (w) => {
    w.uleb(spec.functions.length);
    for (let i = 0; i < spec.functions.length; i++) w.uleb(i); // every function has its own type
  });
  const { vectors = [] } = spec;
  if (vectors.length > 0) {
    section(SECTION.global, (w) => {
      w.uleb(vectors.length);
      for (const words of vectors) {
        w.byte(V128);
        w.byte(1);
        w.raw([0xfd, 12]); // v128.const
        w.raw(new Uint8Array(words.buffer, words.byteOffset, 16));
        w.byte(OP.end);
      }
    });
  }
  section(SECTION.export, (w) => {
    w.uleb(spec.exports.length);
    spec.exports.forEach((name, i) => {
      w.name(name);
      w.byte(0);
      w.uleb(i);
    });
  });
  const entries = spec.functions.flatMap((f) => f.entry());
  section(SECTION.code, (w) => w.uleb(spec.functions.length), ...entries);
  return joined(parts);
}

type Bytes = ArrayLike<number>;
const lengthOf = (parts: readonly Bytes[]): number => parts.reduce((n, p) => n + p.length, 0);
/** Parts after their size in bytes. */
function sized(parts: readonly Bytes[]): Bytes[] {
  const size = new ByteWriter();
  size.uleb(lengthOf(parts));
  return [size.bytes, ...parts];
}
/** Parts in a row. Code is long: it is copied once, here. */
function joined(parts: readonly Bytes[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(lengthOf(parts));
  let at = 0;
  for (const p of parts) {
    all.set(p, at);
    at += p.length;
  }
  return all;
}

const HEADER = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
