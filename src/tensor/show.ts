// How messages show what they were given.

import type { Sint } from "../shape/symbolic.ts";

export const showShape = (shape: readonly Sint[]): string => `[${shape.join(", ")}]`;
