// jpeg-js reads and writes JPEG files in Node. The package is optional: it is loaded with the first such
// picture, from where this package is or from where the program was started. Only the part that we use is
// typed here, so that its types do not reach ours.

import { FileError } from "../errors.ts";
import { load } from "./builtin.ts";

export interface JpegCodec {
  decode(
    file: Uint8Array,
    options: {
      readonly useTArray: true;
      readonly formatAsRGBA: boolean;
      readonly tolerantDecoding: boolean;
      readonly colorTransform?: boolean;
      readonly maxResolutionInMP: number;
      readonly maxMemoryUsageInMB: number;
    },
  ): { readonly data: Uint8Array };
  /** `data` has four values for each pixel */
  encode(
    picture: { readonly width: number; readonly height: number; readonly data: Uint8Array },
    quality: number,
  ): { readonly data: Uint8Array };
}

const PACKAGE = "jpeg-js";

export function openJpeg(require: Pick<NodeJS.Require, "resolve"> & ((path: string) => unknown) = load) {
  const causes: unknown[] = [];
  for (const paths of [undefined, { paths: [process.cwd()] }]) {
    try {
      return require(require.resolve(PACKAGE, paths)) as JpegCodec;
    } catch (cause) {
      causes.push(cause);
    }
  }
  const [cause] = causes;
  const why = cause instanceof Error ? cause.message.split("\n")[0] : String(cause);
  throw new FileError(
    `jpeg: cannot load ${PACKAGE}, which reads and writes JPEG files in Node (${why}); run: npm install ${PACKAGE}`,
    { cause },
  );
}
