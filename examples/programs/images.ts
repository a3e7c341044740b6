// From files to a batch: pictures are read, made smaller, cut, mirrored and normalised; the batch is shown as
// a grid in an SVG file. The pictures are made first, so that there are some.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nn, Tensor } from "gradloom";

const { CenterCrop, Compose, Normalize, RandomHorizontalFlip, Resize } = nn.transforms;
const count = Number(process.env.STEPS ?? 8);
const MEAN = [0.485, 0.456, 0.406];
const STD = [0.229, 0.224, 0.225];

/** A picture of colours that blend into each other, with a bright disk. */
function scene(i: number, height: number, width: number): Tensor {
  const y = Tensor.linspace(0, 1, height).unsqueeze(1).expand(height, width);
  const x = Tensor.linspace(0, 1, width).expand(height, width);
  const [cx, cy] = [0.3 + 0.4 * Math.abs(Math.sin(i)), 0.3 + 0.4 * Math.abs(Math.cos(2 * i))];
  const disk = x.sub(cx).square().add(y.sub(cy).square()).lt(0.03).float();
  return Tensor.stack([x, y, x.mul(y)], 0)
    .mul(0.6)
    .maximum(disk);
}

const folder = await mkdtemp(join(tmpdir(), "pictures-"));
const files = Array.from({ length: count }, (_, i) => join(folder, `${i}.png`));
for (const [i, file] of files.entries()) await scene(i, 60 + 4 * i, 90).toImage(file);

const first = await Tensor.fromImage(files[0]!);
console.log(`a file: [${first.shape}] of ${first.dtype.name}`);

const prepare = new Compose([
  new Resize(40), // the shorter side
  new CenterCrop(32),
  new RandomHorizontalFlip({ seed: 1 }),
  new Normalize(MEAN, STD),
]);
const loader = new nn.DataLoader(
  { length: files.length, get: async (i: number) => ({ x: await Tensor.fromImage(files[i]!), y: i }) },
  { batchSize: count, workers: 4, transform: ({ x, y }) => ({ x: prepare.forward(x), y }) },
);
for await (const { x, y } of loader) {
  console.log(`a batch: [${x.shape}] of ${x.dtype.name}, labels ${JSON.stringify(await y.tolist())}`);
  const [std, mean] = x.stdMean([0, 2, 3]);
  const show = async (t: Tensor) => Array.from(await t.data(), (v) => v.toFixed(2)).join(", ");
  console.log(`by channel: mean ${await show(mean)}; standard deviation ${await show(std)}`);

  // back to colours, as a grid
  const [scale, shift] = [new Tensor(STD).reshape(3, 1, 1), new Tensor(MEAN).reshape(3, 1, 1)];
  const grid = await nn.plot.images(x.mul(scale).add(shift).clamp(0, 1), { columns: 4 });
  await writeFile(join(folder, "grid.svg"), grid);
  console.log(
    `grid.svg: ${/width="\d+" height="\d+"/.exec(grid)?.[0]}, ${grid.match(/<image/g)?.length} pictures`,
  );
}
await rm(folder, { recursive: true });
