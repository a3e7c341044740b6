// What the mock GPU knows of QMDs of version 4: fields that have one right value, fields that it looks at or
// that are harmless, and a check that nothing else is set.

import { QMD4 } from "../../../src/devices/nv/commands/classes.ts";

export type Qmd4Field = keyof typeof QMD4;

/** Fields that have one right value. */
export const EXPECTED: readonly (readonly [Qmd4Field, number])[] = [
  ["QMD_MAJOR_VERSION", 4],
  ["QMD_MINOR_VERSION", 0],
  ["QMD_TYPE", 2],
  ["QMD_GROUP_ID", 0x3f],
  ["SASS_VERSION", 0x90],
  ["INVALIDATE_SHADER_DATA_CACHE", 1],
  ["CWD_MEMBAR_TYPE", 3],
  ["CWD_MEMBAR_TASK_CHASING_ENABLE", 1],
];
/** Fields that the mock looks at or knows to be harmless, and how often each occurs. */
const KNOWN: readonly (readonly [Qmd4Field, number])[] = [
  ...EXPECTED.map(([name]) => [name, 1] as const),
  ...(
    [
      "API_VISIBLE_CALL_LIMIT",
      "SAMPLER_INDEX",
      "REGISTER_COUNT",
      "BARRIER_COUNT",
      "SHARED_MEMORY_SIZE",
      "MIN_SM_CONFIG_SHARED_MEM_SIZE",
      "TARGET_SM_CONFIG_SHARED_MEM_SIZE",
      "MAX_SM_CONFIG_SHARED_MEM_SIZE",
      "SHADER_LOCAL_MEMORY_HIGH_SIZE",
      "PROGRAM_ADDRESS_LOWER",
      "PROGRAM_ADDRESS_UPPER",
      "PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED",
      "PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED",
      "PROGRAM_PREFETCH_SIZE",
      "GRID_WIDTH",
      "GRID_HEIGHT",
      "GRID_DEPTH",
      "CTA_THREAD_DIMENSION0",
      "CTA_THREAD_DIMENSION1",
      "CTA_THREAD_DIMENSION2",
      "DEPENDENT_QMD_ENABLE",
      "DEPENDENT_QMD_ACTION",
      "DEPENDENT_QMD_PREFETCH",
      "DEPENDENT_QMD0_POINTER",
    ] as const
  ).map((name) => [name, 1] as const),
  ...([0, 1, 2] as const).flatMap((i) =>
    (["ADDR_LOWER", "ADDR_UPPER", "PAYLOAD_LOWER", "PAYLOAD_UPPER"] as const).map(
      (part) => [`RELEASE_SEMAPHORE${i}_${part}`, 1] as const,
    ),
  ),
  ["RELEASE_ENABLE", 3],
  ["RELEASE_PAYLOAD64B", 3],
  ["RELEASE_MEMBAR_TYPE", 3],
  ["CONSTANT_BUFFER_VALID", 8],
  ["CONSTANT_BUFFER_INVALIDATE", 8],
  ["CONSTANT_BUFFER_PREFETCH", 8],
  ["CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6", 8],
  ["CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6", 8],
  ["CONSTANT_BUFFER_SIZE_SHIFTED4", 8],
];
const MASK = new Uint32Array(96);
for (const [name, count] of KNOWN) {
  const [top, bottom, step] = QMD4[name];
  for (let i = 0; i < count; i++)
    for (let bit = bottom; bit <= top; bit++) {
      const at = bit + i * step;
      MASK[at >>> 5] = (MASK[at >>> 5] as number) | (1 << (at & 31));
    }
}
/** What is wrong with the words of a QMD; undefined: nothing but fields that are known is set. */
export function oddBits(words: Uint32Array): string | undefined {
  for (const [i, w] of words.entries()) {
    const odd = (w & ~(MASK[i] as number)) >>> 0;
    if (odd !== 0) return `bits 0x${odd.toString(16)} of word ${i} belong to no field that is used`;
  }
  return undefined;
}
