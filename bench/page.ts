// `npm run bench -- page`: how a page fares in Chromium while it trains, with and without cross-origin
// isolation: its longest task in milliseconds of processor time (a busy machine does not change these much),
// frames a second, WebAssembly memory over many eager steps, and what the kernels that a visit kept save the
// next one. In Chromium and in Firefox: memory, and the time to the first result beside jax-js.

import { type Browser, chromium, type Page } from "playwright-core";
import { getOrMake } from "../src/helpers.ts";
import { bundlePage, CHROMIUM_FLAGS, findChromium, NO_CHROMIUM, serve } from "../test/browser/server.ts";
import { dotRows } from "./page/dots.ts";
import type { BenchPage } from "./page/page.ts";
import { browsers, type Open, visit } from "./page/visit.ts";
import { type Report, type Row, summarize } from "./stats.ts";

declare const gradloomBench: BenchPage; // exists inside the page only

export const PAGE_FLAGS = { "--long": "10,000 eager steps instead of 200" };

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  /** when it began and how long it took, in microseconds */
  readonly ts: number;
  readonly dur?: number;
  readonly pid: number;
  readonly tid: number;
  /** processor time in microseconds */
  readonly tdur?: number;
  readonly args: { readonly name?: string };
}

/**
 * The longest task of the page's main thread in which a call of ours worked, in milliseconds of CPU time.
 * What the program builds itself, at once, is marked and does not count.
 */
function longestTask(trace: Buffer): number {
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: TraceEvent[] };
  const key = (e: TraceEvent): string => `${e.pid}:${e.tid}`;
  const isMain = (e: TraceEvent) => e.name === "thread_name" && e.args.name === "CrRendererMain";
  const mains = new Set(traceEvents.filter(isMain).map(key));
  const marks = traceEvents.filter((e) => e.name === "own").map((e) => e.ts);
  const isOwn = ({ ts, dur = 0 }: TraceEvent): boolean => marks.some((at) => at >= ts && at <= ts + dur);
  const tasks = traceEvents.filter((e) => e.ph === "X" && e.name.includes("RunTask") && mains.has(key(e)));
  return tasks.reduce((most, e) => (isOwn(e) ? most : Math.max(most, (e.tdur ?? 0) / 1000)), 0);
}

type Run = (page: Page) => Promise<{ seconds: number; frames: number }>;
const first =
  (model: string, jitted: boolean): Run =>
  (page) =>
    page.evaluate(([m, j]) => gradloomBench.firstSteps(m, j), [model, jitted] as const);
/** The first of each model compiles everything; a capture comes after. */
const FIRST: Readonly<Record<string, Run>> = {
  "the first two steps of a convnet": first("convnet", false),
  "the first two steps of a GPT of 6 layers": first("gpt", false),
  "the capture of it": first("gpt", true),
  "the first two steps of an LSTM unrolled 40 times": first("lstm", false),
  "the capture of it, too": first("lstm", true),
};
const WORKS: Readonly<Record<string, Run>> = {
  "10 eager steps of a convnet": (page) => page.evaluate(() => gradloomBench.steps("mnist", false, 10)),
  "10 captured steps of a convnet": (page) => page.evaluate(() => gradloomBench.steps("mnist", true, 10)),
  "200 eager steps of a small network": (page) => page.evaluate(() => gradloomBench.steps("mlp", false, 200)),
  "1,000 captured steps of it": (page) => page.evaluate(() => gradloomBench.steps("mlp", true, 1000)),
  "4 products of 1024 x 1024": (page) => page.evaluate(() => gradloomBench.product(1024, 4)),
};

/** How a page fares meanwhile: its longest task, and its frames. */
async function faring(browser: Browser, page: Page, run: Run, what: string): Promise<Row[]> {
  const categories = ["toplevel", "devtools.timeline", "blink.user_timing"];
  await browser.startTracing(page, { categories });
  const { seconds, frames } = await run(page);
  const longest = longestTask(await browser.stopTracing());
  return [
    { what: `${what}: longest task`, ...summarize([longest]), limit: 50, unit: "ms of CPU" },
    { what: `${what}: frames`, ...summarize([frames / seconds]), unit: "1/s" },
  ];
}

/** First steps in pages of their own, on a processor as it is and on one that is slower by a factor. */
async function firstRows(browser: Browser, isolated: boolean, slower: number): Promise<Row[]> {
  const { files } = await bundlePage("bench/page/page.ts", { minify: true });
  const server = await serve(files, { isolated });
  const rows: Row[] = [];
  const page = await browser.newPage();
  await page.goto(server.url, { waitUntil: "load" });
  if (slower > 1) {
    const session = await page.context().newCDPSession(page);
    await session.send("Emulation.setCPUThrottlingRate", { rate: slower });
  }
  const where = `${isolated ? "isolated" : "not isolated"}${slower > 1 ? `, ${slower} x slower CPU` : ""}`;
  for (const [what, run] of Object.entries(FIRST))
    rows.push(...(await faring(browser, page, run, `${what}, ${where}`)));
  await page.close();
  await server.close();
  return rows;
}

/** The first steps of a first and of a second visit, which has the kernels that the first one kept. */
async function visitRows(browser: Browser): Promise<Row[]> {
  const rows: Row[] = [];
  for (const model of ["convnet", "gpt", "lstm"]) {
    const { files } = await bundlePage("bench/page/page.ts", { minify: true, build: "bench" });
    const seconds = new Map<string, number[]>();
    for (let i = 0; i < VISITS; i++) {
      const server = await serve(files, { isolated: false }); // an origin of its own, with its own storage
      const context = await browser.newContext();
      for (const what of ["first", "second"]) {
        const page = await context.newPage();
        await page.goto(server.url, { waitUntil: "load" });
        const session = await context.newCDPSession(page);
        await session.send("Performance.enable", { timeDomain: "threadTicks" });
        const spent = async (): Promise<number> => {
          const { metrics } = await session.send("Performance.getMetrics");
          return 1000 * (metrics.find((m) => m.name === "TaskDuration")?.value ?? NaN);
        };
        const before = await spent();
        await page.evaluate((m) => gradloomBench.firstSteps(m, false), model);
        getOrMake(seconds, what, () => []).push((await spent()) - before);
        await page.waitForTimeout(1000); // what is kept is written
        await page.close();
      }
      await context.close();
      await server.close();
    }
    for (const [what, samples] of seconds) {
      const name = `two steps of ${model}, ${what} visit: CPU of the page's thread`;
      rows.push({ what: name, ...summarize(samples), unit: "ms of CPU" });
    }
  }
  return rows;
}
const VISITS = 5;

/** Memory over eager steps in a plain page, by the page's own report. */
async function memoryRows(name: string, open: Open, steps: number): Promise<Row[]> {
  const { files } = await bundlePage("bench/page/page.ts", { minify: true });
  const program = (call: string): string => `import "/page.js"; report(await gradloomBench.${call});`;
  const at = [steps / 10, steps / 2, steps];
  const grown = await visit<{ at: number; memory: number }[]>(open, {
    files,
    program: program(`memory("mlp", ${JSON.stringify(at)})`),
    seconds: 900,
  });
  const rows = grown.map(({ at, memory }) => ({
    what: `${name}: memory after ${at} eager steps of a small network`,
    ...summarize([memory / 2 ** 20]),
    unit: "MiB",
  }));
  const large = await visit<number>(open, { files, program: program("large(2 ** 30, 9)") });
  const what = `${name}: memory after 9 tensors of 1 GiB, each dropped`;
  return [...rows, { what, ...summarize([large / 2 ** 20]), unit: "MiB" }];
}

async function rowsOf(browser: Browser, isolated: boolean, steps: number): Promise<Row[]> {
  const { files } = await bundlePage("bench/page/page.ts");
  const server = await serve(files, { isolated });
  const page = await browser.newPage();
  await page.goto(server.url, { waitUntil: "load" });
  const where = isolated ? "isolated" : "not isolated";
  const rows: Row[] = [];
  for (const [what, run] of Object.entries(WORKS)) {
    rows.push(...(await faring(browser, page, run, `${what}, ${where}`)));
  }
  const grown = await page.evaluate((n) => gradloomBench.memory("mnist", [n / 10, n]), steps);
  for (const { at, memory } of grown) {
    const what = `memory after ${at} eager steps of a convnet, ${where}`;
    rows.push({ what, ...summarize([memory / 2 ** 20]), unit: "MiB" });
  }
  await page.close();
  await server.close();
  return rows;
}

export async function page(flags: ReadonlySet<string>): Promise<Report> {
  const executablePath = findChromium();
  if (executablePath === undefined) return { title: "page", rows: [], skipped: [NO_CHROMIUM] };
  const browser = await chromium.launch({ executablePath, args: CHROMIUM_FLAGS });
  try {
    const steps = flags.has("--long") ? 10_000 : 200;
    const others: Row[] = [];
    for (const [name, open] of browsers()) {
      others.push(...(await dotRows(name, open, 15)), ...(await memoryRows(name, open, steps)));
    }
    const rows = [
      ...others,
      ...(await visitRows(browser)),
      ...(await firstRows(browser, false, 1)),
      ...(await firstRows(browser, true, 1)),
      ...(await firstRows(browser, false, 4)),
      ...(await rowsOf(browser, false, 200)),
      ...(await rowsOf(browser, true, 200)),
    ];
    return { title: "page", rows, skipped: [] };
  } finally {
    await browser.close();
  }
}
