// `#devices/threads`: what several threads take. How the host shares kernels, and how workers are started:
// their text is the classes that they run, and `start(data, native)`.

import { kernelsText } from "#devices/kernels";
import { canBlock } from "#host";
import { spawnWorker } from "#host/workers";
import type { WorkerHandle } from "../../host/contract.ts";
import { Executor } from "./executor.ts";
import { Governor } from "./governor.ts";
import { LAYOUT } from "./layout.ts";
import { WorkSharing } from "./worksharing.ts";

export { executeShort } from "./inline.ts";

/** For a host that may block. */
export const hostSharing = (): WorkSharing | undefined =>
  canBlock ? new WorkSharing(LAYOUT, 0, new Governor(LAYOUT)) : undefined;

/** What a worker starts with. */
export interface WorkerData {
  readonly memory: WebAssembly.Memory;
  readonly layout: typeof LAYOUT;
  readonly id: number;
  /** iterations of watching the bell before it sleeps */
  readonly spins: number;
}
export type Spawn = (data: WorkerData, onEnd: (why: string) => void) => WorkerHandle;

/** The bundlers' helper for function names is not there, so it is made. */
const source = (): string =>
  `const __name = (f) => f;\nconst Executor = ${Executor};\nconst Governor = ${Governor};\n` +
  `const WorkSharing = ${WorkSharing};\nconst Kernels = ${kernelsText()};\n` +
  "const start = ({ memory, layout, id, spins }, native) => {\n" +
  "  const kernels = new Kernels(memory, layout, id, native);\n" +
  "  const sharing = new WorkSharing(layout, id, new Governor(layout));\n" +
  "  new Executor(memory, layout, id, kernels, sharing).loop(spins);\n" +
  "};\n";
const spawn: Spawn = (data, onEnd) => spawnWorker(source(), data, onEnd);

/** How to start a worker; undefined where that is not known yet: then `later` is called when it is. */
export const spawner = (_later?: () => void): Spawn | undefined => spawn;
