// NULL records what it is asked to run, computes nothing and holds nothing: for looking at kernels and for measuring
// the host side. What is read back from it is zeros.

import { ClangRenderer } from "../render/languages.ts";
import type { Compiled, Launch } from "../runtime/device.ts";

export interface Recorded {
  readonly name: string;
  readonly source: string;
  readonly launch: Launch;
  readonly buffers: number;
}

/** Every kernel that a NULL device ran since it was loaded; clear it with `recorded.length = 0`. */
export const recorded: Recorded[] = [];

export const open = (name: string): Compiled<null> => ({
  name,
  allocator: {
    alloc: () => null,
    free() {},
    copyin() {},
    copyout: (dest) => void dest.fill(0),
    view: () => undefined,
    offset: () => null,
    canTransfer: true,
    transfer() {},
  },
  renderer: { ...ClangRenderer, name },
  compile: (kernel, source) => ({
    run(handles, launch) {
      recorded.push({ name: kernel, source: String(source), launch, buffers: handles.length });
      return 0;
    },
  }),
  synchronize() {},
});
