// JS gives what numpy gives: all programs of the oracle by default, parts of them under every setting.

import { oracleSuite } from "./suite.ts";

await oracleSuite("JS", { everything: true, programs: 408, searched: 60, rotates: true });
