// One channel: a ring of entries in the GPU's memory, each the address and length of words to execute, and
// behind it the USERD page, through which host and GPU tell each other how far they are. Fills the ring and
// rings the doorbell; what the words say, and when work is done, is for others.

import { env } from "../../../env.ts";
import { DeviceError, InternalError } from "../../../errors.ts";
import type { LinuxKernel } from "../../linux/syscalls.ts";
import type { NVChannel } from "../gpu.ts";
import { CHANNEL_ERRORS } from "./errornames.ts";
import { STRUCTS } from "./ioctls.ts";

/** Words of one entry, which has 21 bits for them. */
const MAX_DWORDS = 2 ** 21 - 1;
/** Entries at the end of which the unit that fetches returns to the ring. */
const SUBROUTINE = 1 << 9;

/** The errors that a wrong program meets, in words; the driver's names follow. */
const WORDS: Readonly<Record<number, string>> = {
  11: "a method that its class does not have",
  13: "an instruction failed, by a misaligned or impossible address or by being none (dmesg says which)",
  31: "an access to an address where no memory is",
  32: "words that are not commands",
};

const USERD = STRUCTS.NvA06FControl;
const NOTIFICATION = STRUCTS.NvNotification.fields;
const USERD_BYTES = USERD.bytes;
export const ENTRY_BYTES = 8;

/** What a channel stands on. */
interface ChannelParts {
  readonly kind: NVChannel["kind"];
  readonly entries: number;
  /** the ring, and right behind it USERD */
  readonly bytes: Uint8Array;
  readonly doorbell: Uint32Array;
  /** what the doorbell wants to be told */
  readonly token: number;
  readonly notifier: Uint8Array;
  readonly kernel: LinuxKernel;
  /** more about a fault, asked once */
  readonly explain: () => string;
}

export class Channel implements NVChannel {
  readonly kind: NVChannel["kind"];
  readonly entries: number;
  readonly #parts: ChannelParts;
  readonly #ring: Uint32Array;
  readonly #userd: Uint32Array;
  readonly #doorbell: Uint32Array;
  readonly #notifier: DataView;
  #put = 0;
  /** the GPU was here when it was last asked: a read across the bus takes a microsecond */
  #get = 0;
  #fault: string | undefined;

  constructor(parts: ChannelParts) {
    const { kind, entries, bytes, notifier } = parts;
    this.kind = kind;
    this.entries = entries;
    this.#parts = parts;
    this.#ring = new Uint32Array(bytes.buffer, bytes.byteOffset, entries * 2);
    this.#userd = new Uint32Array(bytes.buffer, bytes.byteOffset + entries * ENTRY_BYTES, USERD_BYTES / 4);
    this.#doorbell = parts.doorbell;
    this.#notifier = new DataView(notifier.buffer, notifier.byteOffset, notifier.byteLength);
  }

  submit(va: number, dwords: number): void {
    if (dwords <= 0 || dwords > MAX_DWORDS || va % 4 !== 0) {
      throw new InternalError(
        `NV: ${dwords} words at ${va}: an entry takes 1 to ${MAX_DWORDS} at a multiple of 4`,
      );
    }
    const { kernel, token } = this.#parts;
    const at = this.#put;
    const next = at + 1 === this.entries ? 0 : at + 1;
    if (next === this.#get) this.#makeRoom(next);
    this.#ring[2 * at] = va;
    this.#ring[2 * at + 1] = Math.floor(va / 2 ** 32) | SUBROUTINE | (dwords << 10);
    // the GPU may read the end of the ring at any time: the entry must be there before
    kernel.barrier();
    this.#userd[USERD.fields.GPPut[0] / 4] = next;
    kernel.barrier();
    this.#doorbell[0] = token;
    this.#put = next;
  }

  pending(): number {
    this.#get = this.#userd[USERD.fields.GPGet[0] / 4] as number;
    return (this.#put - this.#get + this.entries) % this.entries;
  }

  /** Watches until the GPU has fetched at least one entry. */
  #makeRoom(next: number): void {
    const limit = performance.now() + env.HCQ_TIMEOUT * 1000;
    for (;;) {
      this.pending();
      if (next !== this.#get) return;
      const fault = this.fault();
      if (fault !== undefined) throw new DeviceError(fault);
      if (performance.now() > limit) {
        throw new DeviceError(
          `NV: the ${this.kind} ring is full and the GPU took nothing from it for ${env.HCQ_TIMEOUT} s; ` +
            `what it waits for never came`,
        );
      }
    }
  }

  fault(): string | undefined {
    if (this.#fault !== undefined) return this.#fault;
    const status = this.#notifier.getUint16(NOTIFICATION.status[0], true);
    if (status === 0) return undefined;
    const code = this.#notifier.getUint32(NOTIFICATION.info32[0], true);
    const names = [WORDS[code], CHANNEL_ERRORS[code]].filter((name) => name !== undefined);
    const what = names.join(", ") || "an unknown error";
    this.#fault = `NV: the ${this.kind} channel stopped: ${what} (Xid ${code})${this.#parts.explain()}`;
    return this.#fault;
  }
}
