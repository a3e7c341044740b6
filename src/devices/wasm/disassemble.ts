// The words of a queue as text: one line a command, with the names that signals and kernels have.

import { COMMANDS, type RingCommand, WORDS } from "./layout.ts";

/** What the addresses in a stream are called. */
export interface AddressNames {
  readonly signals: Map<number, string>;
  readonly kernels: Map<number, string>;
}

const hex = (word: number | undefined): string => `0x${((word ?? 0) >>> 0).toString(16)}`;

/**
 * `next`: the word that will be executed next gets a mark, -1 for none. `memory`: where the present value of
 * a signal that is waited for is looked up.
 */
export function disassemble(
  stream: ArrayLike<number>,
  { signals, kernels }: AddressNames,
  next = -1,
  memory?: ArrayLike<number>,
): string[] {
  const signal = (word: number | undefined): string => signals.get((word ?? 0) >>> 0) ?? hex(word);
  const is = (word: number | undefined): string =>
    memory === undefined ? "" : ` (is ${memory[(word ?? 0) >>> 2]})`;
  const long = (at: number): string =>
    `0x${((BigInt(stream[at + 1] ?? 0) << 32n) | BigInt((stream[at] ?? 0) >>> 0)).toString(16)}`;
  const show: Record<RingCommand, (at: number) => string> = {
    signal: (at) => `signal ${signal(stream[at + 1])} = ${stream[at + 2]}`,
    wait: (at) => `wait ${signal(stream[at + 1])} >= ${stream[at + 2]}${is(stream[at + 1])}`,
    timestamp: (at) => `timestamp ${signal(stream[at + 1])}`,
    memoryBarrier: () => "memoryBarrier",
    exec: (at) => {
      const size = stream[at + 3] as number;
      const name = kernels.get((stream[at + 1] ?? 0) >>> 0) ?? hex(stream[at + 1]);
      return `exec ${name} args ${hex(stream[at + 2])}${size < 0 ? "" : ` global ${size}`}`;
    },
    copy: (at) =>
      `copy ${hex(stream[at + 1])} <- ${hex(stream[at + 2])}, ${(stream[at + 3] ?? 0) >>> 0} bytes`,
    copyWide: (at) => `copy ${long(at + 1)} <- ${long(at + 3)}, ${BigInt(long(at + 5))} bytes`,
    move: (at) => {
      const side = (i: number) => `${stream[at + i] === 0 ? "" : "native "}${long(at + i + 1)}`;
      return `move ${side(1)} <- ${side(4)}, ${BigInt(long(at + 7))} bytes`;
    },
  };
  const lines: string[] = [];
  for (let at = 0; at < stream.length; ) {
    const name = COMMANDS[stream[at] as number];
    const mark = next < 0 ? "" : at === next ? "> " : "  ";
    if (name === undefined) return [...lines, `${mark}no command: ${stream[at]}`];
    lines.push(`${mark}${show[name](at)}`);
    at += WORDS[name];
  }
  return lines;
}
