// What the pages share: finding elements, telling of errors, one piece of work at a time, and the switch of
// devices.

import { Device } from "gradloom";

/** The element of a page that a selector names. */
export function find<T extends Element>(selector: string, kind: { new (): T }): T {
  const found = document.querySelector(selector);
  if (found instanceof kind) return found;
  throw new Error(`the page has no ${selector}`);
}

/** Sets the text of the element with this id. Equal text is left alone: screen readers would say it again. */
export function text(id: string, words: string): void {
  const element = find(`#${id}`, HTMLElement);
  if (element.textContent !== words) element.textContent = words;
}

export const count = (n: number): string => Math.round(n).toLocaleString("en");
export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
/** A figure a second, as short as it can be read. */
export const rate = (n: number): string => (n < 10 ? n.toFixed(1) : count(n));

/** Shows an error in words, above everything else; undefined takes it away. */
export function showError(error: unknown): void {
  const box = find("#error", HTMLElement);
  box.hidden = error === undefined;
  find("#error-text", HTMLElement).textContent =
    error === undefined ? "" : error instanceof Error ? error.message : String(error);
  if (error !== undefined) console.error(error);
}

/** What nobody has caught is shown, too. */
export function watchErrors(): void {
  addEventListener("error", (e) => showError(e.error ?? e.message));
  addEventListener("unhandledrejection", (e) => showError(e.reason));
  find("#error button", HTMLButtonElement).addEventListener("click", () => showError(undefined));
}

/** Runs one piece of work after the other: a step must not begin while another one is captured. */
export function inTurn(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work);
    last = next.catch(() => {});
    return next;
  };
}

/** Shows how far a download is in a `<progress>`; what takes no time shows nothing. */
export function showProgress(bar: HTMLProgressElement, received: number, total: number | undefined): void {
  bar.hidden = false;
  if (total === undefined) bar.removeAttribute("value");
  else bar.value = received / total;
}

const CPU = (): string => {
  const threads = navigator.hardwareConcurrency;
  return globalThis.crossOriginIsolated && threads > 1
    ? `WASM: your processor, on up to ${threads} threads.`
    : "WASM: your processor, on the thread of this page.";
};

/**
 * The switch between WASM and WEBGPU. The latter can be chosen once the GPU is open; if it does not open, the
 * note under the switch says why. `onChange` gets the name of the device that was chosen.
 */
export class DeviceSwitch {
  readonly #inputs = [...document.querySelectorAll<HTMLInputElement>("input[name=device]")];
  readonly #note = find("#device-note", HTMLElement);
  /** what each device is; the GPU's is not known before it is open */
  readonly #notes: Record<string, string> = { WASM: CPU() };
  #refusal = "";

  constructor(onChange: (device: string) => void) {
    for (const input of this.#inputs)
      input.addEventListener("change", () => {
        this.#show();
        onChange(input.value);
      });
    this.#show();
    void this.#openGpu();
  }

  get device(): string {
    return this.#inputs.find((input) => input.checked)?.value ?? "WASM";
  }
  set device(name: string) {
    for (const input of this.#inputs) input.checked = input.value === name;
    this.#show();
  }

  async #openGpu(): Promise<void> {
    try {
      const { renderer } = await Device.open("WEBGPU");
      const name = renderer?.gpu?.arch ?? "unknown";
      this.#notes.WEBGPU = `WEBGPU: your graphics processor${name === "unknown" ? "" : ` (${name})`}.`;
      for (const input of this.#inputs) input.disabled = false;
    } catch (error) {
      this.#refusal = ` WEBGPU cannot be chosen: ${(error as Error).message.replace(/^WEBGPU: /, "")}.`;
    }
    this.#show();
  }

  #show(): void {
    this.#note.textContent = (this.#notes[this.device] ?? "") + this.#refusal;
  }
}
