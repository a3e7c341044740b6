// Names that a user chose, in texts for people: one line, without control characters.

/** Characters that move a cursor, end a line or change the direction of a text. */
const CONTROL = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const LONGEST = 200;

/** A name for people, in one line of a terminal, a log or a page. */
export function printable(name: string): string {
  const clean = name.slice(0, LONGEST + 1).replaceAll(CONTROL, "\ufffd");
  return clean.length > LONGEST ? `${clean.slice(0, LONGEST)}…` : clean;
}
/** The name is one that `printable` would not change. */
export const isPrintable = (name: string): boolean => printable(name) === name;
