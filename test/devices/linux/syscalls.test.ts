// libc through koffi: files, memory and errors as the driver asks for them. Only where NV could run.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type LinuxKernel, openKernel } from "../../../src/devices/linux/syscalls.ts";

const why = process.platform === "linux" && process.arch === "x64" ? "" : "NV is for Linux on x64";
let kernel: LinuxKernel;
let folder = "";
beforeAll(async () => {
  if (why === "") kernel = await openKernel("NV");
  folder = mkdtempSync(join(tmpdir(), "gradloom-test-"));
});
beforeEach(({ skip }) => skip(why !== "", why));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("errors come as numbers below 0", () => {
  expect(kernel.open(join(folder, "none"))).toBe(-2);
  expect(kernel.open("/dev/null/none")).toBe(-20);
  const { address } = kernel.alloc(16);
  const fd = kernel.open("/dev/null");
  expect(fd).toBeGreaterThan(2);
  expect(kernel.ioctl(fd, 0xc0104600, address)).toBe(-25);
  kernel.close(fd);
  expect(kernel.ioctl(fd, 0xc0104600, address)).toBe(-9);
});

test("memory of its own is zeroed, stays where it is, and is the same through every view", () => {
  const memory = kernel.alloc(4096);
  expect(memory.bytes.every((x) => x === 0)).toBe(true);
  memory.bytes.set([1, 2, 3], 100);
  kernel.barrier();
  expect([...kernel.view(memory.address + 100n, 3)]).toEqual([1, 2, 3]);
  kernel.free(memory);
});

test.each([4096, 5 * 2 ** 20])("%i bytes are mapped, zeroed, and given back", (nbytes) => {
  const address = kernel.mmap(nbytes, -1) as bigint;
  const bytes = kernel.view(address, nbytes);
  expect([address % 4096n, bytes.length, bytes[0], bytes[nbytes - 1]]).toEqual([0n, nbytes, 0, 0]);
  bytes.fill(7);
  expect(kernel.view(address, nbytes)[nbytes - 1]).toBe(7);
  // a child gets none of it
  const flags = readFileSync("/proc/self/smaps", "utf8")
    .split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)
    .find((mapping) => mapping.startsWith(address.toString(16)));
  expect(flags).toMatch(/VmFlags:.* dc( |$)/m);
  kernel.munmap(address, nbytes);
  expect(readFileSync("/proc/self/maps", "utf8")).not.toContain(`\n${address.toString(16)}-`);
});

test("a file is mapped so that what is written reaches it", () => {
  const path = join(folder, "file");
  writeFileSync(path, new Uint8Array(4096).fill(5));
  const fd = kernel.open(path);
  const address = kernel.mmap(4096, fd) as bigint;
  kernel.close(fd);
  const bytes = kernel.view(address, 4096);
  expect(bytes[9]).toBe(5);
  bytes[9] = 6;
  expect(readFileSync(path)[9]).toBe(6);
  kernel.munmap(address, 4096);
});

test("what cannot be mapped is undefined", () => {
  expect(kernel.mmap(2 ** 47, -1)).toBe(undefined);
});
