// `TinyJit` of the built package in Node: what jit.ts exports, whose code loads when it is first used.

import { rest } from "../../host/rest.ts";

type JitClass = typeof import("./jit.ts").TinyJit;
const loaded = (): JitClass => rest<{ TinyJit: JitClass }>().TinyJit;

export const TinyJit = new Proxy(function TinyJit() {}, {
  construct: (_, args, target) => Reflect.construct(loaded(), args, target === TinyJit ? loaded() : target),
  apply: (_, self, args) => Reflect.apply(loaded() as unknown as () => unknown, self, args),
  get: (_, key) => Reflect.get(loaded(), key),
}) as unknown as JitClass;
