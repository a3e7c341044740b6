// Where the user's code called into the library. Messages of the jit name that line: a replay does not run it
// again. In: a stack trace, as Chromium and Node or as Firefox and Safari write it. Out: file:line:column.
// Nothing asks for `import.meta`: classic scripts, blobs and CommonJS have none.

/** Frames that are looked through: between the user's call and us lie a few of our own. */
const FRAMES = 50;

/** A place in a frame, at its end: `at f (file:///a/b.js:1:2)`, `f@http://host/b.js:1:2`. */
const PLACE = /([^\s()@]+):(\d+:\d+)\)?\s*$/;

/**
 * What all frames of the library have in common, given the file of this one: the folder of the sources or of
 * the package, or the file itself where a bundler has put the library into the user's own.
 */
const homeOf = (file: string): string =>
  (/^(.*\/)engine\/caller\.[jt]s\b/.exec(file) ?? /^(.*\/gradloom\/dist\/)/.exec(file))?.[1] ?? `${file}:`;

/** The line as file:line:column; empty where the stack does not say. */
export function callerLine(): string {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = FRAMES;
  const stack = new Error().stack ?? "";
  Error.stackTraceLimit = stackTraceLimit;
  return callerIn(stack);
}

/** The same in a stack whose first frame is one of the library. */
export function callerIn(stack: string): string {
  const lines = stack.replaceAll("file://", "").split("\n");
  const frames = lines.filter((line) => PLACE.test(line));
  const home = homeOf(PLACE.exec(frames[0] ?? "")?.[1] ?? "");
  const theirs = frames.find((frame) => !frame.includes(home) && !/\bnode:/.test(frame));
  const [, file = "", at = ""] = PLACE.exec(theirs ?? "") ?? [];
  return theirs === undefined ? "" : `${file}:${at}`;
}
