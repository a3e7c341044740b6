// A random program of a class out of a seed, with what it must give. Programs whose result hangs on rounding
// are thrown away and made anew, so that every seed has one.

import { type ClassName, classOf, type Program } from "../language.ts";
import { Unsuitable } from "../reference/array.ts";
import { type Expected, expected } from "../reference/interpreter.ts";
import { Builder, type Limits, SMALL } from "./builder.ts";
import { MAKERS } from "./classes.ts";
import { Dice } from "./dice.ts";

export interface Made {
  readonly program: Program;
  readonly want: readonly Expected[];
}

export function generate(seed: number, c: ClassName = classOf(seed), limits: Limits = SMALL): Made {
  for (let attempt = 0; attempt < 500; attempt++) {
    const dice = new Dice(seed * 512 + attempt);
    // a large one now and then, where threads and tiles have something to do
    const b = new Builder(dice, dice.chance(3) ? { ...limits, between: 16384 } : limits);
    const out = MAKERS[c](b);
    const program = out.length === 0 ? undefined : b.program(c, out, c === "special");
    if (program === undefined) continue;
    try {
      return { program, want: expected(program) };
    } catch (e) {
      if (!(e instanceof Unsuitable)) throw e;
    }
  }
  throw new Error(`fuzz: no program of class ${c} for seed ${seed} in 500 attempts`);
}
