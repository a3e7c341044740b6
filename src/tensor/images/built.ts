// IMAGE=1 and IMAGE=2 in the built package of Node: node.ts, loaded where one of them is set.

import { env } from "../../env.ts";
import { rest } from "../../host/rest.ts";

type ImageProducts = typeof import("./node.ts");
const images = (): ImageProducts => rest<{ tensorImages: ImageProducts }>().tensorImages;

export const imageConvolution: ImageProducts["imageConvolution"] = (...args) =>
  env.IMAGE === 0 ? undefined : images().imageConvolution(...args);
export const imageProduct: ImageProducts["imageProduct"] = (...args) =>
  env.IMAGE === 0 ? undefined : images().imageProduct(...args);
