// NULL records what it is asked to run, computes nothing and holds nothing: for looking at kernels and for
// measuring the host side. Reading from it gives zeros.

import { ClangRenderer } from "../render/languages.ts";
import { type Compiled, HOST_ALIGN, HOST_SLACK, type Launch } from "../runtime/device.ts";

export interface Recorded {
  readonly name: string;
  readonly source: string;
  readonly launch: Launch;
  readonly buffers: number;
}

/** The kernels that NULL devices ran, the last MAX_RECORDED of them; clear it with `recorded.length = 0`. */
export const recorded: Recorded[] = [];
const MAX_RECORDED = 10_000;

export const open = (name: string): Compiled<null> => ({
  name,
  allocator: {
    alloc: () => null,
    free() {},
    copyin() {},
    copyout: (dest) => void dest.fill(0),
    view: () => undefined,
    offset: () => null,
    recycles: false,
    isSlow: false,
    slack: HOST_SLACK,
    offsetAlign: HOST_ALIGN,
    canTransfer: true,
    transfer() {},
  },
  renderer: { ...ClangRenderer, name },
  keepsTime: false,
  space: recorded,
  timeline: undefined,
  graph: undefined,
  compilesAside: false,
  compile: (kernel, { code }) => ({
    run(handles, launch) {
      if (recorded.length === MAX_RECORDED) recorded.shift();
      recorded.push({ name: kernel, source: String(code), launch, buffers: handles.length });
      return 0;
    },
  }),
  synchronize() {},
});
