import { Tensor } from "../../dist/node/index.js";

console.log(await new Tensor([1, 2]).dot(new Tensor([3, 4])).item());
