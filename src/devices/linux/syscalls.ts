// What devices behind a Linux kernel driver use of the system: files, ioctl, mmap, memory that stays where it
// is, a barrier. An interface, so that tests put a kernel of their own in its place; `openKernel()` gives the
// real one, libc through koffi.
//
// Memory is seen through an ArrayBuffer on its address (koffi.view): a store by JS is a store to the device.
// The barrier needs no call either: V8 makes Atomics.store an exchange, which on x64 empties the
// write-combining buffers like a fence (25 ns; a call through koffi takes 100 and more). Elsewhere it would
// not, so other processors are refused.

import { readdirSync, readFileSync } from "node:fs";
import { DeviceError } from "../../errors.ts";
import { type Koffi, openKoffi } from "../../host/koffi.ts";

/** Memory outside of V8's heap: its address does not change. */
export interface NativeMemory {
  readonly address: bigint;
  readonly bytes: Uint8Array;
}

export interface LinuxKernel {
  /** A file for reading and writing that child processes do not get; below 0 it is the number of an error. */
  open(path: string): number;
  close(fd: number): void;
  /** 0, or the number of an error below 0. */
  ioctl(fd: number, request: number, args: bigint): number;
  /** Memory of a file, or with fd -1 new, zeroed memory of the host; undefined where there is no room. */
  mmap(nbytes: number, fd: number): bigint | undefined;
  munmap(address: bigint, nbytes: number): void;
  /** Zeroed memory. */
  alloc(nbytes: number): NativeMemory;
  free(memory: NativeMemory): void;
  /** Mapped memory as bytes; owns nothing, and is dead when it is unmapped. */
  view(address: bigint, nbytes: number): Uint8Array;
  /** What was written before is in memory before what is written after. */
  barrier(): void;
}

/** What drivers need whose memory has the same address for the host and the GPU. */
export interface LinuxSystem extends LinuxKernel {
  /** Addresses that nothing else gets and nobody can use yet; `munmap` gives them back. */
  reserve(nbytes: number): bigint | undefined;
  /** Memory of a file, from an offset, at addresses that were reserved, or with address 0 anywhere. */
  mapAt(address: bigint, nbytes: number, fd: number, offset: bigint): bigint | undefined;
  /** The text of a file; undefined where it is not there or may not be read. */
  read(path: string): string | undefined;
  /** The names in a folder; none where there is no such folder. */
  list(path: string): readonly string[];
}

const DIRECTIONS = { W: 1, R: 2, WR: 3 } as const;
export type IoctlDirection = keyof typeof DIRECTIONS;
/**
 * The request of an ioctl with a structure of this many bytes: `_IOWR(type, number, size)` of C and its
 * like.
 */
export const ioctlRequest = (
  direction: IoctlDirection,
  type: string,
  number: number,
  nbytes: number,
): number => DIRECTIONS[direction] * 2 ** 30 + ((nbytes & 0x3fff) << 16) + (type.charCodeAt(0) << 8) + number;
export const iowr = (type: string, number: number, nbytes: number): number =>
  ioctlRequest("WR", type, number, nbytes);

interface KoffiWithErrno extends Koffi {
  errno(): number;
}

const [O_RDWR, O_CLOEXEC] = [0x2, 0x80000];
const [PROT_NONE, PROT_READ_WRITE] = [0x0, 0x3];
const [MAP_SHARED, MAP_PRIVATE, MAP_FIXED, MAP_ANONYMOUS, MAP_NORESERVE] = [0x1, 0x2, 0x10, 0x20, 0x4000];
const [MADV_DONTFORK, MADV_HUGEPAGE] = [10, 14];
const MAP_FAILED = 2n ** 64n - 1n;
/** An interrupted call, and one that asks to come again. */
const AGAIN: readonly number[] = [4, 11];

export async function openKernel(device: string): Promise<LinuxSystem> {
  if (process.platform !== "linux" || process.arch !== "x64") {
    throw new DeviceError(
      `${device}: drives the GPU through the Linux kernel on x64, and this is ${process.platform} on ${process.arch}; ` +
        `set DEV to another device`,
    );
  }
  return libcKernel((await openKoffi(device)) as KoffiWithErrno, device);
}

function loadLibc(koffi: Koffi, device: string): ReturnType<Koffi["load"]> {
  try {
    return koffi.load("libc.so.6");
  } catch (cause) {
    throw new DeviceError(
      `${device}: cannot load libc.so.6, the C library of glibc (${(cause as Error).message})`,
      {
        cause,
      },
    );
  }
}

function libcKernel(koffi: KoffiWithErrno, device: string): LinuxSystem {
  const libc = loadLibc(koffi, device);
  const open = libc.func<(path: string, flags: number) => number>("open", "int", ["str", "int"]);
  const close = libc.func<(fd: number) => number>("close", "int", ["int"]);
  const ioctl = libc.func<(fd: number, request: number, args: bigint) => number>("ioctl", "int", [
    "int",
    "unsigned long",
    "void*",
  ]);
  const mmap = libc.func<(...args: (bigint | number | null)[]) => bigint>("mmap", "void*", [
    "void*",
    "size_t",
    "int",
    "int",
    "int",
    "int64_t",
  ]);
  const munmap = libc.func<(address: bigint, nbytes: number) => number>("munmap", "int", ["void*", "size_t"]);
  const madvise = libc.func<(address: bigint, nbytes: number, advice: number) => number>("madvise", "int", [
    "void*",
    "size_t",
    "int",
  ]);
  const view = (address: bigint, nbytes: number) => new Uint8Array(koffi.view(address, nbytes));
  const order = new Int32Array(1);
  return {
    open(path) {
      const fd = open(path, O_RDWR | O_CLOEXEC);
      return fd < 0 ? -koffi.errno() : fd;
    },
    close: (fd) => void close(fd),
    ioctl(fd, request, args) {
      for (;;) {
        if (ioctl(fd, request, args) >= 0) return 0;
        const why = koffi.errno();
        if (!AGAIN.includes(why)) return -why;
      }
    },
    mmap(nbytes, fd) {
      const flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
      const address = mmap(null, nbytes, PROT_READ_WRITE, flags, fd, 0);
      if (address === MAP_FAILED) return undefined;
      if (fd < 0) {
        // a child that is forked must not make copies of pages that the GPU writes
        madvise(address, nbytes, MADV_DONTFORK);
        // fewer pages to clear and to hold: 256 MiB for the GPU in 60 ms instead of
        // 140; not every kernel has them
        madvise(address, nbytes, MADV_HUGEPAGE);
      }
      return address;
    },
    reserve(nbytes) {
      const flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
      const address = mmap(null, nbytes, PROT_NONE, flags, -1, 0);
      return address === MAP_FAILED ? undefined : address;
    },
    mapAt(at, nbytes, fd, offset) {
      const flags = MAP_SHARED | (at === 0n ? 0 : MAP_FIXED);
      // offsets with a mark in their highest bits are negative to C
      const address = mmap(at, nbytes, PROT_READ_WRITE, flags, fd, BigInt.asIntN(64, offset));
      return address === MAP_FAILED ? undefined : address;
    },
    munmap: (address, nbytes) => void munmap(address, nbytes),
    alloc(nbytes) {
      const address = koffi.alloc("uint8_t", nbytes);
      return { address, bytes: view(address, nbytes) };
    },
    free: ({ address }) => koffi.free(address),
    view,
    barrier: () => void Atomics.store(order, 0, 1),
    read(path) {
      try {
        return readFileSync(path, "utf8");
      } catch {
        return undefined;
      }
    },
    list(path) {
      try {
        return readdirSync(path);
      } catch {
        return [];
      }
    },
  };
}
