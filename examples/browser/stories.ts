// The page that tells stories: a form and the text around ../llama.ts. The weights are downloaded with the
// first story and kept by the browser.

import "gradloom/neural";
import { Device } from "gradloom";
import { parseStories, Storyteller, type Tokenizer } from "../llama.ts";
import { loadStoriesFile } from "./data.ts";
import * as page from "./page.ts";

const input = (id: string): HTMLInputElement => page.find(`#${id}`, HTMLInputElement);
const status = (words: string): void => page.text("status", words);

/** The first tokens compile and capture, so they do not count for the speed. */
const WARM = 3;

page.watchErrors();
const write = page.find("#write", HTMLButtonElement);
const bar = page.find("#loading", HTMLProgressElement);
const story = page.find("#story", HTMLElement);
const length = page.find("#length", HTMLSelectElement);

/** A teller on the device that was chosen last; another device needs another one. */
let ready: { device: string; teller: Storyteller; tokenizer: Tokenizer } | undefined;

async function tellerOn(device: string) {
  if (ready?.device === device) return ready;
  ready = undefined;
  const file = await loadStoriesFile((received, total) => {
    page.showProgress(bar, received, total);
    status(`Downloading the weights${total === undefined ? "" : `: ${page.megabytes(total)}`}`);
  });
  bar.hidden = true;
  status(`Loading the weights on ${device}`);
  await Device.open(device);
  Device.DEFAULT = device; // of all tensors that are made from here on
  const { model, tokenizer } = parseStories(await file.arrayBuffer());
  ready = { device, tokenizer, teller: new Storyteller(model) };
  return ready;
}

// ---- the text ----

/** Shows the story so far: what you wrote, what was told, and a caret while it is told. */
function show(prompt: string, told: string, isTelling: boolean): void {
  const paragraphs = (prompt + told).split("\n").filter((line) => line.trim() !== "");
  let given = prompt.length;
  const made = paragraphs.map((line) => {
    const p = document.createElement("p");
    const own = Math.max(0, Math.min(given, line.length));
    given -= line.length + 1;
    const mark = document.createElement("mark");
    mark.textContent = line.slice(0, own);
    if (own > 0) p.append(mark);
    p.append(line.slice(own));
    return p;
  });
  const last = made.at(-1) ?? document.createElement("p");
  if (made.length === 0) made.push(last);
  if (isTelling) {
    const caret = document.createElement("span");
    caret.className = "caret";
    last.append(caret);
  }
  story.setAttribute("aria-busy", String(isTelling));
  story.replaceChildren(...made);
}

// ---- telling ----

let isTelling = false;
let isStopped = false;

async function tell(): Promise<void> {
  const device = devices.device;
  const { teller, tokenizer } = await tellerOn(device);
  if (isStopped) return status("Stopped");
  const prompt = input("prompt").value.trim();
  const options = {
    temperature: Number(input("temperature").value),
    seed: Number(input("seed").value),
    steps: Number(length.value),
  };
  status(`Telling on ${device}; the first words compile the kernels`);
  page.text("device", device);
  const ids: number[] = [];
  let started = 0;
  show(prompt, "", true);
  for await (const id of teller.tell(tokenizer.encode(prompt), options)) {
    ids.push(id);
    const all = tokenizer
      .decode(ids)
      .trimStart()
      .replace(/\uFFFD+$/, ""); // a letter may come in parts
    // letters of the prompt that come one by one are there already
    if (all.length > prompt.length) show(prompt, all.slice(prompt.length), true);
    if (ids.length === WARM) started = performance.now();
    page.text("tokens", page.count(ids.length));
    if (ids.length > WARM) {
      page.text("rate", page.rate(((ids.length - WARM) * 1000) / (performance.now() - started)));
      if (ids.length === WARM + 1) status(`Telling on ${device}`);
    }
    if (isStopped) break;
    await new Promise((painted) => setTimeout(painted));
  }
  show(prompt, tokenizer.decode(ids).trimStart().slice(prompt.length), false);
  status(`${isStopped ? "Stopped" : "Told"}: ${page.count(ids.length)} tokens, on ${device}`);
}

async function begin(): Promise<void> {
  [isTelling, isStopped] = [true, false];
  write.textContent = "Stop";
  page.showError(undefined);
  // on a small screen the story would begin below the form
  if (story.getBoundingClientRect().top > 0.8 * innerHeight) write.scrollIntoView({ behavior: "smooth" });
  page.text("rate", "–");
  page.text("tokens", "–");
  try {
    await tell();
  } catch (error) {
    ready = undefined; // what it holds may be lost with its device
    status("There is no story");
    page.showError(error);
  }
  isTelling = false;
  bar.hidden = true;
  story.querySelector(".caret")?.remove();
  write.disabled = false;
  write.textContent = "Tell a story";
}

// ---- the page ----

const devices = new page.DeviceSwitch(() => {
  if (isTelling) status(`The next story will be told on ${devices.device}`);
});
page.find("#form", HTMLFormElement).addEventListener("submit", (e) => {
  e.preventDefault();
  if (!isTelling) return void begin();
  isStopped = true;
  write.disabled = true;
});
const temperature = input("temperature");
const showTemperature = (): void =>
  page.text("temperature-shown", Number(temperature.value) === 0 ? "0, the likeliest" : temperature.value);
temperature.addEventListener("input", showTemperature);
showTemperature();
page.find("#dice", HTMLButtonElement).addEventListener("click", () => {
  input("seed").value = String(Math.floor(Math.random() * 10_000));
});
