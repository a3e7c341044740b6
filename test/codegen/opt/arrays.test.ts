// Room for the arrays between loops: each starts on a cache line, those that the graph has count, and what
// does not fit is refused.

import { expect, test } from "vitest";
import { ArrayRoom, lineBytes } from "../../../src/codegen/opt/arrays.ts";
import { dtypes } from "../../../src/dtype.ts";
import { ClangRenderer } from "../../../src/render/languages.ts";
import { UOpArena } from "../../../src/uop/arena.ts";

const target = { ...ClangRenderer, sharedMax: 256 };
const refuse = (why: string): never => {
  throw new Error(why);
};

test("bytes are rounded up to cache lines", () => {
  expect([0, 1, 64, 65].map(lineBytes)).toEqual([0, 64, 64, 128]);
});

test("arrays take room until there is none", () => {
  const a = new UOpArena();
  const first = a.local(dtypes.float32, "first", 17);
  const room = new ArrayRoom(target, [first]);
  room.take(a.local(dtypes.float32, "second", 32), refuse);
  expect(() => room.take(a.local(dtypes.int8, "third", 1), refuse)).toThrow(
    `${target.name} has room for 256 bytes`,
  );
});
