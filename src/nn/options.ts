// The check of option objects in nn: what is not an object, and keys that nobody reads, are refused with an
// error that says what to write. And of what is saved by name.

import { camel } from "../arguments.ts";
import { ArgumentError } from "../errors.ts";
import { Tensor } from "../tensor/tensor.ts";

/** Returns the options if they are an object of known keys; snake_case is accepted. */
export function checkOptions<O extends object>(who: string, options: O, known: readonly string[]): O {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new ArgumentError(
      `${who}: the options are ${Array.isArray(options) ? "an array" : String(options)}, ` +
        `expected an object such as { ${known[0]}: … }`,
    );
  }
  const isUnknown = (key: string): boolean => !known.includes(key);
  if (!Object.keys(options).some(isUnknown)) return options;
  const ours = Object.entries(options).map(([key, x]) => [isUnknown(key) ? camel(key) : key, x] as const);
  const unknown = ours.findIndex(([key]) => isUnknown(key));
  if (unknown < 0) return Object.fromEntries(ours) as O;
  throw new ArgumentError(
    `${who}: unknown option ${Object.keys(options)[unknown]}; expected ${known.join(", ")}`,
  );
}

/** What is saved by name must be Tensors. */
export function requireTensors(who: string, dict: Readonly<Record<string, unknown>>): void {
  for (const [name, x] of Object.entries(dict)) {
    if (x instanceof Tensor) continue;
    throw new ArgumentError(
      `${who}: ${name} is ${typeof x}, expected a Tensor; write new Tensor(…), or nn.save for a model and other values`,
    );
  }
}

export function requireModel(who: string, model: unknown): void {
  if (typeof model === "object" && model !== null) return;
  const what = model === null ? "null" : typeof model;
  throw new ArgumentError(`${who}: the model is ${what}, expected an object with layers or tensors`);
}
