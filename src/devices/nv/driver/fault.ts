// Details of a compute channel that stopped: the addresses without memory that kernels touched. The driver is
// asked for them afterwards, as a debugger does.

import type { Ground } from "./channelgroup.ts";
import { STRUCTS } from "./ioctls.ts";
import { element, sizeOf } from "./structs.ts";

const ACCESS: Readonly<Record<number, string>> = {
  0: "read",
  1: "written",
  2: "changed by an atomic",
  4: "changed by an atomic",
};

/** Begins with a semicolon, or is nothing where nothing was noted. */
export function explainFault(ground: Ground, engine: number): string {
  const { rm, owner } = ground;
  try {
    const session = rm.alloc(owner.device, "GT200_DEBUGGER", "NV83DE_ALLOC_PARAMETERS", {
      hAppClient: rm.client,
      hClass3dObject: engine,
    }).handle;
    try {
      return strayAccesses(ground, session)
        .map((line) => `; ${line}`)
        .join("");
    } finally {
      rm.free(owner.device, session);
    }
  } catch (e) {
    return `; no address is known (${(e as Error).message})`;
  }
}

function strayAccesses({ rm, memory }: Ground, session: number): string[] {
  const [entry, list] = ["NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_ENTRY", "mmuFaultInfoList"] as const;
  const info = rm.ask(
    session,
    "NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO",
    "NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS",
  );
  const count = Math.min(info.get("count"), STRUCTS[info.name].fields[list][1] / sizeOf(entry));
  const faults = info.raw(list);
  return Array.from({ length: count }, (_, i) => {
    const fault = element(entry, faults, i);
    const [va, access] = [fault.get("faultAddress"), fault.get("accessType")];
    return `0x${va.toString(16)} was ${ACCESS[access] ?? `touched (${access})`}, ${memory.whereabouts(va)}`;
  });
}
