// Whether the engine that runs this has relaxed SIMD, which not all have yet: asked by a module that uses it.

import { assemble, FunctionBuilder, OP } from "./assembler.ts";

/** Whether this engine takes relaxed SIMD. */
export function hasRelaxedSimd(): boolean {
  const f = new FunctionBuilder({ params: [], results: [] });
  for (let i = 0; i < 3; i++) f.v128(new Uint32Array(4));
  f.op(OP["f32x4.relaxed_madd"]);
  f.op(OP.drop);
  return WebAssembly.validate(
    assemble({ memory: { min: 1, max: 1, shared: false }, functions: [f], exports: [] }),
  );
}
