// The other devices give what numpy gives: CLANG compiles each kernel with a C compiler, MOCKNV renders CUDA
// and interprets it, CUDA and NV want a GPU. All settings run the same programs, so that kernels are compiled
// once.

import { MOCK } from "../devices/nv/register.ts";
import { oracleSuite } from "./suite.ts";

for (const device of ["CLANG", MOCK, "CUDA", "NV"])
  await oracleSuite(device, { everything: false, programs: 408, searched: 12, rotates: false });
