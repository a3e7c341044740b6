// `Device`: finds devices by name, opens them on first use, keeps them. engine/devices.ts registers those of
// this build. Modules are loaded lazily; those that load at once open synchronously.

import { env } from "../env.ts";
import { DeviceError } from "../errors.ts";
import { type MaybePromise, runAsync, type Step, settle } from "../helpers.ts";
import { flushFreed } from "./cache.ts";
import { GlobalCounters } from "./counters.ts";
import type { Compiled, DeviceKind, DeviceKinds, DeviceOpener, StorageKind } from "./device.ts";

/** The part of a name before the colon: WASM of WASM:1. */
export function kindOf(name: string): string {
  const colon = name.indexOf(":");
  return colon < 0 ? name : name.slice(0, colon);
}

/** The kinds that other names stand for. */
const aliases = new Map<string, string>();
/** Upper-cases the kind, which may be an alias, and drops a `:0`; the path of a file stays as it is. */
export function canonicalize(name: string): string {
  if (typeof name !== "string") {
    throw new DeviceError(`device: got ${String(name)}, expected a name such as "WASM"`);
  }
  const spelt = kindOf(name);
  const kind = aliases.get(spelt.toUpperCase()) ?? spelt.toUpperCase();
  const rest = name.slice(spelt.length + 1);
  return rest === "" || (rest === "0" && !isFile(kind)) ? kind : `${kind}:${rest}`;
}

/** The number of a GPU in its name: 0 of CUDA, 1 of CUDA:1. */
export function ordinalOf(name: string): number {
  const rest = name.split(":")[1] ?? "0";
  if (/^\d+$/.test(rest)) return Number(rest);
  throw new DeviceError(`${name}: expected the number of a GPU after the colon, as in ${kindOf(name)}:1`);
}

/** The devices that a name stands for: itself, or those of a group, `WASM,WASM:1`, in canonical spelling. */
export const devicesOf = (name: string): readonly string[] =>
  (isFile(kindOf(name)) ? [name] : name.split(",")).map((n) => canonicalize(n.trim()));

const isFile = (kind: string): boolean => Device.storageOf(kind.toUpperCase()) === "file";

/** New tensors are computed where they are, so the default device must not be one that only holds data. */
function requireComputing(canonical: string): string {
  if (Device.computes(canonical)) return canonical;
  throw new DeviceError(
    `device ${canonical} holds data and cannot compute, so it cannot be the default; ` +
      "set DEV or Device.DEFAULT to a device that computes, such as WASM, JS or CLANG",
  );
}

/** The device that is the fastest one that opens. */
const AUTO = "AUTO";

/** What may follow the colon in the name of a device: one spelling for each. */
const IS_NUMBER = /^(0|[1-9]\d*)$/;

export interface DeviceMemory {
  readonly used: number;
  readonly cached: number;
  readonly peak: number;
  /** live allocations */
  readonly buffers: number;
  /** bytes held by device */
  readonly devices: Readonly<Record<string, number>>;
}

export class DeviceRegistry {
  readonly #kinds = new Map<string, DeviceKind>();
  readonly #open = new Map<string, Compiled>();
  readonly #opening = new Map<string, Promise<Compiled>>();
  /** how often a device was lost and opened again */
  readonly #reopened = new Map<string, number>();
  #default: string | undefined;

  /**
   * Adds kinds of device, or replaces those that are not open yet: by a name and what opens a device of that
   * kind, or several with all that there is to say of them (`gradloom/device`). A kind's own name goes before
   * what was another name for a kind.
   */
  register(kinds: DeviceKinds): this;
  register(name: string, open: DeviceOpener): this;
  register(kinds: DeviceKinds | string, open?: DeviceOpener): this {
    const all: DeviceKinds =
      typeof kinds === "string"
        ? { [kinds.toUpperCase()]: { storage: "memory", load: () => ({ open: open as DeviceOpener }) } }
        : kinds;
    for (const [kind, entry] of Object.entries(all)) {
      this.#kinds.set(kind, entry);
      aliases.delete(kind);
      for (const alias of entry.aliases ?? []) aliases.set(alias, kind);
    }
    return this;
  }

  /** What the buffers of a device are; it need not be open. */
  storageOf(name: string): StorageKind {
    return this.#kinds.get(kindOf(name))?.storage ?? "memory";
  }
  /** Whether kernels run there; else it holds data. */
  computes(name: string): boolean {
    return this.storageOf(name) === "memory";
  }

  /** The device of new tensors: the setting DEV, WASM unless changed. With AUTO the fastest that opens. */
  get DEFAULT(): string {
    return this.#default ?? requireComputing(canonicalize(env.DEV));
  }
  set DEFAULT(name: string) {
    const canonical = requireComputing(canonicalize(name));
    this.#kind(canonical);
    this.#default = canonical;
  }

  /** The canonical name of a device that computes; an error where this build has no such device. */
  computing(name: string): string {
    const canonical = this.#known(name);
    if (this.computes(canonical)) return canonical;
    throw new DeviceError(
      `device ${canonical} holds data and cannot compute; name a device that does, such as WASM, JS or CLANG`,
    );
  }

  /** The kinds of device this build knows. */
  get kinds(): readonly string[] {
    return [...this.#kinds.keys()];
  }

  /** Loads and opens a device; again, gives the same one. */
  async open(name: string = this.DEFAULT): Promise<Compiled> {
    return runAsync(this.opened(name));
  }

  /**
   * The name of the fastest device that opens on this machine, as in `Device.DEFAULT = await Device.best()`.
   * It is open then. A GPU that the CPU emulates is not taken. The device `AUTO` is the same one by a name
   * that needs no waiting.
   *
   * @example
   * const name = await Device.best();
   * Device.isOpen(name) // => true
   */
  async best(): Promise<string> {
    const ranked = [...this.#kinds].filter(([, kind]) => kind.rank);
    for (const [name] of ranked.sort(([, a], [, b]) => (b.rank as number) - (a.rank as number))) {
      const device = await this.open(name).catch((e) => {
        if (!(e instanceof DeviceError)) throw e;
      });
      if (device && !device.isSoftware) return name;
    }
    throw new DeviceError("Device.best: no device opens");
  }

  /** An open device, opening it here if that takes no waiting. */
  get(name: string): Compiled {
    const canonical = canonicalize(name);
    const device = this.#alive(canonical);
    if (device !== undefined) return device;
    const made = this.#start(canonical);
    if (!(made instanceof Promise)) return made as Compiled;
    const lost = this.timesLost(canonical) > 0 ? ", since it was lost with what its memory held" : "";
    throw new DeviceError(
      `device ${canonical} is not open yet${lost}, and opening it takes time; ` +
        `await Device.open("${canonical}") first, or use the async form of the call`,
    );
  }

  isOpen(name: string): boolean {
    return this.#open.has(canonicalize(name));
  }

  /**
   * Bytes that tensors hold: on one device, or on all that are open. `cached` is freed memory that is kept
   * for the next buffer of its size, `peak` the most that all devices held at once, since
   * `GlobalCounters.reset()`.
   *
   * @example
   * const x = await Tensor.ones(1024).contiguous().realize();
   * Device.memory(x.device).used >= 4 * x.numel() // => true
   */
  memory(name?: string): DeviceMemory {
    const { memCached: cached, memPeak: peak, buffers } = GlobalCounters;
    const devices = GlobalCounters.memByDevice;
    const used = name === undefined ? GlobalCounters.memUsed : (devices[this.#known(name)] ?? 0);
    return { used, cached, peak, buffers, devices };
  }

  /** Workgroups that run side by side on a GPU, as far as that is known; 0 elsewhere. */
  unitsOf(name: string): number {
    return this.#open.get(canonicalize(name))?.renderer?.gpu?.computeUnits ?? 0;
  }

  *opened(name: string): Step<Compiled> {
    const canonical = canonicalize(name);
    return this.#alive(canonical) ?? (yield* settle(this.#start(canonical)));
  }

  /** An open device, unless it was lost: then it is forgotten. */
  #alive(canonical: string): Compiled | undefined {
    const device = this.#open.get(canonical);
    if (device?.isLost !== true) return device;
    this.#open.delete(canonical);
    flushFreed(device);
    this.#reopened.set(canonical, this.timesLost(canonical) + 1);
    return undefined;
  }
  /** How often this device was lost: programs that were compiled before can no longer be used. */
  timesLost(name: string): number {
    return this.#reopened.get(name) ?? 0;
  }

  /** The canonical name of a device that this build has. */
  #known(name: string): string {
    const canonical = canonicalize(name);
    this.#kind(canonical);
    return canonical;
  }
  #kind(canonical: string): DeviceKind {
    if (canonical.includes(",") && this.storageOf(canonical) !== "file") {
      throw new DeviceError(
        `device ${canonical} names several devices, where one is wanted; name one, or spread a tensor with t.shard([…])`,
      );
    }
    if (canonical === AUTO)
      return { storage: "memory", load: () => ({ open: async () => this.open(await this.best()) }) };
    const kind = this.#kinds.get(kindOf(canonical));
    const [, number] = /:(.*)$/s.exec(canonical) ?? [];
    if (kind !== undefined && kind.storage !== "file" && number !== undefined && !IS_NUMBER.test(number)) {
      throw new DeviceError(
        `device ${JSON.stringify(canonical)}: expected a number after the colon, as in ${kindOf(canonical)}:1`,
      );
    }
    if (kind !== undefined) return kind;
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
    const loaded = this.#kind(canonical).load();
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

  /**
   * A failed opening is forgotten, so that the next attempt (after installing a compiler, say) starts anew.
   */
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

/** The devices of the process: `await Device.open("CLANG")`, `Device.DEFAULT = "JS"`. */
export const Device = new DeviceRegistry();
