// The opcodes of vectors. A page loads them with simd.ts, the only file that emits them; those that any
// kernel may need are in the assembler.

// biome-ignore format: a table
export const VECTOR_OP = {
  "v128.load": 0xfd0000, "v128.load32_splat": 0xfd0009, "v128.store": 0xfd000b,
  "i8x16.shuffle": 0xfd000d, "i32x4.splat": 0xfd0011, "f32x4.splat": 0xfd0013,
  "i32x4.extract_lane": 0xfd001b, "i32x4.replace_lane": 0xfd001c,
  "f32x4.extract_lane": 0xfd001f, "f32x4.replace_lane": 0xfd0020, "v128.store32_lane": 0xfd005a,
  "v128.store64_lane": 0xfd005b, "v128.load32_zero": 0xfd005c, "v128.load64_zero": 0xfd005d,
  "i32x4.eq": 0xfd0037, "i32x4.ne": 0xfd0038, "i32x4.lt_s": 0xfd0039, "i32x4.lt_u": 0xfd003a,
  "f32x4.eq": 0xfd0041, "f32x4.ne": 0xfd0042, "f32x4.lt": 0xfd0043, "v128.not": 0xfd004d,
  "v128.and": 0xfd004e, "v128.or": 0xfd0050, "v128.xor": 0xfd0051, "v128.bitselect": 0xfd0052,
  "f32x4.trunc": 0xfd0069, "i16x8.extend_low_i8x16_s": 0xfd0087, "i16x8.extend_low_i8x16_u": 0xfd0089,
  "i32x4.neg": 0xfd00a1, "i32x4.extend_low_i16x8_s": 0xfd00a7, "i32x4.extend_low_i16x8_u": 0xfd00a9,
  "i32x4.shl": 0xfd00ab, "i32x4.shr_s": 0xfd00ac, "i32x4.shr_u": 0xfd00ad, "i32x4.add": 0xfd00ae,
  "i32x4.sub": 0xfd00b1, "i32x4.mul": 0xfd00b5, "i32x4.max_s": 0xfd00b8, "i32x4.max_u": 0xfd00b9, "i32x4.dot_i16x8_s": 0xfd00ba,
  "f32x4.neg": 0xfd00e1, "f32x4.sqrt": 0xfd00e3, "f32x4.add": 0xfd00e4, "f32x4.sub": 0xfd00e5,
  "f32x4.mul": 0xfd00e6, "f32x4.div": 0xfd00e7, "f32x4.pmin": 0xfd00ea, "f32x4.pmax": 0xfd00eb,
  "i32x4.trunc_sat_f32x4_s": 0xfd00f8, "f32x4.convert_i32x4_s": 0xfd00fa,
  "f32x4.convert_i32x4_u": 0xfd00fb,
} as const;
export type VectorOpcode = (typeof VECTOR_OP)[keyof typeof VECTOR_OP];
