// The words that the encoder makes for a fixed set of work equal those that an H200 executed with the right
// results. golden/h200.json was recorded there by programs.ts through recorder.ts; the mock gives out the
// same addresses, and the kernels say the same of themselves.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { NVDevice } from "../../../src/devices/nv/device.ts";
import type { KernelCompiler } from "../../../src/runtime/hcq/hardware.ts";
import type { TestCubin } from "./commands/elf.ts";
import { MockGpu } from "./mock.ts";
import { runPrograms } from "./programs.ts";
import { type Recording, recorded } from "./recorder.ts";

interface Golden extends Recording {
  /** by name: what NVRTC said of the kernels there */
  readonly kernels: Readonly<Record<string, Required<Pick<TestCubin, "registers">> & { codeBytes: number }>>;
}
const golden = JSON.parse(readFileSync(new URL("golden/h200.json", import.meta.url), "utf8")) as Golden;

test("every word that the H200 ran", async () => {
  const { sharedWindow, localWindow } = golden.gpu;
  const mock = new MockGpu({ addresses: golden.memory.map(([, , va]) => va), sharedWindow, localWindow });
  const { gpu, recording } = recorded(mock);
  const compiler = mock.compiler();
  const alike: KernelCompiler = {
    ...compiler,
    compile(name, source) {
      const { registers, codeBytes } = golden.kernels[name] as Golden["kernels"][string];
      mock.facts = { registers, codeBytes, maxThreads: 1 };
      return compiler.compile(name, source);
    },
  };
  expect(await runPrograms(new NVDevice("NV", gpu, alike))).toBeDefined();
  expect(recording.memory).toEqual(golden.memory);
  expect(recording.submissions.length).toBe(golden.submissions.length);
  recording.submissions.forEach((made, i) => {
    expect(made, `submission ${i}`).toEqual(golden.submissions[i]);
  });
});
