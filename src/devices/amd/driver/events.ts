// What the kernel driver tells of a GPU that stumbled: a memory event (an address where nothing is) and a
// hardware event (a reset). They are looked at without waiting, and reset when the rings are made anew.

import type { NativeMemory } from "../../linux/syscalls.ts";
import { EVENT, STRUCTS, WAIT_COMPLETE } from "./ioctls.ts";
import { type Kfd, KfdStruct } from "./kfd.ts";

const KINDS = [EVENT.MEMORY, EVENT.HARDWARE] as const;
const CAUSES: Readonly<Record<number, string>> = { 0: "it hung", 1: "an error in its memory" };

export class FaultEvents {
  readonly #kfd: Kfd;
  readonly #gpuId: number;
  readonly #ids: readonly number[];
  readonly #memory: NativeMemory;

  constructor(kfd: Kfd, gpuId: number, undo: (() => void)[]) {
    this.#kfd = kfd;
    this.#gpuId = gpuId;
    this.#memory = kfd.system.alloc(KINDS.length * STRUCTS.eventData.bytes);
    undo.push(() => kfd.system.free(this.#memory));
    this.#ids = KINDS.map((type) => {
      const id = kfd.call("CREATE_EVENT", { type }, "an event").get("id");
      undo.push(() => void kfd.call("DESTROY_EVENT", { id }));
      return id;
    });
  }

  #data(i: number): KfdStruct<"eventData"> {
    return new KfdStruct("eventData", this.#memory, i * STRUCTS.eventData.bytes);
  }
  /** undefined: nothing happened. `whereabouts`: what is at an address. */
  look(whereabouts: (va: number) => string): string | undefined {
    this.#ids.forEach((id, i) => void this.#data(i).fill({ id }));
    const asked = { events: this.#memory.address, count: this.#ids.length };
    if (this.#kfd.call("WAIT_EVENTS", asked).get("result") !== WAIT_COMPLETE) return undefined;
    const [memory, hardware] = [this.#data(0), this.#data(1)];
    if (memory.get("memoryGpu") === this.#gpuId) return stray(memory, whereabouts);
    if (hardware.get("hardwareGpu") !== this.#gpuId) return undefined;
    const cause = CAUSES[hardware.get("resetCause")] ?? "for an unknown reason";
    const lost = hardware.get("memoryLost") === 0 ? "" : ", and its memory is lost";
    return `AMD: the GPU was reset (${cause})${lost}`;
  }
  reset(): void {
    for (const id of this.#ids) this.#kfd.call("RESET_EVENT", { id });
  }
}

function stray(data: KfdStruct<"eventData">, whereabouts: (va: number) => string): string {
  const va = data.get("va");
  const why = data.get("readOnly")
    ? "may only be read"
    : data.get("noExecute")
      ? "holds no code"
      : "has no memory";
  const about = data.get("imprecise") ? "about " : "";
  return `AMD: an access to ${about}0x${va.toString(16)}, which ${why}: ${whereabouts(va)}`;
}
