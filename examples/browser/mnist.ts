// The page that learns digits: buttons, figures and curves around trainer.ts. It waits between two steps, so
// that the page never freezes.

import { GlobalCounters } from "gradloom";
import { Chart } from "./chart.ts";
import { type Digits, loadDigits } from "./data.ts";
import { SIDE } from "./digit.ts";
import { drawDigit, Pad } from "./pad.ts";
import * as page from "./page.ts";
import { type Network, type Settings, Trainer } from "./trainer.ts";

const button = (id: string): HTMLButtonElement => page.find(`#${id}`, HTMLButtonElement);
const percent = (x: number, digits = 1): string => `${(100 * x).toFixed(digits)} %`;

/** Milliseconds between two updates of what is shown, and between two tests. */
const SHOW_EVERY = 100;
const TEST_EVERY = 1000;

page.watchErrors();
const alone = page.inTurn();
const chart = new Chart(page.find("#chart", SVGSVGElement));
const pad = new Pad(page.find("#pad", HTMLCanvasElement), () => void guess());
const [network, batch] = [page.find("#network", HTMLSelectElement), page.find("#batch", HTMLSelectElement)];

let digits: { train: Digits; test: Digits } | undefined;
let trainer: Trainer | undefined;
let isRunning = false;
/** the loop that trains, until it has ended */
let training: Promise<void> = Promise.resolve();

// ---- training ----

/** Steps and kernels a second, over the last second and a half. */
const meter = {
  marks: [] as { at: number; steps: number; kernels: number }[],
  mark(): void {
    const at = performance.now();
    this.marks.push({ at, steps: chart.steps, kernels: GlobalCounters.kernelCount });
    while (this.marks.length > 2 && at - (this.marks[0]?.at ?? at) > 1500) this.marks.shift();
  },
  rates(): { steps: number; kernels: number } | undefined {
    const [first, last] = [this.marks[0], this.marks.at(-1)];
    if (first === undefined || last === undefined || last.at === first.at) return undefined;
    const seconds = (last.at - first.at) / 1000;
    return { steps: (last.steps - first.steps) / seconds, kernels: (last.kernels - first.kernels) / seconds };
  },
};

let latest: { loss: number; right: number; tested?: number } | undefined;

function show(): void {
  chart.draw();
  const rates = isRunning ? meter.rates() : undefined;
  page.text("step", page.count(chart.steps));
  page.text("loss", latest?.loss.toFixed(3) ?? "–");
  page.text("right", latest === undefined ? "–" : percent(latest.right));
  page.text("tested", latest?.tested === undefined ? "–" : percent(latest.tested));
  page.text("steps-rate", rates === undefined ? "–" : page.rate(rates.steps));
  page.text("kernels-rate", rates === undefined ? "–" : page.rate(rates.kernels));
  button("start").textContent = isRunning ? "Pause" : chart.steps > 0 ? "Go on" : "Start training";
  for (const id of ["start", "sample"]) button(id).disabled = trainer === undefined;
  button("reset").disabled = digits === undefined || (trainer !== undefined && chart.steps === 0);
}

const status = (words: string): void => page.text("status", words);

async function test(): Promise<void> {
  const tested = await alone(async () => trainer?.test());
  if (latest !== undefined && tested !== undefined) latest.tested = tested;
}

async function train(): Promise<void> {
  let [shownAt, testedAt, testTook, tests] = [0, performance.now(), 0, 0];
  meter.marks = [];
  status(`Training on ${trainer?.settings.device}; the first steps compile the kernels`);
  while (isRunning) {
    meter.mark();
    const figures = await alone(async () => trainer?.step());
    if (figures === undefined) return;
    chart.push(figures.loss);
    // a batch is a small sample: what is shown is a mean over the last ones
    const right = latest === undefined ? figures.right : 0.9 * latest.right + 0.1 * figures.right;
    latest = { ...latest, loss: figures.loss, right };
    let now = performance.now();
    // a test takes a small part of the time, however slow the device
    if (now - testedAt > Math.max(TEST_EVERY, 10 * testTook)) {
      await test();
      testedAt = performance.now();
      if (++tests > 2) testTook = testedAt - now; // the first two compile and capture
      now = testedAt;
      meter.marks = [];
      void guess();
    }
    if (now - shownAt < SHOW_EVERY) continue;
    shownAt = now;
    if (chart.steps > 2) status(`Training on ${trainer?.settings.device}`);
    show();
    await new Promise((painted) => setTimeout(painted));
  }
}

function start(): void {
  isRunning = true;
  page.showError(undefined);
  training = train()
    .catch((error: unknown) => {
      isRunning = false;
      status("Training has stopped; Reset begins anew");
      page.showError(error);
    })
    .finally(show);
  show();
}

async function pause(): Promise<void> {
  isRunning = false;
  await training;
  if (latest === undefined) return;
  await test();
  void guess();
  status(
    `Paused after ${page.count(chart.steps)} steps; ${percent(latest.tested ?? 0)} of test digits right`,
  );
  show();
}

const settings = (): Settings => ({
  device: devices.device,
  network: network.value as Network,
  batch: Number(batch.value),
});

/** Makes the network anew: with what it has learned, on another device or with other batches, or without. */
async function remake(keeps: boolean): Promise<void> {
  if (digits === undefined) return;
  const wasRunning = isRunning;
  isRunning = false;
  status(`Making the network on ${settings().device}`);
  await training;
  const all = digits;
  page.showError(undefined);
  try {
    trainer = await alone(() => Trainer.make(settings(), all, keeps ? trainer : undefined));
  } catch (error) {
    // the network of before is still there; where it is lost with its device, a new one can be made
    if (trainer !== undefined) devices.device = trainer.settings.device;
    status("The network could not be made; Reset tries again with a new one");
    show();
    return page.showError(error);
  }
  if (!keeps) {
    latest = undefined;
    chart.clear();
  }
  const { device } = trainer.settings;
  status(`Ready: a network with ${page.count(trainer.weights)} weights, on ${device}`);
  show();
  void guess();
  if (wasRunning) start();
}

// ---- guessing ----

let truth: number | undefined;
let isGuessing = false;
let isStale = false;

/** Guesses what is on the pad; what is drawn meanwhile is guessed afterwards. */
async function guess(): Promise<void> {
  isStale = true;
  page.find("#pad-hint", HTMLElement).hidden = pad.digit !== undefined;
  if (!pad.isPicture) truth = undefined;
  if (isGuessing) return;
  isGuessing = true;
  try {
    while (isStale) {
      isStale = false;
      const pixels = pad.digit;
      drawDigit(page.find("#seen", HTMLCanvasElement), pixels);
      const chances = pixels && (await alone(async () => trainer?.guess(pixels)));
      showGuess(pad.digit === undefined ? undefined : chances);
    }
  } catch (error) {
    page.showError(error);
  } finally {
    isGuessing = false;
  }
}

const bars = Array.from({ length: 10 }, (_, digit) => {
  const item = document.createElement("li");
  const [bar, name] = [document.createElement("span"), document.createElement("b")];
  bar.className = "bar";
  name.textContent = String(digit);
  item.append(bar, name);
  page.find("#bars", HTMLElement).append(item);
  return item;
});

function showGuess(chances: readonly number[] | undefined): void {
  const best = chances?.reduce((top, x, i) => (x > (chances[top] ?? 0) ? i : top), 0);
  bars.forEach((item, digit) => {
    const chance = chances?.[digit] ?? 0;
    item.style.setProperty("--chance", chance.toFixed(4));
    item.classList.toggle("best", digit === best);
    item.setAttribute("aria-label", `${digit}: ${percent(chance, 0)}`);
  });
  page.text("guess", best === undefined ? "?" : String(best));
  page.text("sure", best === undefined ? "Nothing drawn yet" : words(best, chances?.[best] ?? 0));
}

function words(best: number, chance: number): string {
  if (chart.steps === 0) return "A blind guess: nothing is learned yet";
  const sure = chance > 0.99 ? "More than 99 % sure" : `${percent(chance, 0)} sure`;
  if (truth === undefined) return sure;
  return truth === best ? `${sure}, and right` : `${sure}, but it is a ${truth}`;
}

function takeTestDigit(): void {
  if (digits === undefined) return;
  const { images, labels } = digits.test;
  const i = Math.floor(Math.random() * labels.length);
  truth = labels[i];
  pad.show(images.subarray(i * SIDE * SIDE, (i + 1) * SIDE * SIDE));
}

// ---- the page ----

const devices = new page.DeviceSwitch(() => void remake(true));
button("start").addEventListener("click", () => void (isRunning ? pause() : start()));
button("reset").addEventListener("click", () => void remake(false));
button("clear").addEventListener("click", () => pad.clear());
button("sample").addEventListener("click", takeTestDigit);
network.addEventListener("change", () => void remake(false));
batch.addEventListener("change", () => void remake(true));
show();
showGuess(undefined);

const bar = page.find("#loading", HTMLProgressElement);
try {
  digits = await loadDigits((received, total) => {
    page.showProgress(bar, received, total);
    status(`Downloading the digits${total === undefined ? "" : `: ${page.megabytes(total)}`}`);
  });
  await remake(false);
} catch (error) {
  status("The digits could not be loaded");
  page.showError(error);
}
bar.hidden = true;
