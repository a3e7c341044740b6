// An Objective-C runtime in JavaScript, for tests of the METAL device where no Mac is. It counts references
// and keeps pools, and believes nothing: a message to nil or to what was released, a selector that a class
// does not have, other arguments than the table says, an object that nobody will release are faults that say
// so. Foundation's few classes are here, Metal's in fakegpu.ts.

import {
  type Id,
  MESSAGES,
  type MessageAnswer,
  type MessageArguments,
  type MessageKind,
  type Selector,
} from "../../../src/devices/metal/messages.ts";
import type { ObjC } from "../../../src/devices/metal/objc.ts";

export class FakeError extends Error {}
const fault = (what: string): never => {
  throw new FakeError(`fake Metal: ${what}`);
};
export const demand: (ok: boolean, what: string) => asserts ok = (ok, what) => {
  if (!ok) fault(what);
};

export type Methods = {
  readonly [S in Selector]?: (...args: MessageArguments<S>) => MessageAnswer<S>;
};
/** An object, and what it does when it goes. */
export interface FakeObject {
  readonly id: Id;
  readonly type: string;
  /** for the log: MTLBuffer#2 */
  readonly name: string;
  readonly methods: Methods;
  readonly gone: (() => void) | undefined;
  references: number;
}

const ARRAYS = [BigUint64Array, Int32Array];
const isWord = (x: unknown): boolean => typeof x === "number" && Number.isSafeInteger(x) && x >= 0;
const isWords = (x: unknown): boolean =>
  typeof x === "object" && x !== null && Object.values(x).every(isWord);
const FITS: Readonly<Record<MessageKind, (x: unknown) => boolean>> = {
  object: (x) => typeof x === "bigint",
  address: (x) => typeof x === "bigint",
  uint: isWord,
  bool: (x) => typeof x === "boolean",
  double: (x) => typeof x === "number",
  text: (x) => typeof x === "string",
  array: (x) => ARRAYS.some((type) => x instanceof type),
  size: isWords,
  range: isWords,
  none: (x) => x === undefined,
};

export class FakeRuntime implements ObjC {
  readonly #objects = new Map<Id, FakeObject>();
  readonly #classes = new Map<string, Id>();
  readonly #pools: FakeObject[][] = [];
  readonly #memory: { readonly at: bigint; readonly bytes: Uint8Array }[] = [];
  readonly #counts = new Map<string, number>();
  /** Above 2^53, as tagged pointers are. */
  #next = 0x8000_0000_0000_0010n;
  #nextMemory = 0x1_0000_0000n;
  /** every message, while a test wants them */
  log: string[] | undefined;
  /** selectors whose next answer is nil */
  readonly nil = new Set<Selector>();
  /** the default device, and all of them */
  devices: readonly FakeObject[] = [];

  constructor() {
    const stringClass: Methods = { "stringWithUTF8String:": (text) => this.string(text) };
    this.add("NSString class", stringClass);
    const process: Methods = { systemUptime: () => performance.now() / 1000 };
    const info = this.add("NSProcessInfo", process);
    this.add("NSProcessInfo class", { processInfo: () => info.id });
  }

  // ---- objects ----

  /** An object with one reference. */
  add(type: string, methods: Methods, gone?: () => void): FakeObject {
    this.#next += 16n;
    const number = (this.#counts.get(type) ?? 0) + 1;
    this.#counts.set(type, number);
    const made = { id: this.#next, type, name: `${type}#${number}`, methods, gone, references: 1 };
    this.#objects.set(made.id, made);
    if (type.endsWith(" class")) this.#classes.set(type.slice(0, -" class".length), made.id);
    return made;
  }
  retain(id: Id): Id {
    this.get(id, "retain").references++;
    return id;
  }
  release(id: Id): void {
    const object = this.get(id, "release");
    if (--object.references > 0) return;
    this.#objects.delete(id);
    object.gone?.();
  }
  /** Whose one reference goes with the pool. */
  autoreleased(object: FakeObject): Id {
    const pool = this.#pools.at(-1);
    demand(pool !== undefined, `${object.name} is autoreleased without a pool, so it stays for ever`);
    pool.push(object);
    return object.id;
  }
  string(text: string): Id {
    return this.autoreleased(this.add("NSString", { UTF8String: () => text }));
  }
  error(code: number, text: string): FakeObject {
    return this.add("NSError", { code: () => code, localizedDescription: () => this.string(text) });
  }
  get(id: Id, what: string): FakeObject {
    const object = this.#objects.get(id);
    if (object !== undefined) return object;
    return fault(id === 0n ? `${what} to nil` : `${what} to ${id}, which was released or never was`);
  }
  /** The object of a type, as an argument. */
  of(type: string, id: Id, what: string): FakeObject {
    const object = this.get(id, what);
    return object.type === type ? object : fault(`${what}: ${object.name} is not a ${type}`);
  }
  /** The text of a string. */
  textOf(id: Id): string {
    return this.of("NSString", id, "a text").methods.UTF8String?.() ?? "";
  }
  all(type: string): readonly FakeObject[] {
    return [...this.#objects.values()].filter((x) => x.type === type);
  }
  /** How many there are of each type, classes and singletons apart. */
  get alive(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { type } of this.#objects.values()) {
      if (type.endsWith(" class") || type === "NSProcessInfo" || type === "MTLDevice") continue;
      counts[type] = (counts[type] ?? 0) + 1;
    }
    return counts;
  }

  // ---- the interface ----

  send<S extends Selector>(to: Id, selector: S, ...args: MessageArguments<S>): MessageAnswer<S> {
    const object = this.get(to, selector);
    const [answer, ...kinds]: readonly MessageKind[] = MESSAGES[selector];
    const given: readonly unknown[] = args;
    if (given.length !== kinds.length)
      fault(`${selector} takes ${kinds.length} arguments, not ${given.length}`);
    for (let i = 0; i < kinds.length; i++) {
      const kind = kinds[i] as MessageKind;
      if (!FITS[kind](given[i])) fault(`${selector}: argument ${i} is not a ${kind}`);
    }
    const result = this.nil.delete(selector) ? 0n : this.#call(object, selector, given);
    if (!FITS[answer as MessageKind](result)) fault(`${object.name} ${selector} answers ${String(result)}`);
    this.#note(object, selector, given, result);
    return result as MessageAnswer<S>;
  }
  #call(object: FakeObject, selector: Selector, args: readonly unknown[]): unknown {
    if (selector === "retain") return this.retain(object.id);
    if (selector === "release") return this.release(object.id);
    const method = object.methods[selector] as ((...xs: readonly unknown[]) => unknown) | undefined;
    demand(method !== undefined, `${object.name} has no method ${selector}`);
    return method(...args);
  }
  classOf(name: string): Id {
    return this.#classes.get(name) ?? 0n;
  }
  pool<T>(body: () => T): T {
    this.#pools.push([]);
    try {
      return body();
    } finally {
      for (const object of this.#pools.pop() ?? []) this.release(object.id);
    }
  }
  createSystemDefaultDevice(): Id {
    const [first] = this.devices;
    return first === undefined ? 0n : this.retain(first.id);
  }
  copyAllDevices(): Id {
    const { devices } = this;
    const methods: Methods = {
      count: () => devices.length,
      "objectAtIndex:": (i) => {
        demand(i < devices.length, `objectAtIndex: ${i} of ${devices.length}`);
        return (devices[i] as FakeObject).id;
      },
    };
    return this.add("NSArray", methods).id;
  }

  // ---- memory ----

  /** Memory that the host reaches, and its address. A gap follows: what runs over the end meets nothing. */
  allocate(bytes: number): { at: bigint; bytes: Uint8Array } {
    const made = { at: this.#nextMemory, bytes: new Uint8Array(bytes) };
    this.#nextMemory += BigInt(Math.ceil(bytes / 4096) + 1) * 4096n;
    this.#memory.push(made);
    return made;
  }
  unmap(at: bigint): void {
    this.#memory.splice(
      this.#memory.findIndex((m) => m.at === at),
      1,
    );
  }
  view(address: bigint, bytes: number): Uint8Array {
    const found = this.#memory.find((m) => address >= m.at && address < m.at + BigInt(m.bytes.length));
    demand(found !== undefined, `view: nothing is at ${address}`);
    const from = Number(address - found.at);
    demand(from + bytes <= found.bytes.length, `view: ${bytes} bytes run over the end`);
    return found.bytes.subarray(from, from + bytes);
  }

  // ---- the log ----

  #note(object: FakeObject, selector: Selector, args: readonly unknown[], result: unknown): void {
    if (this.log === undefined || QUIET.has(selector) || object.type === "NSString class") return;
    const answer = typeof result === "bigint" && result !== 0n ? ` -> ${this.#show(result)}` : "";
    const parts = selector.split(":");
    const words = args.length === 0 ? selector : args.map((x, i) => `${parts[i]}:${this.#show(x)}`).join(" ");
    this.log.push(`${object.name} ${words}${answer}`);
  }
  #show(x: unknown): string {
    if (typeof x === "bigint") {
      const object = this.#objects.get(x);
      if (object === undefined) return x === 0n ? "nil" : "address";
      return object.type === "NSString" ? JSON.stringify(object.methods.UTF8String?.()) : object.name;
    }
    if (x instanceof BigUint64Array) return `[${Array.from(x, (id) => this.#show(id)).join(" ")}]`;
    if (x instanceof Int32Array) return `[${x.join(" ")}]`;
    return typeof x === "object" && x !== null ? `(${Object.values(x).join(" ")})` : String(x);
  }
}

/** How often these come depends on the time that a wait takes. */
const QUIET: ReadonlySet<Selector> = new Set<Selector>([
  ...(["retain", "release", "status", "UTF8String", "GPUStartTime", "GPUEndTime"] as const),
]);
