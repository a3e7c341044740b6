// What is submitted to the rings while something runs, as text: a line a command, under a line for each
// submission. Addresses are numbered in the order they appear, so that the text is the same every time.

import { vi } from "vitest";
import { disassemble } from "../../../src/devices/wasm/disassemble.ts";
import type { WasmDevice } from "../../../src/devices/wasm.ts";

export async function recorded(dev: WasmDevice, run: () => unknown): Promise<string[]> {
  const { hardware } = dev;
  const lines: string[] = [];
  const submit = hardware.submit.bind(hardware);
  const spy = vi.spyOn(hardware, "submit").mockImplementation((ring, at, nwords, worth) => {
    const stream = hardware.memory.words.slice(at >>> 2, (at >>> 2) + nwords);
    lines.push(`${ring.label}:`, ...disassemble(stream, hardware.names).map((line) => `  ${line}`));
    submit(ring, at, nwords, worth);
  });
  try {
    await run();
  } finally {
    spy.mockRestore();
  }
  const numbers = new Map<string, string>();
  return lines.map((line) =>
    line.replaceAll(/0x[0-9a-f]+/g, (address) => {
      if (!numbers.has(address)) numbers.set(address, `@${numbers.size}`);
      return numbers.get(address) as string;
    }),
  );
}
