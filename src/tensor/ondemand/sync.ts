// gradloom/sync: what sync calls of a page may need. In Node it is there from the start.

import { loadNow } from "../../engine/ondemand/sync.ts";

loadNow();
