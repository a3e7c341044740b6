// 10,000 random graphs of kernels, copies and host writes over one to four devices (two of WASM, two of CLANG
// where there is a compiler, else four of WASM), executed by workers and by the caller in turns, against the
// JS device. A failure names its seed; HCQ_TIMEOUT and the test's own limit are the watchdog.

import {
  Buffer,
  BufferCopy,
  BufferXfer,
  type CompiledRunner,
  createSchedule,
  Device,
  dtypes,
  Tensor,
  withEnv,
} from "gradloom";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { kernelRunner } from "../../../src/engine/compile.ts";
import { runAsync } from "../../../src/helpers.ts";
import { Random } from "../../shape/random.ts";
import { device, ints, launch, ramp } from "./kernels.ts";

const GRAPHS = 10_000;
const hasClang = await Device.open("CLANG:8").then(
  () => true,
  () => false,
);
const NAMES = ["WASM:90", "WASM:91", ...(hasClang ? ["CLANG:8", "CLANG:9"] : ["WASM:92", "WASM:93"])];
const SIZE = 6;
const BUFFERS = 4;

/** Each takes one or two inputs. */
const OPS: readonly ((a: Tensor, b: Tensor) => Tensor)[] = [
  (a, b) => a.add(b),
  (a, b) => a.mul(b),
  (a, b) => a.sub(b).flip(0),
  (a) => a.sum(0, true).expand(SIZE).contiguous(),
  (a) => a.add(1),
];
interface Op {
  readonly inputs: number;
  readonly on: ReadonlyMap<string, CompiledRunner>;
}
let ops: readonly Op[] = [];
const random = new Random(1);

beforeAll(async () => {
  for (const name of NAMES) await Device.open(name);
  const made: Op[] = [];
  for (const op of OPS) {
    const [a, b] = [0, 1].map(() => new Tensor([1, 2, 3, 4, 5, 6], { device: "JS" }));
    await Tensor.realize(a as Tensor, b as Tensor);
    const [item] = createSchedule([op(a as Tensor, b as Tensor).lazydata]);
    const on = new Map<string, CompiledRunner>();
    for (const name of ["JS", ...NAMES])
      on.set(name, await runAsync(kernelRunner(name, item?.ast ?? [], false)));
    made.push({ inputs: item?.inputs.length ?? 0, on });
  }
  ops = made;
  // whether a submission is worth a worker changes who executes it, and must change nothing else
  const { hardware } = device("WASM:90");
  const submit = hardware.submit.bind(hardware);
  vi.spyOn(hardware, "submit").mockImplementation((ring, at, nwords, work) =>
    submit(ring, at, nwords, random.chance(20) ? 2 ** 20 : work),
  );
});
afterAll(() => vi.restoreAllMocks());

/** Buffers on WASM devices, and their twins on JS. */
class World {
  readonly wasm = new Map(NAMES.map((n) => [n, Array.from({ length: BUFFERS }, () => blank(n))]));
  readonly js = new Map(NAMES.map((n) => [n, Array.from({ length: BUFFERS }, () => blank("JS"))]));
  readonly #ramps = new Map(
    NAMES.filter((n) => n.startsWith("WASM")).map((n) => [n, ramp(device(n), "ramp")]),
  );
  readonly #copy = new BufferCopy();
  readonly #xfer = new BufferXfer();

  #both(name: string, k: number): [Buffer, Buffer] {
    return [this.wasm.get(name)?.[k] as Buffer, this.js.get(name)?.[k] as Buffer];
  }

  step(r: Random, names: readonly string[]): void {
    const name = r.pick(names);
    const [k, a, b] = r.shuffled([...Array(BUFFERS).keys()]) as [number, number, number];
    const what = r.int(0, 99);
    if (what < 55) this.#kernel(r.pick(ops), name, [k, a, r.chance(30) ? a : b]);
    else if (what < 75) this.#transfer(name, k, r.pick(names), a);
    else if (what < 85)
      this.#write(
        name,
        k,
        Array.from({ length: SIZE }, () => r.int(-99, 99)),
      );
    else if (what < 93) this.#ramp(name, k);
    else if (what < 97) this.#renew(name, k);
    else this.check(name, k);
  }
  #kernel({ inputs, on }: Op, name: string, ks: readonly number[]): void {
    const used = ks.slice(0, 1 + inputs).map((k) => this.#both(name, k));
    on.get(name)?.exec(used.map(([wasm]) => wasm));
    on.get("JS")?.exec(used.map(([, js]) => js));
  }
  #transfer(to: string, k: number, from: string, a: number): void {
    const [dest, src] = [this.#both(to, k), this.#both(from, a)];
    this.#xfer.exec([dest[0], src[0]]);
    this.#copy.exec([dest[1], src[1]]);
  }
  #write(name: string, k: number, xs: readonly number[]): void {
    for (const buffer of this.#both(name, k)) void buffer.copyin(new Uint8Array(Int32Array.from(xs).buffer));
  }
  #ramp(name: string, k: number): void {
    const [wasm, js] = this.#both(name, k);
    const program = this.#ramps.get(name);
    if (program === undefined) return; // hand-made for WASM
    launch(program, [wasm], { size: SIZE, worth: false });
    const xs = (js.dataSync() as Int32Array).map((x, i) => (x + i + 1) | 0);
    void js.copyin(new Uint8Array(xs.buffer));
  }
  /**
   * Memory that work in flight may still read is given back, and other memory taken, which reads as zeros.
   */
  #renew(name: string, k: number): void {
    this.#both(name, k)[0].dispose();
    this.wasm.get(name)?.splice(k, 1, new Buffer(name, SIZE, dtypes.int32).allocate());
    this.js.get(name)?.splice(k, 1, new Buffer("JS", SIZE, dtypes.int32).allocate());
  }
  check(name: string, k: number): void {
    const [wasm, js] = this.#both(name, k);
    expect([...wasm.dataSync()], `${name}, buffer ${k}`).toEqual([...js.dataSync()]);
  }
}
const blank = (name: string): Buffer => ints(name, new Array<number>(SIZE).fill(0));

test(`${GRAPHS} random graphs are equal to the JS device`, { timeout: 120_000 }, async () => {
  const world = new World();
  for (let seed = 1; seed <= GRAPHS; seed++) {
    const r = new Random(seed);
    const names = r.shuffled(NAMES).slice(0, r.int(1, 4));
    try {
      await withEnv({ HCQ_TIMEOUT: 20 }, async () => {
        for (let i = r.int(2, 12); i > 0; i--) world.step(r, names);
        for (const name of names) await device(name).synchronize();
        const name = r.pick(names);
        for (let k = 0; k < BUFFERS; k++) world.check(name, k);
      });
    } catch (cause) {
      throw new Error(`graph ${seed}: ${(cause as Error).message}`, { cause });
    }
  }
  for (const name of NAMES) for (let k = 0; k < BUFFERS; k++) world.check(name, k);
});
