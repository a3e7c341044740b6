// What scatter.ts measures, inside one process with one device: `samples.mjs SEED ROUNDS WORK,…` prints, for
// each work, the milliseconds of tensors and of plain arrays, which alternate, as JSON.

import "../../src/tensor/ondemand/all.ts";
import { Device } from "../../src/index.ts";
import { picker, WORKS } from "./works.ts";

export interface MeasuredWork {
  readonly name: string;
  readonly ours: readonly number[];
  readonly plain: readonly number[];
}

const [seed = "1", rounds = "5", names = ""] = process.argv.slice(2);
const device = await Device.open(process.env.DEV ?? "WASM");
const measured: MeasuredWork[] = [];
for (const name of names.split(",")) {
  const make = WORKS[name];
  if (make === undefined) throw new Error(`no work is called ${name}`);
  const work = await make(picker(Number(seed) * 31 + name.length * 7 + name.charCodeAt(0)));
  const [ours, plain]: [number[], number[]] = [[], []];
  const run = async (): Promise<void> => {
    await (await work.ours()).realize();
    await device.synchronize();
  };
  await run(); // compiles
  await run();
  work.plain();
  for (let i = 0; i < Number(rounds); i++) {
    const start = performance.now();
    await run();
    const between = performance.now();
    work.plain();
    ours.push(between - start);
    plain.push(performance.now() - between);
  }
  measured.push({ name: work.name, ours, plain });
}
console.log(JSON.stringify(measured));
process.exit(0);
