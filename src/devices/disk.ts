// DISK:/path/to/file holds a file. Nothing is read until bytes are asked for; it computes nothing. A file that is
// shorter than the tensor on it is refused, a file that is not there yet is made by the first copy into it.

import { closeSync, existsSync, fstatSync, openSync, readSync, statSync, writeSync } from "node:fs";
import { DeviceError, FileError } from "../errors.ts";
import type { Allocator, Compiled } from "../runtime/device.ts";

/** A part of the file. */
interface Part {
  readonly start: number;
  readonly nbytes: number;
}

class File implements Allocator<Part> {
  readonly canTransfer = false;
  readonly #path: string;
  #fd: number | undefined;
  #writable = false;

  constructor(path: string) {
    this.#path = path;
  }

  alloc(nbytes: number): Part {
    if (existsSync(this.#path)) this.#require(statSync(this.#path).size, nbytes);
    return { start: 0, nbytes };
  }
  free(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
  copyin({ start }: Part, src: Uint8Array): void {
    const fd = this.#open(true);
    for (let done = 0; done < src.byteLength; )
      done += this.#try("write", () => writeSync(fd, src, done, src.byteLength - done, start + done));
  }
  copyout(dest: Uint8Array, { start }: Part): void {
    const fd = this.#open(false);
    this.#require(fstatSync(fd).size, start + dest.byteLength);
    for (let done = 0; done < dest.byteLength; ) {
      const n = this.#try("read", () => readSync(fd, dest, done, dest.byteLength - done, start + done));
      if (n === 0) this.#require(start + done, start + dest.byteLength);
      done += n;
    }
  }
  view(): undefined {
    return undefined;
  }
  offset({ start }: Part, nbytes: number, byteOffset: number): Part {
    return { start: start + byteOffset, nbytes };
  }
  transfer(): void {
    throw new DeviceError("DISK cannot transfer");
  }

  #open(write: boolean): number {
    if (this.#fd !== undefined && (!write || this.#writable) && this.#isCurrent(this.#fd)) return this.#fd;
    this.free();
    const mode = write ? (existsSync(this.#path) ? "r+" : "w+") : "r";
    this.#fd = this.#try("open", () => openSync(this.#path, mode));
    this.#writable = write;
    return this.#fd;
  }
  /** Another file may have been put in the place of the one that is open. */
  #isCurrent(fd: number): boolean {
    return statSync(this.#path, { throwIfNoEntry: false })?.ino === fstatSync(fd).ino;
  }
  #try<T>(what: string, action: () => T): T {
    try {
      return action();
    } catch (cause) {
      throw new FileError(`DISK: cannot ${what} ${this.#path}: ${(cause as Error).message}`, { cause });
    }
  }
  #require(size: number, nbytes: number): void {
    if (size >= nbytes) return;
    throw new FileError(
      `DISK: ${this.#path} has ${size} bytes, the tensor on it needs ${nbytes}; ` +
        "the file is truncated or the shape is too large (to write a new file, delete this one first)",
    );
  }
}

export function open(name: string): Compiled<Part> {
  const path = name.slice("DISK:".length);
  if (!name.startsWith("DISK:") || path === "") {
    throw new DeviceError(`device ${name} names no file; write it as DISK:path/to/file`);
  }
  return {
    name,
    allocator: new File(path),
    renderer: undefined,
    compile() {
      throw new DeviceError(`${name} is a file and cannot compute; move the tensor first: t.to("WASM")`);
    },
    synchronize() {},
  };
}
