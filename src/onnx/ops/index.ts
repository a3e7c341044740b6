// All ops by name, with the domain before the name unless it is the standard's own.

import { attention } from "./attention.ts";
import { castOps } from "./cast.ts";
import { control } from "./control.ts";
import { conv } from "./conv.ts";
import { fused } from "./fused.ts";
import { heads } from "./heads.ts";
import { indexing } from "./indexing.ts";
import { integer } from "./integer.ts";
import { loss } from "./loss.ts";
import { math } from "./math.ts";
import { microsoft } from "./microsoft.ts";
import { ml } from "./ml.ts";
import { norm } from "./norm.ts";
import type { OpTable } from "./op.ts";
import { packed } from "./packed.ts";
import { picture } from "./picture.ts";
import { qlinear } from "./qlinear.ts";
import { randomOps } from "./random.ts";
import { reduce } from "./reduce.ts";
import { resizing } from "./resize.ts";
import { rnn } from "./rnn.ts";
import { sampling } from "./sample.ts";
import { shape } from "./shape.ts";
import { signal } from "./signal.ts";
import { text } from "./text.ts";

export const OPS_OF_ONNX: OpTable = {
  ...math,
  ...reduce,
  ...shape,
  ...castOps,
  ...indexing,
  ...conv,
  ...norm,
  ...attention,
  ...control,
  ...integer,
  ...loss,
  ...resizing,
  ...rnn,
  ...sampling,
  ...signal,
  ...text,
  ...ml,
  ...randomOps,
  ...picture,
  ...microsoft,
  ...heads,
  ...fused,
  ...packed,
  ...qlinear,
};
