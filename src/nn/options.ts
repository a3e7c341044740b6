// The check of option objects in nn: what is not an object, and keys that nobody reads, are refused with an
// error that says what to write.

import { ArgumentError } from "../errors.ts";

/** Returns the options if they are an object of known keys. */
export function checkOptions<O extends object>(who: string, options: O, known: readonly string[]): O {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new ArgumentError(
      `${who}: the options are ${Array.isArray(options) ? "an array" : String(options)}, ` +
        `expected an object such as { ${known[0]}: … }`,
    );
  }
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown === undefined) return options;
  throw new ArgumentError(`${who}: unknown option ${unknown}; expected ${known.join(", ")}`);
}
