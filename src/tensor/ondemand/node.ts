// Node loads every area: the size of a program hardly matters there.

import "./all.ts";
