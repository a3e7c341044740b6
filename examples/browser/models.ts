// The page of models: pictures and sentences go through the code of ../models. A model is downloaded when it
// is first needed, or is a file of the visitor's where the server has none. One piece of work at a time.

import { Device, nn, type Tensor } from "gradloom";
import { type OnnxModel, onnx } from "gradloom/onnx";
import { Detector, type Found, type Picture } from "../models/detect.ts";
import { colourOf, inkOn, labelOf } from "../models/draw.ts";
import { SENTENCES, Sentences } from "../models/sentences.ts";
import { WordPiece } from "../models/wordpiece.ts";
import * as page from "./page.ts";

page.watchErrors();
const alone = page.inTurn();
const input = (id: string): HTMLInputElement => page.find(`#${id}`, HTMLInputElement);
const chosen = (id: string): File | undefined => input(id).files?.[0];

/** The files that the server has; where it cannot say, it has none. */
const served: Promise<readonly string[]> = fetch("data/models.json").then(
  async (response) => (response.ok ? ((await response.json()) as string[]) : []),
  () => [],
);

/** One half of the page: what it says, and how far it is. */
class Half {
  readonly #id: string;
  constructor(id: "objects" | "sentences") {
    this.#id = id;
  }
  get bar(): HTMLProgressElement {
    return page.find(`#${this.#id}-progress`, HTMLProgressElement);
  }
  say(words: string): void {
    page.text(`${this.#id}-status`, words);
  }
  /** A bar without an end: nobody knows how long compiling takes. */
  work(words: string): void {
    this.say(words);
    page.showProgress(this.bar, 0, undefined);
  }
  /** Does the work in turn; what goes wrong is shown. */
  async run(work: () => Promise<void>, failed: string): Promise<void> {
    page.showError(undefined);
    await alone(work).catch((error: unknown) => {
      this.say(failed);
      page.showError(error);
    });
    this.bar.hidden = true;
  }
  /** A file of the server, kept by the browser. */
  fetch(file: string, name: string): Promise<Blob> {
    const onProgress = (received: number, total: number | undefined): void => {
      page.showProgress(this.bar, received, total);
      this.say(`Downloading ${name}${total === undefined ? "" : `: ${page.megabytes(total)}`}`);
    };
    return nn.fetchCached(`data/${file}`, { onProgress });
  }
}
const [objects, sentences] = [new Half("objects"), new Half("sentences")];

/** Keeps what was made for a device and a file, until another one is wanted. */
function kept<T>(make: (file: Blob, device: string) => Promise<T>) {
  let last: { readonly file: Blob; readonly device: string; readonly made: T } | undefined;
  return async (file: Blob, device: string): Promise<T> => {
    if (last?.file !== file || last.device !== device) {
      last = undefined; // the memory of the one before is free before the next one is made
      await Device.open(device);
      Device.DEFAULT = device; // of all tensors that are made from here on
      last = { file, device, made: await make(file, device) };
    }
    Device.DEFAULT = device;
    return last.made;
  };
}
const loadModel = (file: Blob, device: string): Promise<OnnxModel> => onnx.load(file, { device });

// ---- objects ----

const canvas = page.find("#picture", HTMLCanvasElement);
const detectorOf = kept(async (file, device) => new Detector(await loadModel(file, device)));
let yolo: Blob | undefined;
/** the picture that is shown */
let current: ImageBitmap | undefined;
/** Pictures are drawn at most so wide or high: boxes are thin lines, not photographs. */
const MOST = 1280;

/** Draws the picture alone, and gives its pixels. */
function draw(bitmap: ImageBitmap): Picture {
  const scale = Math.min(1, MOST / Math.max(bitmap.width, bitmap.height));
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext("2d", { willReadFrequently: true });
  if (context === null) throw new Error("this browser gives no canvas to draw on");
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const { width, height, data } = context.getImageData(0, 0, canvas.width, canvas.height);
  const rgb = new Uint8Array(3 * width * height);
  for (let i = 0, at = 0; i < data.length; i += 4) {
    for (let c = 0; c < 3; c++) rgb[at++] = data[i + c] as number;
  }
  return { width, height, rgb };
}

const css = (colour: readonly number[]): string => `rgb(${colour.join(" ")})`;

function frame(found: readonly Found[]): void {
  const context = canvas.getContext("2d");
  if (context === null) return;
  // the canvas is shown smaller than it is: letters are as large as those of the page
  const unit = Math.max(1, canvas.width / canvas.getBoundingClientRect().width);
  const line = 2.5 * unit;
  context.font = `600 ${13 * unit}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  for (const object of [...found].reverse()) {
    const colour = colourOf(object.kind);
    context.strokeStyle = context.fillStyle = css(colour);
    context.lineWidth = line;
    const [width, height] = [object.right - object.left, object.bottom - object.top];
    context.strokeRect(object.left + line / 2, object.top + line / 2, width - line, height - line);
    const [w, h] = [context.measureText(labelOf(object)).width + 10 * unit, 20 * unit];
    const x = Math.min(object.left, Math.max(0, canvas.width - w));
    const y = object.top >= h ? object.top - h : object.top;
    context.fillRect(x, y, w, h);
    context.fillStyle = css(inkOn(colour));
    context.fillText(labelOf(object), x + 5 * unit, y + h / 2);
  }
}

function list(found: readonly Found[]): void {
  const items = found.map((object) => {
    const item = document.createElement("li");
    item.textContent = labelOf(object);
    item.style.setProperty("--colour", css(colourOf(object.kind)));
    return item;
  });
  page.find("#objects", HTMLUListElement).replaceChildren(...items);
  const names = found.map(labelOf).join(", ");
  canvas.setAttribute("aria-label", found.length === 0 ? "A picture" : `A picture with ${names}`);
}

async function detect(bitmap: ImageBitmap): Promise<void> {
  const { device } = devices;
  current = bitmap;
  page.find("#picture-hint", HTMLElement).hidden = true;
  const picture = draw(bitmap);
  list([]);
  yolo ??= chosen("objects-file");
  if (yolo === undefined && !(await served).includes("yolov8n.onnx"))
    return objects.say("Choose a model below; then the picture is looked at");
  yolo ??= await objects.fetch("models/yolov8n.onnx", "yolov8n");
  objects.work(`Looking, on ${device}; the first picture compiles the kernels`);
  const detector = await detectorOf(yolo, device);
  const start = performance.now();
  const found = await detector.find(picture);
  const took = ((performance.now() - start) / 1000).toFixed(2);
  frame(found);
  list(found);
  objects.say(`${found.length === 1 ? "1 object" : `${found.length} objects`} in ${took} s, on ${device}`);
}

const look = (source: () => Promise<ImageBitmap>): Promise<void> =>
  objects.run(async () => detect(await source()), "The picture could not be looked at");
const lookAt = (file: Blob): Promise<void> =>
  look(() =>
    createImageBitmap(file).catch(() => {
      throw new Error("this file is not a picture that your browser can read");
    }),
  );

input("picture-file").addEventListener("change", () => {
  const file = chosen("picture-file");
  if (file !== undefined) void lookAt(file);
  input("picture-file").value = ""; // the same file may be chosen again
});
const drop = page.find("#drop", HTMLElement);
for (const type of ["dragover", "dragleave", "drop"] as const)
  drop.addEventListener(type, (e) => {
    e.preventDefault();
    drop.classList.toggle("over", type === "dragover");
    const file = type === "drop" ? e.dataTransfer?.files[0] : undefined;
    if (file !== undefined) void lookAt(file);
  });
page.find("#sample", HTMLButtonElement).addEventListener("click", () => {
  void look(async () => createImageBitmap(await objects.fetch("models/photo.jpg", "a photograph")));
});
input("objects-file").addEventListener("change", () => {
  yolo = chosen("objects-file");
  const bitmap = current;
  if (bitmap !== undefined) void look(async () => bitmap);
});

// ---- sentences ----

const texts = page.find("#texts", HTMLTextAreaElement);
const find = page.find("#find", HTMLButtonElement);
texts.value = SENTENCES.join("\n");
let minilm: { readonly model: Blob; readonly tokenizer: Blob } | undefined;
const sentencesOf = kept(async (file, device) => {
  const words = new WordPiece(await (minilm?.tokenizer ?? new Blob()).text());
  return new Sentences(await loadModel(file, device), words);
});
/** the rows of the sentences that were searched last */
let searched: { readonly model: Sentences; readonly text: string; readonly rows: Tensor } | undefined;

async function loadFiles(): Promise<typeof minilm> {
  const [model, tokenizer] = [chosen("sentences-file"), chosen("tokenizer-file")];
  if (model !== undefined && tokenizer !== undefined) return { model, tokenizer };
  const has = await served;
  if (!has.includes("minilm.onnx") || !has.includes("minilm.json")) return undefined;
  return {
    tokenizer: await sentences.fetch("models/minilm.json", "the tokenizer"),
    model: await sentences.fetch("models/minilm.onnx", "MiniLM"),
  };
}

async function search(): Promise<void> {
  const { device } = devices;
  minilm ??= await loadFiles();
  if (minilm === undefined) return sentences.say("Choose a model and its tokenizer below, then search again");
  sentences.work(`Reading, on ${device}; the first search compiles the kernels`);
  const model = await sentencesOf(minilm.model, device);
  const lines = texts.value.split("\n").filter((line) => line.trim() !== "");
  if (lines.length === 0) return sentences.say("There are no sentences to search in");
  const start = performance.now();
  const text = lines.join("\n");
  if (searched?.model !== model || searched.text !== text)
    searched = { model, text, rows: await model.embed(lines) };
  const ranked = await model.rank(input("query").value, lines, searched.rows);
  const took = ((performance.now() - start) / 1000).toFixed(2);
  const items = ranked.map(({ text: words, score }) => {
    const item = document.createElement("li");
    const [what, how] = [document.createElement("span"), document.createElement("span")];
    [what.textContent, how.textContent, how.className] = [words, score.toFixed(2), "score"];
    item.style.setProperty("--near", String(Math.max(0, score)));
    item.append(what, how);
    return item;
  });
  page.find("#ranking", HTMLOListElement).replaceChildren(...items);
  sentences.say(`${page.count(lines.length)} sentences in ${took} s, on ${device}`);
}

page.find("#search", HTMLFormElement).addEventListener("submit", (e) => {
  e.preventDefault();
  find.disabled = true;
  void sentences.run(search, "There is no result").finally(() => {
    find.disabled = false;
  });
});
for (const id of ["sentences-file", "tokenizer-file"])
  input(id).addEventListener("change", () => {
    minilm = undefined;
  });

// ---- the page ----

const devices = new page.DeviceSwitch((device) => {
  const bitmap = current;
  if (bitmap !== undefined) void look(async () => bitmap);
  sentences.say(`The next search runs on ${device}`);
});
void served.then((has) => {
  page.find("#objects-missing", HTMLElement).hidden = has.includes("yolov8n.onnx");
  page.find("#sentences-missing", HTMLElement).hidden = has.includes("minilm.onnx");
  page.find("#sample", HTMLButtonElement).hidden = !has.includes("photo.jpg");
  if (!has.includes("minilm.onnx")) sentences.say("Choose a model and its tokenizer below");
});
