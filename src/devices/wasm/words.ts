// A queue as text, in a page: its words. Node has a line for each command (disassemble.ts).

import type { disassemble as inNode } from "./disassemble.ts";

export const disassemble: typeof inNode = (stream) => [
  Array.from(stream, (word) => (word >>> 0).toString(16)).join(" "),
];
