// yolov8n finds objects in a picture: npm run yolo -- PICTURE (PNG or JPEG). It prints what it found and
// writes the picture with boxes to PICTURE-objects.png, or where --out says. --model takes another YOLO
// model, --score how sure it must be (0.25). Without a picture it takes a photograph from an npm package.
// examples/models/detect.ts has the work.

import { basename, extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Device, Tensor } from "gradloom";
import { onnx } from "gradloom/onnx";
import { Detector, type Picture } from "./models/detect.ts";
import { drawn } from "./models/draw.ts";
import { Complaint, FILES, main, needFile } from "./models/packages.ts";
import { existing, numberOf, optionsOf } from "./models/program.ts";

const USAGE = "npm run yolo -- [PICTURE] [--out FILE.png] [--model FILE.onnx] [--score 0.25]";

export async function readPicture(path: string): Promise<Picture> {
  const pixels = await Tensor.fromImage(path, { layout: "HWC" }).catch((error: Error) => {
    throw new Complaint(error.message);
  });
  const [height, width] = pixels.shape as [number, number];
  return { width, height, rgb: (await pixels.data()) as Uint8Array };
}

export async function writePicture({ width, height, rgb }: Picture, path: string): Promise<void> {
  const pixels = new Tensor(Uint8Array.from(rgb), { dtype: "uint8" }).reshape(height, width, 3);
  await pixels.toImage(path, { layout: "HWC" });
}

async function run(): Promise<void> {
  const { file, options } = optionsOf(USAGE, ["out", "model", "score"]);
  const path = existing(file ?? needFile(FILES.photo));
  const score = numberOf("--score", options.score ?? "0.25", 0, 1);
  const detector = new Detector(await onnx.load(existing(options.model ?? needFile(FILES.yolo))));
  const picture = await readPicture(path);
  const start = performance.now();
  const objects = await detector.find(picture, { score });
  const took = performance.now() - start;
  for (const { name, score, left, top, right, bottom } of objects) {
    const [x, y, w, h] = [left, top, right - left, bottom - top].map(Math.round);
    console.log(`${(100 * score).toFixed(0).padStart(3)} %  ${name.padEnd(14)} ${w} x ${h} at ${x}, ${y}`);
  }
  const out = options.out ?? `${basename(path, extname(path))}-objects.png`;
  await writePicture(drawn(picture, objects), out);
  const seconds = (took / 1000).toFixed(1);
  console.log(
    `${objects.length} objects in ${basename(path)}: ${seconds} s on ${Device.DEFAULT}, compiling included`,
  );
  console.log(`with boxes: ${resolve(out)}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main(run);
