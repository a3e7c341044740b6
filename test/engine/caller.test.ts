// Whose line a message names, in stacks as engines write them, and with the library as sources, as a package
// and as a part of the user's own file.

import { expect, test } from "vitest";
import { callerIn, callerLine } from "../../src/engine/caller.ts";

test("this line", () => {
  expect(callerLine()).toMatch(/test\/engine\/caller\.test\.ts:\d+:\d+$/);
});

const v8 = (...frames: string[]): string => ["Error", ...frames.map((f) => `    at ${f}`)].join("\n");

test("of sources", () => {
  const stack = v8(
    "callerLine (file:///lib/src/engine/caller.ts:20:17)",
    "assign (file:///lib/src/tensor/values.ts:1:2)",
    "process.processTicksAndRejections (node:internal/process/task_queues:95:5)",
    "async file:///home/me/train.mjs:7:3",
  );
  expect(callerIn(stack)).toBe("/home/me/train.mjs:7:3");
});

test("of the package, whose files are several", () => {
  const stack = v8(
    "callerLine (file:///me/node_modules/gradloom/dist/node/chunks/core-ABC.js:20:17)",
    "step (/me/node_modules/gradloom/dist/node/chunks/rest.cjs:1:2)",
    "/me/train.mjs:7:3",
  );
  expect(callerIn(stack)).toBe("/me/train.mjs:7:3");
});

test("of a bundle beside the user's own, in Firefox", () => {
  const stack =
    "callerLine@http://host/gradloom-1.js:1:99\nassign@http://host/gradloom-1.js:1:55\nstep@http://host/app-2.js:1:7\n";
  expect(callerIn(stack)).toBe("http://host/app-2.js:1:7");
});

test("of a bundle with the user's own code, and of a stack that says nothing: none", () => {
  expect(callerIn(v8("a (blob:http://host/1-2:1:99)", "b (blob:http://host/1-2:1:7)"))).toBe("");
  expect(callerIn("")).toBe("");
});
