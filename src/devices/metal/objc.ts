// The Objective-C runtime through koffi, as one interface: messages by the table of messages.ts, classes,
// pools, and the two functions of Metal that give out devices. A test can put a runtime of its own in its
// place. objc_msgSend jumps to a method with the registers that it was called with, so each selector calls it
// by a prototype of its own: on arm64 a variadic call would put the arguments elsewhere.

import { DeviceError } from "../../errors.ts";
import type { Koffi, KoffiLibrary } from "../../host/koffi.ts";
import {
  C_TYPES,
  type Id,
  MESSAGES,
  type MessageAnswer,
  type MessageArguments,
  type MessageKind,
  type Selector,
} from "./messages.ts";

export interface ObjC {
  send<S extends Selector>(to: Id, selector: S, ...args: MessageArguments<S>): MessageAnswer<S>;
  /** A class by its name; 0n: this system has none. */
  classOf(name: string): Id;
  /** Runs it with a pool of its own: what is autoreleased meanwhile is released at the end. */
  pool<T>(body: () => T): T;
  /** The default GPU, and all: the caller releases them. */
  createSystemDefaultDevice(): Id;
  copyAllDevices(): Id;
  /** the host's memory at an address, without a copy */
  view(address: bigint, bytes: number): Uint8Array;
}

/** A string of Foundation, released with the pool. */
export const stringOf = (objc: ObjC, text: string): Id =>
  objc.send(objc.classOf("NSString"), "stringWithUTF8String:", text);
export const textOf = (objc: ObjC, string: Id): string =>
  string === 0n ? "" : objc.send(string, "UTF8String");
/** What an NSError says. */
export const explain = (objc: ObjC, error: Id): string =>
  error === 0n ? "no reason given" : textOf(objc, objc.send(error, "localizedDescription"));

const FRAMEWORKS = "/System/Library/Frameworks";
/** Where they are on macOS. Without CoreGraphics there is no default device. */
export interface RuntimePaths {
  readonly objc: string;
  readonly metal: string;
  readonly others: readonly string[];
}
const PATHS: RuntimePaths = {
  objc: "/usr/lib/libobjc.A.dylib",
  metal: `${FRAMEWORKS}/Metal.framework/Metal`,
  others: ["Foundation", "CoreGraphics"].map((f) => `${FRAMEWORKS}/${f}.framework/${f}`),
};

type NativeMethod = (...args: unknown[]) => unknown;

/** The runtime of this machine. `device` is who asks. */
export function openRuntime(koffi: Koffi, device: string, paths: RuntimePaths = PATHS): ObjC {
  try {
    for (const other of paths.others) koffi.load(other);
    return new KoffiObjC(koffi, koffi.load(paths.objc), koffi.load(paths.metal));
  } catch (cause) {
    throw new DeviceError(
      `${device}: cannot load Metal (${(cause as Error).message.split("\n")[0]}); it needs macOS 13 or later. ` +
        "WEBGPU runs on the same GPU",
      { cause },
    );
  }
}

let hasStructs = false;
/** koffi keeps types by name, for the process. */
function declareStructs(koffi: Koffi): void {
  if (hasStructs) return;
  const word = "uint64_t";
  koffi.struct(C_TYPES.size, { width: word, height: word, depth: word });
  koffi.struct(C_TYPES.range, { location: word, length: word });
  hasStructs = true;
}

class KoffiObjC implements ObjC {
  readonly #koffi: Koffi;
  readonly #runtime: KoffiLibrary;
  readonly #methods = new Map<Selector, NativeMethod>();
  readonly #classes = new Map<string, Id>();
  readonly #getClass: NativeMethod;
  readonly #registerName: NativeMethod;
  readonly #push: NativeMethod;
  readonly #pop: NativeMethod;
  readonly #default: NativeMethod;
  readonly #all: NativeMethod;

  constructor(koffi: Koffi, runtime: KoffiLibrary, metal: KoffiLibrary) {
    declareStructs(koffi);
    this.#koffi = koffi;
    this.#runtime = runtime;
    this.#getClass = runtime.func<NativeMethod>("objc_getClass", C_TYPES.object, [C_TYPES.text]);
    this.#registerName = runtime.func<NativeMethod>("sel_registerName", C_TYPES.object, [C_TYPES.text]);
    this.#push = runtime.func<NativeMethod>("objc_autoreleasePoolPush", C_TYPES.object, []);
    this.#pop = runtime.func<NativeMethod>("objc_autoreleasePoolPop", C_TYPES.none, [C_TYPES.object]);
    this.#default = metal.func<NativeMethod>("MTLCreateSystemDefaultDevice", C_TYPES.object, []);
    this.#all = metal.func<NativeMethod>("MTLCopyAllDevices", C_TYPES.object, []);
  }

  send<S extends Selector>(to: Id, selector: S, ...args: MessageArguments<S>): MessageAnswer<S> {
    let method = this.#methods.get(selector);
    if (method === undefined) {
      method = this.#methodOf(selector);
      this.#methods.set(selector, method);
    }
    return method(to, ...args) as MessageAnswer<S>;
  }
  #methodOf(selector: Selector): NativeMethod {
    const [answer, ...kinds]: readonly MessageKind[] = MESSAGES[selector];
    const result = answer as MessageKind;
    // x86-64 returns a large struct through memory, which takes another entry
    const isLarge = result === "size" && process.arch === "x64";
    const types = [C_TYPES.object, C_TYPES.object, ...kinds.map((k) => C_TYPES[k])];
    const entry = isLarge ? "objc_msgSend_stret" : "objc_msgSend";
    const call = this.#runtime.func<NativeMethod>(entry, C_TYPES[result], types);
    const sel = this.#registerName(selector);
    const convert = ANSWERS[result];
    return (to, ...args) => convert(call(to, sel, ...args));
  }
  classOf(name: string): Id {
    let found = this.#classes.get(name);
    if (found === undefined) {
      found = big(this.#getClass(name));
      this.#classes.set(name, found);
    }
    return found;
  }
  pool<T>(body: () => T): T {
    const pool = this.#push();
    try {
      return body();
    } finally {
      this.#pop(pool);
    }
  }
  createSystemDefaultDevice(): Id {
    return big(this.#default());
  }
  copyAllDevices(): Id {
    return big(this.#all());
  }
  view(address: bigint, bytes: number): Uint8Array {
    return new Uint8Array(this.#koffi.view(address, bytes));
  }
}

/** koffi gives words below 2^53 as numbers, others as bigints. */
const big = (x: unknown): bigint => BigInt(x as number | bigint);
const same = (x: unknown): unknown => x;
const ANSWERS: Readonly<Record<MessageKind, (x: unknown) => unknown>> = {
  object: big,
  address: big,
  uint: Number,
  bool: same,
  double: same,
  text: (x) => x ?? "",
  array: same,
  size: same,
  range: same,
  none: same,
};
