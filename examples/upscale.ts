// Makes a picture twice as large: npm run upscale -- PICTURE (PNG or JPEG). Real-ESRGAN fills in what a
// larger picture would show. It writes PICTURE-x2.png, or where --out says; --model takes another model that
// does the same. examples/models/upscale.ts has the work.

import { basename, extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Device } from "gradloom";
import { onnx } from "gradloom/onnx";
import { Complaint, FILES, main, needFile } from "./models/packages.ts";
import { existing, optionsOf } from "./models/program.ts";
import { tileRunner, upscale } from "./models/upscale.ts";
import { readPicture, writePicture } from "./yolo.ts";

const USAGE = "npm run upscale -- PICTURE [--out FILE.png] [--model FILE.onnx]";

async function run(): Promise<void> {
  const { file, options } = optionsOf(USAGE, ["out", "model"]);
  const model = existing(options.model ?? needFile(FILES.esrgan));
  if (file === undefined) throw new Complaint(`there is no picture\nDo: ${USAGE}`);
  const picture = await readPicture(existing(file));
  const start = performance.now();
  const made = await upscale(picture, tileRunner(await onnx.load(model)), (done, all) => {
    process.stdout.write(`\r${done} of ${all} tiles`);
  });
  const out = options.out ?? `${basename(file, extname(file))}-x${made.width / picture.width}.png`;
  await writePicture(made, out);
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  const sizes = `${picture.width} x ${picture.height} to ${made.width} x ${made.height}`;
  console.log(`\n${sizes}: ${seconds} s on ${Device.DEFAULT}, compiling included`);
  console.log(`written: ${resolve(out)}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main(run);
