// In a page the ops of ONNX need every area of Tensor.

import "../../tensor/ondemand/all.ts";
