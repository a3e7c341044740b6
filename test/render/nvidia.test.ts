// The figures of NVIDIA's GPUs: by their compute capability, unless the driver says otherwise.

import { expect, test } from "vitest";
import { nvidiaGpu } from "../../src/render/nvidia.ts";

test("a generation has its figures, those between two have the older one's", () => {
  const figures = (capability: number) => {
    const { threadsPerUnit, workgroupsPerUnit, sharedPerUnit } = nvidiaGpu(capability, { computeUnits: 10 });
    return [threadsPerUnit, workgroupsPerUnit, sharedPerUnit / 1024];
  };
  expect(figures(60)).toEqual([2048, 32, 96]);
  expect(figures(75)).toEqual([1024, 16, 64]);
  expect(figures(80)).toEqual([2048, 32, 164]);
  expect(figures(89)).toEqual([1536, 24, 100]);
  expect(figures(90)).toEqual([2048, 32, 228]);
  expect(figures(100)).toEqual([2048, 32, 228]);
});
test("what the driver says counts", () => {
  const queried = { computeUnits: 7, threadsPerUnit: 512, registersPerUnit: 4096, sharedPerUnit: 1000 };
  expect(nvidiaGpu(90, queried)).toMatchObject(queried);
});
test("tensor cores and asynchronous copies come with their generation", () => {
  const sizes = (capability: number) =>
    new Set(nvidiaGpu(capability, { computeUnits: 1 }).tensorCores.map((c) => c.from.itemsize));
  expect([75, 80, 89].map((c) => [...sizes(c)].sort())).toEqual([[], [2, 4], [1, 2, 4]]);
  expect([75, 80].map((c) => nvidiaGpu(c, { computeUnits: 1 }).hasAsyncCopy)).toEqual([false, true]);
});
test("what a step costs follows from the lanes of the generation", () => {
  const cycles = (capability: number) => nvidiaGpu(capability, { computeUnits: 1 }).cycles;
  expect(cycles(90)).toEqual({
    multiplyAdd: 1.08,
    loop: 8,
    copy: 3,
    barrier: 40,
    store: 16,
    combine: 30,
  });
  // 64 lanes for four schedulers: a warp takes two cycles
  for (const capability of [70, 75, 80]) expect(cycles(capability).multiplyAdd).toBe(2.16);
  for (const capability of [86, 89, 120]) expect(cycles(capability)).toEqual(cycles(90));
});
