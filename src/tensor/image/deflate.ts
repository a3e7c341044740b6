// Deflate streams, CRC-32, and joining bytes: what PNG files and zip archives have in common. The platform
// compresses and decompresses; a stream is bounded by the number of bytes that it claims to hold.

import { FileError } from "../../errors.ts";

/** the best ratio that deflate can reach: a larger claim is false */
export const MAX_RATIO = 1032;
/** the first memory for what is decompressed */
const GROWTH = 1 << 20;

export function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((n, part) => n + part.byteLength, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return bytes;
}

/** Decompresses; refuses a stream with more or fewer than `size` bytes, without reading on. */
export async function inflate(
  bytes: Uint8Array,
  format: "deflate-raw" | "deflate",
  size: number,
  name: string,
): Promise<Uint8Array<ArrayBuffer>> {
  if (size > bytes.byteLength * MAX_RATIO)
    throw new FileError(`${name} claims ${size} bytes from ${bytes.byteLength}, more than deflate can reach`);
  // memory grows with what is there, not with what is claimed
  let out = new Uint8Array(Math.min(size, GROWTH));
  let at = 0;
  try {
    for await (const chunk of through(bytes, new DecompressionStream(format))) {
      if (at + chunk.byteLength > size) throw new FileError(`it holds more than the ${size} bytes it claims`);
      if (at + chunk.byteLength > out.byteLength) {
        const larger = new Uint8Array(Math.min(size, Math.max(2 * out.byteLength, at + chunk.byteLength)));
        larger.set(out.subarray(0, at));
        out = larger;
      }
      out.set(chunk, at);
      at += chunk.byteLength;
    }
  } catch (cause) {
    throw new FileError(`${name} cannot be decompressed: ${(cause as Error).message}`, { cause });
  }
  if (at !== size) throw new FileError(`${name} holds ${at} bytes and claims ${size}`);
  return out;
}

export async function deflate(bytes: Uint8Array, format: "deflate-raw" | "deflate"): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of through(bytes, new CompressionStream(format))) parts.push(part);
  return concat(parts);
}

async function* through(bytes: Uint8Array, stream: CompressionStream | DecompressionStream) {
  const readable = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(stream);
  const reader: ReadableStreamDefaultReader<Uint8Array> = readable.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel().catch(() => {});
  }
}

const CRC = /* @__PURE__ */ Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});
export function crc32(bytes: Uint8Array): number {
  let c = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) c = (CRC[(c ^ (bytes[i] as number)) & 0xff] as number) ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
}
