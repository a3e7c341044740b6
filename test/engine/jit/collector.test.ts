// The CacheCollector and a Trace in the hands of others: what is done between start and finish.

import { Buffer, BufferCopy, CacheCollector, Device, Tensor, Trace, type TraceItem } from "gradloom";
import { expect, test } from "vitest";

const names = (items: readonly TraceItem[]) => items.map((x) => x.runner?.name ?? x.item.ast[0]?.op);

test("what is realised and executed within a trace is in it, nothing else is", async () => {
  await Device.open("WASM");
  const trace = new Trace();
  expect(CacheCollector.collecting).toBe(false);
  CacheCollector.start(trace);
  const made = await CacheCollector.within(trace, async () => {
    expect(CacheCollector.collecting).toBe(true);
    const [to, from] = [new Buffer("WASM", 2, "int").allocate(), new Buffer("WASM", 2, "int").allocate()];
    new BufferCopy().exec([to, from]);
    return new Tensor([1, 2]).dot(new Tensor([3, 4])).realize();
  });
  const outside = await new Tensor([5, 6]).add(1).realize();
  const done = CacheCollector.finish(trace);
  expect(names(done)).toEqual(["copy", "copy", "copy", "r_2"]);
  expect(done).toEqual(trace.captured);
  expect(done.at(-1)?.item.outputs[0]).toBe(made.lazydata.base.realized);
  expect(await outside.tolist()).toEqual([6, 7]);
  expect(CacheCollector.collecting).toBe(false);
  expect(trace.items.length).toBe(4);
});

test("two traces at once keep apart what is theirs", async () => {
  const traces = [new Trace(), new Trace()] as const;
  for (const t of traces) CacheCollector.start(t);
  await Promise.all([
    CacheCollector.within(traces[0], () => new Tensor([1, 2]).add(1).realize()),
    CacheCollector.within(traces[1], () => new Tensor([1, 2]).sum().add(3).realize()),
  ]);
  const [first, second] = traces.map((t) => names(CacheCollector.finish(t)).at(-1));
  expect([first?.startsWith("E_"), second?.startsWith("r_")]).toEqual([true, true]);
});
