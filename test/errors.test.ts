// The classes of errors: each says its own name, whatever a minifier calls it, and is a GradloomError.

import { expect, test } from "vitest";
import * as errors from "../src/errors.ts";

test.each(Object.entries(errors))("%s", (name, type) => {
  const error = new type("x");
  expect(error.name).toBe(name);
  expect(error).toBeInstanceOf(errors.GradloomError);
  expect(String(error)).toContain(name);
});
