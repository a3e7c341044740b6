// Node loads every area with src/: the size of a program hardly matters there.

import "./all.ts";

export function prepareAreas(): void {}
