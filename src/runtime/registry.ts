// `Device`: finds devices by name, opens them on first use, keeps them. Which devices exist is one line each in
// devices/node.ts and devices/browser.ts; modules are loaded lazily, those that load at once open synchronously.

import { registry } from "#devices";
import { env } from "../env.ts";
import { DeviceError } from "../errors.ts";
import { type MaybePromise, runAsync, type Step, settle } from "../helpers.ts";
import type { Compiled } from "./device.ts";

/** Upper-cases the kind and drops a `:0`; what follows DISK: is a path and stays as it is. */
export function canonicalize(name: string): string {
  const colon = name.indexOf(":");
  const kind = (colon < 0 ? name : name.slice(0, colon)).toUpperCase();
  const rest = colon < 0 ? "" : name.slice(colon + 1);
  return rest === "" || (rest === "0" && kind !== "DISK") ? kind : `${kind}:${rest}`;
}

/** The part of a canonical name before the colon: WASM of WASM:1. */
export const kindOf = (name: string): string => name.split(":", 1)[0] as string;

/** The number of a GPU in its name: 0 of CUDA, 1 of CUDA:1. */
export function ordinalOf(name: string): number {
  const rest = name.split(":")[1] ?? "0";
  if (/^\d+$/.test(rest)) return Number(rest);
  throw new DeviceError(`${name}: expected the number of a GPU after the colon, as in ${kindOf(name)}:1`);
}

const holdsOnly = (canonical: string): boolean => ["EXT", "DISK"].includes(kindOf(canonical));

/** The devices that a name stands for: itself, or those of a group, `WASM,WASM:1`, in canonical spelling. */
export const devicesOf = (name: string): readonly string[] =>
  (/^disk:/i.test(name) ? [name] : name.split(",")).map((n) => canonicalize(n.trim()));

/** New tensors are computed where they are, so the default device must not be one that only holds data. */
function requireComputing(canonical: string): string {
  if (!holdsOnly(canonical)) return canonical;
  throw new DeviceError(
    `device ${canonical} holds data and cannot compute, so it cannot be the default; ` +
      "set DEV or Device.DEFAULT to a device that computes, such as WASM, JS or CLANG",
  );
}

class DeviceRegistry {
  readonly #open = new Map<string, Compiled>();
  readonly #opening = new Map<string, Promise<Compiled>>();
  #default: string | undefined;

  /** The device of new tensors: the setting DEV, WASM unless changed. */
  get DEFAULT(): string {
    return this.#default ?? requireComputing(canonicalize(env.DEV));
  }
  set DEFAULT(name: string) {
    const canonical = requireComputing(canonicalize(name));
    this.#loader(canonical);
    this.#default = canonical;
  }

  /** The canonical name of a device that computes; an error where this build has no such device. */
  computing(name: string): string {
    const canonical = canonicalize(name);
    this.#loader(canonical);
    if (!holdsOnly(canonical)) return canonical;
    throw new DeviceError(
      `device ${canonical} holds data and cannot compute; name a device that does, such as WASM, JS or CLANG`,
    );
  }

  /** The kinds of device this build knows. */
  get kinds(): readonly string[] {
    return Object.keys(registry);
  }

  /** Loads and opens a device; again, gives the same one. */
  async open(name: string = this.DEFAULT): Promise<Compiled> {
    return runAsync(this.opened(name));
  }

  /** An open device, opening it here if that takes no waiting. */
  get(name: string): Compiled {
    const canonical = canonicalize(name);
    const device = this.#open.get(canonical);
    if (device !== undefined) return device;
    const made = this.#start(canonical);
    if (!(made instanceof Promise)) return made as Compiled;
    throw new DeviceError(
      `device ${canonical} is not open yet, and opening it takes time; ` +
        `await Device.open("${canonical}") first, or use the async form of the call`,
    );
  }

  isOpen(name: string): boolean {
    return this.#open.has(canonicalize(name));
  }

  /** Workgroups that run side by side on a GPU, as far as that is known; 0 elsewhere. */
  unitsOf(name: string): number {
    return this.#open.get(canonicalize(name))?.renderer?.gpu?.units ?? 0;
  }

  *opened(name: string): Step<Compiled> {
    const canonical = canonicalize(name);
    return this.#open.get(canonical) ?? (yield* settle(this.#start(canonical)));
  }

  #loader(canonical: string) {
    if (canonical.includes(",") && kindOf(canonical) !== "DISK") {
      throw new DeviceError(
        `device ${canonical} names several devices, where one is wanted; name one, or spread a tensor with t.shard([…])`,
      );
    }
    const loader = Object.hasOwn(registry, kindOf(canonical)) ? registry[kindOf(canonical)] : undefined;
    if (loader !== undefined) return loader;
    throw new DeviceError(
      `device ${canonical} does not exist; this build has ${this.kinds.join(", ")} (set DEV or Device.DEFAULT to one of them)`,
    );
  }

  #start(canonical: string): MaybePromise<Compiled> {
    const pending = this.#opening.get(canonical);
    if (pending !== undefined) return pending;
    const keep = (device: Compiled): Compiled => {
      this.#open.set(canonical, device);
      if (env.DEBUG >= 1) console.log(`opened device ${canonical}`);
      return device;
    };
    const loaded = this.#loader(canonical)();
    if (!("then" in loaded)) {
      const device = loaded.open(canonical);
      if (!("then" in device)) return keep(device);
      return this.#waitFor(canonical, Promise.resolve(device).then(keep));
    }
    return this.#waitFor(
      canonical,
      Promise.resolve(loaded)
        .then((m) => m.open(canonical))
        .then(keep),
    );
  }

  /** A failed opening is forgotten, so that the next attempt (after installing a compiler, say) starts anew. */
  #waitFor(canonical: string, opening: Promise<Compiled>): Promise<Compiled> {
    const why = `device ${canonical} is not open yet; await Device.open("${canonical}") first`;
    const settled = Object.assign(
      opening.finally(() => this.#opening.delete(canonical)),
      { why },
    );
    this.#opening.set(canonical, settled);
    return settled;
  }
}

/** The devices: `await Device.open("CLANG")`, `Device.DEFAULT = "JS"`. */
export const Device = new DeviceRegistry();
