// A page that computes one dot product.
import { Tensor } from "gradloom";

console.log(await new Tensor([1, 2]).dot(new Tensor([3, 4])).item());
