// The one place where a name that a user chose becomes part of a text that is compiled. In goes the name of a
// Variable, a kernel or a function; out comes an identifier of every language that is rendered. A name must
// never be able to end the word in which it stands. printable.ts has what becomes part of a text for people.

import { ArgumentError } from "./errors.ts";
import { printable } from "./printable.ts";

const PLAIN = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;
const words = (text: string): string[] => text.trim().split(/\s+/);

/** Words of C, C++, CUDA, HIP, Metal, OpenCL and WGSL, and functions that kernels call. */
const RESERVED: ReadonlySet<string> = new Set(
  words(`
  abs alias alignas alignof and array asm assert atomic auto binding bitcast bool break buffer builtin case
  catch ceil char class compl compute concept const constant constexpr continue cos decltype default delete
  device discard do double else enable enum exp explicit export extern f16 f32 false fabs float floor fma fmax
  fmin fn for fract frexp friend function global goto group half i32 id if image inline inout int kernel let
  local log long loop main mat max memcpy memset metal min mix mod module move mutable namespace native new
  noexcept not null nullptr operator or override packed pipe pixel pointer pow private protected ptr public
  quad ray read register requires restrict return rint round rsqrt sampler select shared short sign signed sin
  sizeof sqrt static step struct super switch syncthreads tan template texture this thread threadgroup throw
  true trunc try type typedef typeid typename u32 uchar uint uint32_t ulong uniform union unless unsigned ushort
  using var virtual void volatile vulkan while with workgroup write xor yield`),
);
/** What the texts around a kernel's parameters use. */
const USED: ReadonlySet<string> = new Set(
  words(`
  b v k entry begin end gid lid vars smem shfl warp tid dim3 NULL NAN INFINITY M_PI threadIdx blockIdx blockDim
  gridDim warpSize bfloat bfloat16 float16 nan inf isnan isinf infinity`),
);
/** Names that renderers number, types of vectors, and whatever C's library may define. */
const NUMBERED =
  /^(acc|alu|cast|data|gidx|lidx|ridx|temp|tile|val|vec|buf|u?char|u?short|u?int|u?long|float|double|half|bool|exp|log|mat|tmp|part|lanes|signal)\d*(x\d)?$/;
const DEFINED =
  /__|_t$|_$|^(atomic|as|convert|vload|vstore|make|hip|cuda|nv|wmma|mma|ld|st|cp|is|to|from)_|[a-z]f$/;

/** Different names differ in this, nearly always. */
function hash(text: string): string {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return (h >>> 0).toString(16).padStart(8, "0");
}

/** What of a name an identifier may hold, in short, and its hash. */
const encoded = (name: string): string =>
  `v_${name.slice(0, 32).replaceAll(/[^A-Za-z0-9]+/g, "_")}_${hash(name)}`;

/**
 * The name of a Variable as an identifier: unchanged unless a language or a renderer uses it itself. Names of
 * the compiler begin with ~.
 */
export function identifier(given: string): string {
  const name = given.replace(/^~/, "");
  const isFree =
    PLAIN.test(name) && !RESERVED.has(name) && !USED.has(name) && !NUMBERED.test(name) && !DEFINED.test(name);
  return isFree ? name : encoded(name);
}

/** A name that the compiler itself gave (`data0`, `temp1`): only what cannot be an identifier is changed. */
export const ownIdentifier = (name: string): string => (PLAIN.test(name) ? name : encoded(name));

/** The name of a kernel, which whoever launches it must know: refused where it is not an identifier. */
export function kernelIdentifier(name: string): string {
  if (/^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(name)) return name;
  throw new ArgumentError(
    `render: ${printable(JSON.stringify(name))} cannot be the name of a kernel; use letters, digits and _, at most 256, ` +
      "and no digit first",
  );
}
