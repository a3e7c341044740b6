// The fuzzer: random programs on random devices under random settings, compared with the reference
// interpreter, for a time or a number of programs. `npm run fuzz -- --minutes 30`. What fails is made
// smaller, printed as a script with its seed, and the exit code is 1. `--oracle all` runs the oracle's
// programs under every setting.

import { type ChildProcess, fork } from "node:child_process";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { Device, DeviceError } from "gradloom";
import "../../test/devices/webgpu/swiftshader.ts";
import { load } from "../../test/oracle/oracle.ts";
import { SETTINGS } from "./execute.ts";
import { Dice } from "./generate/dice.ts";
import { CLASSES, type ClassName } from "./language.ts";
import type { Failure } from "./task.ts";
import type { Answer, Order } from "./worker.ts";

const HELP = `npm run fuzz -- [options]
  --minutes N    how long (default 1)
  --programs N   how many programs instead
  --seed N       the first seed (default: the time); a failure names its own
  --device A,B   the devices (default: all that open here)
  --class A,B    of ${CLASSES.join(", ")}
  --setting A,B  of ${SETTINGS.map((s) => s.name).join(", ")}
  --workers N    processes (default: one for each core)
  --oracle all   the programs of test/oracle instead of random ones: each on every device under every
                 setting (those of --device, --class and --setting); --oracle N: the one of this number`;

/** A device that compiles with another program gets few programs, a search of kernels too. */
const WEIGHT: Readonly<Record<string, number>> = { WASM: 60, JS: 39, CLANG: 1, WEBGPU: 5 };
const RARE_SETTINGS: readonly string[] = ["BEAM=2"];
const FAILURES_SHOWN = 20;

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "1" },
    programs: { type: "string" },
    seed: { type: "string" },
    device: { type: "string" },
    class: { type: "string" },
    setting: { type: "string" },
    workers: { type: "string", default: String(availableParallelism()) },
    oracle: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
function oneOf<T extends string>(
  option: string,
  given: string | undefined,
  all: readonly T[],
): readonly T[] | undefined {
  const names = given?.split(",");
  const odd = names?.find((n) => !all.includes(n as T));
  if (odd === undefined) return names as readonly T[] | undefined;
  throw new Error(`fuzz: --${option} ${odd} is unknown; expected some of ${all.join(", ")}`);
}
const positive = (option: string, given: string): number => {
  const n = Number(given);
  if (Number.isFinite(n) && n > 0) return n;
  throw new Error(`fuzz: --${option} is ${given}; expected a number above 0`);
};

/** The devices that compute and open on this machine. */
async function openDevices(): Promise<string[]> {
  const open: string[] = [];
  for (const kind of Device.kinds.filter((k) => Device.computes(k) && k !== "NULL")) {
    try {
      await Device.open(kind);
      open.push(kind);
    } catch (e) {
      if (!(e instanceof DeviceError)) throw e;
    }
  }
  return open;
}

/** What was run and what failed. */
class Tally {
  readonly counts = new Map<string, number>();
  readonly failures: Failure[] = [];
  programs = 0;
  readonly #start = performance.now();

  add({ order, failure, leftOut }: Answer, c: string): void {
    if (leftOut !== undefined) {
      const key = `left out: ${leftOut}`;
      this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
      return;
    }
    this.programs++;
    for (const key of [`class ${c}`, `device ${order.device}`, `setting ${order.setting}`])
      this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
    if (failure === undefined) return;
    this.failures.push(failure);
    if (this.failures.length <= FAILURES_SHOWN) show(failure);
  }
  get seconds(): number {
    return (performance.now() - this.#start) / 1000;
  }
  line(): string {
    const rate = this.programs / Math.max(this.seconds, 1e-3);
    return `${this.programs} programs in ${this.seconds.toFixed(0)} s (${rate.toFixed(0)}/s), ${this.failures.length} wrong`;
  }
}
function show(f: Failure): void {
  console.log(`\nseed ${f.seed} (${f.c}) on ${f.device} with ${f.setting}: ${f.what}`);
  console.log(f.script);
  // a program of the oracle is named by its number
  const which = f.isOracle ? `--oracle ${f.seed}` : `--programs 1 --seed ${f.seed} --class ${f.c}`;
  console.log(`again: npm run fuzz -- ${which} --device ${f.device} --setting ${f.setting}\n`);
}

/**
 * Hands out orders to worker processes until there are no more; a process that dies is a failure of its
 * order.
 */
function runOrders(next: () => Order | undefined, workers: number, done: (a: Answer) => void): Promise<void> {
  const one = (): Promise<void> =>
    new Promise((resolve) => {
      let current: Order | undefined;
      const start = (): ChildProcess => {
        const child = fork(new URL("worker.ts", import.meta.url), { execArgv: process.execArgv });
        child.on("message", (a: Answer) => {
          done(a);
          give(child);
        });
        child.on("exit", (code, signal) => {
          if (current === undefined) return;
          const { seed, device, setting, c } = current;
          const what = `the process ended with ${signal ?? code}`;
          done({
            order: current,
            failure: { seed, c: c as ClassName, device, setting, what, script: "", calls: 0 },
          });
          give(start());
        });
        return child;
      };
      const give = (child: ChildProcess): void => {
        current = next();
        if (current !== undefined) child.send(current);
        else {
          child.disconnect();
          resolve();
        }
      };
      give(start());
    });
  return Promise.all(Array.from({ length: workers }, one)).then(() => {});
}

/** Programs of the oracle, all or the one of a number, on every device under every setting. */
function oracleOrders(
  which: string,
  devices: readonly string[],
  settings: readonly string[],
  classes: readonly ClassName[],
): Order[] {
  const programs = load().map(({ program: { c } }, oracle) => ({ c, oracle }));
  const chosen = programs.filter(({ c, oracle }) =>
    which === "all" ? classes.includes(c) : String(oracle) === which,
  );
  if (chosen.length === 0)
    throw new Error(`fuzz: --oracle is ${which}; expected all, or a number below ${programs.length}`);
  return devices.flatMap((device) =>
    settings.flatMap((setting) =>
      chosen.map(({ c, oracle }): Order => ({ seed: oracle, oracle, c, device, setting })),
    ),
  );
}

async function main(): Promise<number> {
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const seed = Math.floor(values.seed === undefined ? Date.now() / 1000 : positive("seed", values.seed));
  const devices = values.device?.split(",") ?? (await openDevices());
  const classes = oneOf("class", values.class, CLASSES) ?? CLASSES;
  const settings =
    oneOf(
      "setting",
      values.setting,
      SETTINGS.map((s) => s.name),
    ) ?? SETTINGS.map((s) => s.name);
  const most = values.programs === undefined ? Infinity : positive("programs", values.programs);
  const seconds = values.programs === undefined ? positive("minutes", values.minutes) * 60 : Infinity;
  console.log(`seed ${seed}, devices ${devices}, ${values.workers} processes`);
  const tally = new Tally();
  const dice = new Dice(seed);
  let given = 0;
  let left = most;
  const work =
    values.oracle === undefined ? undefined : oracleOrders(values.oracle, devices, settings, classes);
  const next = (): Order | undefined => {
    if (work !== undefined) return given < most ? work[given++] : undefined;
    if (left <= 0 || tally.seconds > seconds) return undefined;
    left--;
    const n = seed + given++;
    return {
      seed: n,
      c: classes[n % classes.length] as ClassName,
      device: pickDevice(dice, devices),
      setting: pickSetting(dice, settings),
    };
  };
  const progress = setInterval(() => console.log(tally.line()), 10_000);
  await runOrders(next, positive("workers", values.workers), (a) => {
    if (a.leftOut !== undefined) left++;
    tally.add(a, a.order.c as string);
  });
  clearInterval(progress);
  for (const [key, count] of [...tally.counts].sort()) console.log(`  ${key.padEnd(24)} ${count}`);
  console.log(`seed ${seed}: ${tally.line()}`);
  return tally.failures.length === 0 ? 0 : 1;
}
function pickDevice(dice: Dice, devices: readonly string[]): string {
  const lots = devices.flatMap((d) => Array<string>(WEIGHT[d] ?? 20).fill(d));
  return dice.pick(lots);
}
function pickSetting(dice: Dice, settings: readonly string[]): string {
  const name = dice.pick(settings);
  return settings.length > 1 && RARE_SETTINGS.includes(name) && !dice.chance(4) ? "default" : name;
}

process.exitCode = await main();
