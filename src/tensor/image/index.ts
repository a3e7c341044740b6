// The functions of Tensor's area "image".

export { toCanvas } from "./canvas.ts";
export { fromImage, toImage } from "./image.ts";
