// SPEC: each malformed list is refused and names the node; what the rest of the tests build is accepted.
// Nodes are made without an arena here, so that nothing folds.

import { describe, expect, test } from "vitest";
import { type DType, dtypes, PtrDType } from "../../src/dtype.ts";
import { InternalError } from "../../src/errors.ts";
import { Variable } from "../../src/shape/symbolic.ts";
import { UOpGraph } from "../../src/uop/list.ts";
import { makeUOp, type UOp, type UOpArgs, type UOpName, type UType } from "../../src/uop/node.ts";
import { checkList } from "../../src/uop/spec.ts";

const { int32, int64, float32, float64, bool, uint8 } = dtypes;

/** Adds nodes to a list as they are, wrong or not. */
class List {
  readonly uops = new UOpGraph();
  put<K extends UOpName>(op: K, dtype: UType, srcs: readonly UOp[], arg: UOpArgs[K]): UOp {
    const u = makeUOp(op, dtype, srcs, arg) as UOp;
    this.uops.push(u);
    return u;
  }
  n(v: number, d: DType = int32): UOp {
    return this.put("CONST", d, [], v);
  }
  buf(d: DType = float32, at = 0): UOp {
    return this.put("DEFINE_GLOBAL", PtrDType(d), [], [at, `data${at}`, at === 0]);
  }
  loop(end = 4): UOp {
    return this.put("LOOP", int32, [this.n(0), this.n(end)], undefined);
  }
  endloop(loop: UOp): UOp {
    return this.put("ENDLOOP", undefined, [loop], undefined);
  }
  load(buf: UOp, i: UOp, d: DType = float32): UOp {
    return this.put("LOAD", d, [buf, i], undefined);
  }
  store(...srcs: UOp[]): UOp {
    return this.put("STORE", undefined, srcs, undefined);
  }
}

/** A good list: out[i] = sum of in[i, k]. */
function good(l: List): void {
  const [out, src] = [l.buf(), l.buf(float32, 1)];
  const i = l.loop(3);
  const acc = l.put("DEFINE_ACC", float32, [], 0);
  const k = l.loop(4);
  const at = l.put("ALU", int32, [l.put("ALU", int32, [i, l.n(4)], "MUL"), k], "ADD");
  const sum = l.put("ALU", float32, [l.load(src, at), acc], "ADD");
  const phi = l.put("PHI", float32, [acc, sum, k], undefined);
  l.endloop(k);
  l.store(out, i, phi);
  l.endloop(i);
}

/** What is wrong -> how to build it. */
const BAD: Readonly<Record<string, (l: List) => void>> = {
  // types of single nodes
  "a buffer that is not a pointer": (l) => l.put("DEFINE_GLOBAL", float32, [], [0, "data0", true]),
  "workgroup memory that is not a pointer": (l) => l.put("DEFINE_LOCAL", float32, [], ["temp", 4]),
  "an accumulator of no type": (l) => l.put("DEFINE_ACC", undefined, [], 0),
  "a variable that is not an int32": (l) => l.put("DEFINE_VAR", int64, [], Variable("n", 1, 4)),
  "a grid index that is not an int32": (l) => l.put("SPECIAL", float32, [], [0, "gidx0", 4]),
  "a 64-bit constant that is not a bigint": (l) => l.put("CONST", int64, [], 5),
  "a 32-bit constant that is a bigint": (l) => l.put("CONST", int32, [], 5n),
  "a constant of no type": (l) => l.put("CONST", undefined, [], 5),
  "a loop to a float": (l) => l.put("LOOP", int32, [l.n(0), l.n(4, float32)], undefined),
  "a loop without an end": (l) => l.put("LOOP", int32, [l.n(0)], undefined),
  "a loop that is not an int32": (l) => l.put("LOOP", int64, [l.n(0), l.n(4)], undefined),
  "a condition that is not a bool": (l) => l.put("IF", undefined, [l.n(1)], undefined),
  "a cast of two values": (l) => l.put("CAST", float32, [l.n(1), l.n(2)], undefined),
  "a cast that changes the lanes": (l) => l.put("CAST", float32.vec(4), [l.n(1)], undefined),
  "a bitcast between sizes": (l) => l.put("BITCAST", float64, [l.n(1)], undefined),
  "a lane that is not there": (l) => l.put("GEP", float32, [l.put("CONST", float32.vec(4), [], 1)], 4),
  "a negative lane": (l) => l.put("GEP", float32, [l.put("CONST", float32.vec(4), [], 1)], -1),
  "a lane of another type": (l) => l.put("GEP", int32, [l.put("CONST", float32.vec(4), [], 1)], 0),
  "too few lanes": (l) => l.put("VECTORIZE", float32.vec(4), [l.n(1, float32), l.n(2, float32)], undefined),
  "lanes of another type": (l) => l.put("VECTORIZE", float32.vec(2), [l.n(1), l.n(2)], undefined),
  "a barrier with a value": (l) => l.put("BARRIER", float32, [], undefined),

  // arithmetic
  "an op with too few sources": (l) => l.put("ALU", float32, [l.n(1, float32)], "ADD"),
  "an op with too many sources": (l) => l.put("ALU", int32, [l.n(1), l.n(2)], "NEG"),
  "an op on two types": (l) => l.put("ALU", float32, [l.n(1), l.n(1, float32)], "ADD"),
  "an op with another result": (l) => l.put("ALU", int32, [l.n(1, float32), l.n(1, float32)], "ADD"),
  "a comparison that is not a bool": (l) =>
    l.put("ALU", float32, [l.n(1, float32), l.n(1, float32)], "CMPLT"),
  "a choice by a number": (l) => l.put("ALU", int32, [l.n(1), l.n(1), l.n(2)], "WHERE"),
  "a choice between two types": (l) =>
    l.put("ALU", float32, [l.n(1, bool), l.n(1), l.n(2, float32)], "WHERE"),
  "an op on vectors of two widths": (l) =>
    l.put("ALU", float32.vec(4), [l.n(1, float32.vec(4)), l.n(1, float32.vec(8))], "SUB"),
  "a result of another width": (l) =>
    l.put("ALU", float32.vec(4), [l.n(1, float32.vec(8)), l.n(1, float32.vec(8))], "SUB"),
  "a choice by fewer conditions than values": (l) =>
    l.put("ALU", int32.vec(4), [l.n(1, bool.vec(2)), l.n(1, int32.vec(4)), l.n(2, int32.vec(4))], "WHERE"),
  "a choice by one condition for many values": (l) =>
    l.put("ALU", int32.vec(4), [l.n(1, bool), l.n(1, int32.vec(4)), l.n(2, int32.vec(4))], "WHERE"),
  "arithmetic on a pointer": (l) => l.put("ALU", PtrDType(float32), [l.buf(), l.n(1)], "ADD"),

  // memory
  "a load of another type": (l) => l.load(l.buf(), l.n(0), float64),
  "a load from a number": (l) => l.load(l.n(0), l.n(0)),
  "a load at a float": (l) => l.load(l.buf(), l.n(0, float32)),
  "a load with a gate and no other value": (l) =>
    l.put("LOAD", float32, [l.buf(), l.n(0), l.n(1, bool)], undefined),
  "a load with a gate that is not a bool": (l) =>
    l.put("LOAD", float32, [l.buf(), l.n(0), l.n(1), l.n(0, float32)], undefined),
  "a load whose other value has another type": (l) =>
    l.put("LOAD", float32, [l.buf(), l.n(0), l.n(1, bool), l.n(0)], undefined),
  "a store of another type": (l) => l.store(l.buf(), l.n(0), l.n(1)),
  "a store of nothing": (l) => l.store(l.buf(), l.n(0)),
  "a store at a bool": (l) => l.store(l.buf(uint8), l.n(0, bool), l.n(0, uint8)),
  "a store with a gate that is not a bool": (l) => l.store(l.buf(), l.n(0), l.n(1, float32), l.n(1)),

  // accumulators
  "a PHI without an accumulator": (l) => {
    const x = l.n(1, float32);
    const loop = l.loop();
    l.put("PHI", float32, [x, x, loop], undefined);
    l.endloop(loop);
  },
  "a PHI of another type": (l) => {
    const acc = l.put("DEFINE_ACC", float32, [], 0);
    const loop = l.loop();
    l.put("PHI", float32, [acc, loop, loop], undefined);
    l.endloop(loop);
  },
  "a PHI over something that is not a loop": (l) => {
    const acc = l.put("DEFINE_ACC", float32, [], 0);
    l.put("PHI", float32, [acc, l.n(1, float32), l.n(1)], undefined);
  },
  "an accumulator inside its own loop": (l) => {
    const loop = l.loop();
    const acc = l.put("DEFINE_ACC", float32, [], 0);
    l.put("PHI", float32, [acc, l.n(1, float32), loop], undefined);
    l.endloop(loop);
  },

  // order and loops
  "a node before its source": (l) => {
    const late = makeUOp("CONST", int32, [], 1) as UOp;
    l.put("ALU", int32, [late], "NEG");
    l.uops.push(late);
  },
  "a source that is nowhere": (l) => l.put("ALU", int32, [makeUOp("CONST", int32, [], 1) as UOp], "NEG"),
  "a loop that is never closed": (l) => l.loop(),
  "a condition that is never closed": (l) => l.put("IF", undefined, [l.n(1, bool)], undefined),
  "loops closed in the wrong order": (l) => {
    const [a, b] = [l.loop(), l.loop()];
    l.endloop(a);
    l.endloop(b);
  },
  "a loop closed twice": (l) => {
    const loop = l.loop();
    l.endloop(loop);
    l.endloop(loop);
  },
  "an end of something that is not a loop": (l) => l.put("ENDLOOP", undefined, [l.n(1)], undefined),
  "an ENDIF of a loop": (l) => l.put("ENDIF", undefined, [l.loop()], undefined),
  "a value used after its loop": (l) => {
    const buf = l.buf();
    const loop = l.loop();
    const x = l.load(buf, loop);
    l.endloop(loop);
    l.store(buf, l.n(0), x);
  },
  "a loop's index used after it": (l) => {
    const buf = l.buf(int32);
    const loop = l.loop();
    l.endloop(loop);
    l.store(buf, l.n(0), loop);
  },
  "a value used after its condition": (l) => {
    const buf = l.buf();
    const condition = l.put("IF", undefined, [l.n(1, bool)], undefined);
    const x = l.load(buf, l.n(0));
    l.put("ENDIF", undefined, [condition], undefined);
    l.store(buf, l.n(0), x);
  },
  "an accumulated value used after the loop around it": (l) => {
    const buf = l.buf();
    const outer = l.loop();
    const acc = l.put("DEFINE_ACC", float32, [], 0);
    const inner = l.loop();
    const phi = l.put("PHI", float32, [acc, l.load(buf, inner), inner], undefined);
    l.endloop(inner);
    l.endloop(outer);
    l.store(buf, l.n(0), phi);
  },

  // what only graphs have
  "a RANGE": (l) => l.put("RANGE", int32, [l.n(0), l.n(4)], { id: 0, size: 4, kind: "output", of: 0 }),
  "a REDUCE": (l) => l.put("REDUCE", float32, [l.n(1, float32)], "SUM"),
  "a SINK": (l) => l.put("SINK", undefined, [], undefined),
};

describe("a list", () => {
  test("that is well formed passes", () => {
    const l = new List();
    good(l);
    expect(() => checkList(l.uops)).not.toThrow();
    expect(() => checkList(new UOpGraph())).not.toThrow();
  });
  test("with gates, conditions, vectors and workgroup memory passes", () => {
    const l = new List();
    const buf = l.buf();
    const local = l.put("DEFINE_LOCAL", PtrDType(float32, true), [], ["temp", 8]);
    const gidx = l.put("SPECIAL", int32, [], [0, "gidx0", 8]);
    const inside = l.put("ALU", bool, [gidx, l.n(5)], "CMPLT");
    const x = l.put("LOAD", float32, [buf, gidx, inside, l.n(0, float32)], undefined);
    l.store(local, gidx, x, inside);
    l.put("BARRIER", undefined, [], undefined);
    const condition = l.put("IF", undefined, [inside], undefined);
    const four = l.put("LOAD", float32.vec(4), [buf, l.n(0)], undefined);
    const lane = l.put("GEP", float32, [four], 3);
    l.store(buf, l.n(0), l.put("VECTORIZE", float32.vec(2), [lane, lane], undefined));
    l.put("ENDIF", undefined, [condition], undefined);
    expect(() => checkList(l.uops)).not.toThrow();
  });
  for (const [what, build] of Object.entries(BAD)) {
    test(`with ${what} is refused`, () => {
      const l = new List();
      build(l);
      expect(() => checkList(l.uops)).toThrow(InternalError);
    });
  }
  test("the message names the node, where it stands and shows the list", () => {
    const l = new List();
    BAD["a value used after its loop"]?.(l);
    expect(() => checkList(l.uops)).toThrow(
      /internal: STORE \(step 7\) uses LOAD after its loop\nstep {2}Op_name/,
    );
  });
});
