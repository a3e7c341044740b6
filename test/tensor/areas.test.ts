// Methods that are made from their names, for pages: beside the class, behind the check of arguments.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { guardTensor } from "../../src/tensor/areas.ts";
import { AREAS } from "../../src/tensor/signatures.ts";
import "../../src/tensor/tensor.ts";

test("signatures.ts lists every method that calls a function of an area", () => {
  // a page's build leaves such methods out of the class; one that is not listed shifts all signatures
  const text = readFileSync(join(import.meta.dirname, "../../src/tensor/tensor.ts"), "utf8");
  const called = [...text.matchAll(/\barea\("(\w+)"\)\.(\w+)\(/g)].map(([, area, name]) => `${area} ${name}`);
  const listed = AREAS.split(";").flatMap((list) => {
    const [area, ...methods] = list.split(" ");
    return methods.map((method) => `${area} ${method.replaceAll(/\W/g, "")}`);
  });
  expect(called).toContain("image toImage");
  expect(called.filter((x) => !listed.includes(x))).toEqual([]);
});

test("methods that a class lacks are made beside it, and its own ones stay where they are", () => {
  class Base {
    base(): string {
      return "base";
    }
  }
  class Small extends Base {
    get size(): number {
      throw new Error("a getter is not called");
    }
    mine(): string {
      return "mine";
    }
    static make(): string {
      return "made";
    }
  }
  const before = [Small.prototype, Small].map((owner) => Object.getOwnPropertyNames(owner).slice(0, 6));
  // it has fewer methods than Tensor has signatures
  expect(guardTensor(Small)).toBe(false);
  expect(Object.getOwnPropertyNames(Small.prototype)).toEqual(before[0]);
  expect(Object.getOwnPropertyNames(Small).slice(0, before[1]?.length)).toEqual(before[1]);
  const small = new Small();
  expect(small.base()).toBe("base");
  // the signature of the first static method of Tensor
  expect(() => Small.make()).toThrow("make: argument 1 is missing, expected a string");
  expect(small).toBeInstanceOf(Base);
  expect("conv2d" in small).toBe(true);
  const shown: string[] = [];
  for (const key in small) shown.push(key);
  expect(shown).toEqual([]);
});
