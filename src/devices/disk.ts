// DISK:/path/to/file holds a file. Nothing is read until bytes are asked for; it computes nothing. A file
// that is shorter than the tensor on it is refused. The first copy into a file makes it if it is not there
// yet.

import { closeSync, existsSync, fstatSync, openSync, readSync, writeSync } from "node:fs";
import { DeviceError, FileError } from "../errors.ts";
import { type Allocator, type Compiled, HOST_ALIGN, HOST_SLACK } from "../runtime/device.ts";

/** A file as one allocation holds it open: a file put in its place later is another one. */
interface Opened {
  fd: number | undefined;
  writable: boolean;
}
/** A part of the file. */
interface FilePart {
  readonly file: Opened;
  readonly start: number;
  readonly nbytes: number;
}

class File implements Allocator<FilePart> {
  readonly recycles = false;
  readonly isSlow = false;
  readonly slack = HOST_SLACK;
  readonly canTransfer = false;
  readonly offsetAlign = HOST_ALIGN;
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  alloc(nbytes: number): FilePart {
    const file: Opened = { fd: undefined, writable: false };
    if (existsSync(this.#path)) {
      const { size } = fstatSync(this.#open(file, false));
      if (size < nbytes) this.free({ file });
      this.#require(size, nbytes);
    }
    return { file, start: 0, nbytes };
  }
  free({ file }: Pick<FilePart, "file">): void {
    if (file.fd !== undefined) closeSync(file.fd);
    file.fd = undefined;
  }
  copyin({ file, start }: FilePart, src: Uint8Array): void {
    const fd = this.#open(file, true);
    for (let done = 0; done < src.byteLength; )
      done += this.#try("write", () => writeSync(fd, src, done, src.byteLength - done, start + done));
  }
  copyout(dest: Uint8Array, { file, start }: FilePart): void {
    const fd = this.#open(file, false);
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
  offset({ file, start }: FilePart, nbytes: number, byteOffset: number): FilePart {
    return { file, start: start + byteOffset, nbytes };
  }
  transfer(): void {
    throw new DeviceError("DISK cannot transfer");
  }

  #open(file: Opened, write: boolean): number {
    if (file.fd !== undefined && (!write || file.writable)) return file.fd;
    this.free({ file });
    const mode = write ? (existsSync(this.#path) ? "r+" : "w+") : "r";
    file.fd = this.#try("open", () => openSync(this.#path, mode));
    file.writable = write;
    return file.fd;
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

export function open(name: string): Compiled<FilePart> {
  const path = name.slice("DISK:".length);
  if (!name.startsWith("DISK:") || path === "") {
    throw new DeviceError(`device ${name} names no file; write it as DISK:path/to/file`);
  }
  return {
    name,
    allocator: new File(path),
    renderer: undefined,
    keepsTime: false,
    space: undefined,
    timeline: undefined,
    graph: undefined,
    compilesAside: false,
    compile() {
      throw new DeviceError(`${name} is a file and cannot compute; move the tensor first: t.to("WASM")`);
    },
    synchronize() {},
  };
}
