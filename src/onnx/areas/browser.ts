// In a page the ops of ONNX need every area of Tensor. A model is called often: short replays are tuned.

import { useStepTuning } from "../../engine/jit/planner.ts";
import * as stepTuning from "../../engine/jit/steptuning.ts";
import "../../tensor/ondemand/all.ts";

useStepTuning(stepTuning);
