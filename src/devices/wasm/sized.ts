// The memory that WASM_MEMORY asks for, of up to 16 GiB where the engine has memory64: its addresses have 64
// bits. What queues name by 32 bits then lies at the start. A page loads this file only if the setting is not
// the usual 4.

import { env } from "../../env.ts";
import { DeviceError } from "../../errors.ts";
import { WIDE_PAGES } from "../../render/wasm/addresses.ts";
import { AddressSpace } from "../../runtime/addressspace.ts";
import { CONTROL_BYTES, PAGE } from "./layout.ts";
import { INITIAL, reserve, WasmMemory } from "./memory.ts";

const GIB = 2 ** 30;
/** Beyond this, addresses do not fit in 32 bits. */
const NARROW = 4 * GIB;
const MOST = (WIDE_PAGES * PAGE) / GIB;
const LEAST = 1 / 16;
/** A host that cannot reserve what is asked for gives the largest of these, in gigabytes, that it can. */
const LESS = [12, 8, 6, 4, 2, 1, 0.25] as const;
/** The runtime's own blocks lie below this; what has no room there lies below 4 GiB. */
const OWN_BYTES = 2 ** 26;

class WideMemory extends WasmMemory {
  override readonly isWide = true;
  readonly #own = new AddressSpace(CONTROL_BYTES);

  override allocOwn(nbytes: number, zeroed: boolean): number | undefined {
    return (
      this.allocIn(this.#own, nbytes, zeroed, OWN_BYTES) ??
      this.allocIn(this.space, nbytes, zeroed, Math.min(this.maxBytes, NARROW))
    );
  }
  override free(at: number, nbytes: number): void {
    if (at < OWN_BYTES) this.#own.free(at, nbytes);
    else super.free(at, nbytes);
  }
  /** It takes BigInts, which TypeScript does not know yet. */
  protected override addPages(count: number): void {
    this.memory.grow(BigInt(count) as unknown as number);
  }
}

function newWide(initial: number, maximum: number, shared: boolean): WebAssembly.Memory {
  const wide = { address: "i64", initial: BigInt(initial), maximum: BigInt(maximum), shared };
  return new WebAssembly.Memory(wide as unknown as WebAssembly.MemoryDescriptor);
}
/** Whether this engine has memory64; another refuses the BigInts. */
export function hasWideMemory(): boolean {
  try {
    newWide(0, 1, false);
    return true;
  } catch {
    return false;
  }
}

export function sizedMemory(shared: boolean, gigabytes = env.WASM_MEMORY): WasmMemory {
  if (!(gigabytes >= LEAST && gigabytes <= MOST)) {
    throw new DeviceError(
      `WASM: WASM_MEMORY is ${gigabytes}, expected gigabytes from 1/16 to ${MOST}; 4 is the default`,
    );
  }
  const sizes = [gigabytes, ...LESS.filter((x) => x < gigabytes)].map((x) => Math.floor((x * GIB) / PAGE));
  if (gigabytes <= 4) return new WasmMemory(shared, ...reserve(sizes, shared));
  if (!hasWideMemory()) {
    throw new DeviceError(
      `WASM: WASM_MEMORY is ${gigabytes}, but more than 4 GiB need memory64, which this engine does not have; ` +
        "Chromium 133, Firefox 134 and Node 24 do. Set at most 4, or use CLANG, whose memory is that of the process",
    );
  }
  const room = reserve(sizes, shared, (maximum) => newWide(INITIAL, maximum, shared));
  return new WideMemory(shared, ...room, OWN_BYTES);
}
