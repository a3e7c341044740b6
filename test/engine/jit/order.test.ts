// Memory and time around a jit: calls that are not awaited, memory that an input shares with what is written,
// a replay that fails half way. Each is right or refused; none gives another value than
// the function itself would have.

import { type BufferCopy, JitError, OutOfMemoryError, Tensor, TinyJit } from "gradloom";
import { describe, expect, test, vi } from "vitest";

const floats = (...xs: number[]): Tensor => new Tensor(xs, { dtype: "float32" });
const refusal = async (call: () => Promise<unknown>): Promise<Error> => {
  try {
    await call();
  } catch (e) {
    return e as Error;
  }
  throw new Error("nothing was refused");
};

describe("an input in the memory of a tensor that the function assigns to", () => {
  test("is refused from the first replay on", async () => {
    const w = await floats(1, 2.5).contiguous().realize();
    const f = new TinyJit((x: Tensor) => {
      w.assign(w.add(1));
      return x.mul(2);
    });
    const error = await refusal(async () => {
      for (let i = 0; i < 4; i++) await f(w);
    });
    expect(error).toBeInstanceOf(JitError);
    expect(error.message).toMatch(/assigns to .*, and .* lies in the same memory; pass a copy: x\.clone\(\)/);
  });
  test("a copy is right", async () => {
    const w = await floats(1, 2.5).contiguous().realize();
    const f = new TinyJit((x: Tensor) => {
      w.assign(w.add(1));
      return x.mul(2);
    });
    for (let i = 0; i < 5; i++) {
      const before = Array.from(await w.data(), Number);
      expect(await (await f(w.clone())).tolist()).toEqual(before.map((v) => 2 * v));
    }
  });
});

describe("calls that are not awaited", () => {
  test("an input that is assigned to before its call has run is refused, naming it", async () => {
    const x = await floats(0, 0).contiguous().realize();
    const f = new TinyJit((t: Tensor) => t.mul(2));
    const calls: Promise<Tensor>[] = [];
    for (let i = 0; i < 6; i++) {
      x.assign(Tensor.full([2], i + 0.5));
      calls.push(f(x));
    }
    const results = await Promise.allSettled(calls);
    expect(results.slice(0, -1).every((r) => r.status === "rejected" && r.reason instanceof JitError)).toBe(
      true,
    );
    const first = results[0] as PromiseRejectedResult;
    expect(String(first.reason)).toMatch(
      /was assigned to after this call was made and before it ran; await the call/,
    );
    const last = results.at(-1) as PromiseFulfilledResult<Tensor>;
    expect(await last.value.tolist()).toEqual([11, 11]);
  });
  test("inputs of their own give each call its own result, in order", async () => {
    const w = await floats(1).contiguous().realize();
    const f = new TinyJit((t: Tensor) => {
      w.assign(w.add(t));
      return w.mul(1);
    });
    const calls = [1, 2, 3, 4, 5].map((n) => f(floats(n)));
    const got = await Promise.all((await Promise.all(calls)).map((t) => t.item()));
    expect(got).toEqual([2, 4, 7, 11, 16]);
  });
  test("sync() does not overtake them", async () => {
    const f = new TinyJit((t: Tensor) => t.add(1));
    for (let i = 0; i < 3; i++) await f(floats(i));
    const pending = f(floats(7));
    expect(() => f.sync(floats(8))).toThrow(/an async call of this jit is still running; await it first/);
    expect(await (await pending).item()).toBe(8);
    expect(f.sync(floats(8)).itemSync()).toBe(9);
  });
});

test("a replay that runs out of memory half way fails, and does not assign a second time", async () => {
  const w = await floats(1.5).contiguous().realize();
  const f = new TinyJit(async (x: Tensor) => {
    w.assign(w.add(x));
    return w.data();
  });
  for (let i = 0; i < 3; i++) await f(floats(1));
  const copy = f.jitCache.at(-1)?.runner as BufferCopy;
  const run = vi.spyOn(copy, "run").mockImplementationOnce(() => {
    throw new OutOfMemoryError("no room to stage the copy");
  });
  await expect(f(floats(1))).rejects.toThrow(OutOfMemoryError);
  run.mockRestore();
  expect(Array.from(await f(floats(1)), Number)).toEqual([6.5]);
});
