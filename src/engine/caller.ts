// Where the user's code called into the library. Messages of the jit name that line:
// a replay does not run it again.

/** The folder that holds the whole library, as sources or as a bundle. */
const home = new URL("..", import.meta.url).pathname;

/** Frames that are looked through: between the user's call and us lie a few of our own. */
const FRAMES = 50;

/** The line as file:line:column; empty where the stack does not say. */
export function callerLine(): string {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = FRAMES;
  const frames = (new Error().stack ?? "").split("\n").slice(1);
  Error.stackTraceLimit = stackTraceLimit;
  const theirs = frames.find((f) => /:\d+:\d+/.test(f) && !f.includes(home) && !/\bnode:/.test(f));
  return /([^\s()@]+:\d+:\d+)\)?\s*$/.exec(theirs ?? "")?.[1]?.replace(/^file:\/\//, "") ?? "";
}
