// The Objective-C runtime through koffi, against one in C that has its entry points: objc_msgSend there jumps
// to what the selector names, as macOS's does, so each message meets a C function of its own signature.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, type TestContext, test } from "vitest";
import { type ObjC, openRuntime } from "../../../src/devices/metal/objc.ts";
import { openKoffi } from "../../../src/host/koffi.ts";

/** A selector is the address of its function. */
const RUNTIME = `
#include <stdint.h>
#include <stdio.h>
#include <string.h>
typedef uint64_t id;
typedef struct { uint64_t width, height, depth; } Size;
typedef struct { uint64_t location, length; } Range;
static char said[400];
static int pools = 0;
#define SAY(...) snprintf(said, sizeof(said), __VA_ARGS__)
#if defined(__x86_64__)
__asm__(".globl objc_msgSend\\nobjc_msgSend: jmp *%rsi\\n.globl objc_msgSend_stret\\nobjc_msgSend_stret: jmp *%rdx\\n");
#else
__asm__(".globl objc_msgSend\\nobjc_msgSend: br x1\\n");
#endif
static id retain(id self, id sel) { SAY("retain"); return self + 1; }
static id string(id self, id sel, const char* text) { SAY("string %s", text); return 0x8000000000000010; }
static const char* text(id self, id sel) { return said; }
static double uptime(id self, id sel) { return 12.5; }
static _Bool supports(id self, id sel, uint64_t family) { SAY("family %lu", (long)family); return family == 1007; }
static Size largest(id self, id sel) { return (Size){1024, 512, 64 + self}; }
static void dispatch(id self, id sel, Size a, Size b) {
  SAY("%ld: %ld %ld %ld, %ld %ld %ld", (long)self, (long)a.width, (long)a.height, (long)a.depth, (long)b.width,
      (long)b.height, (long)b.depth);
}
static void execute(id self, id sel, id buffer, Range r) { SAY("%lx %ld %ld", (long)buffer, (long)r.location, (long)r.length); }
static id library(id self, id sel, id source, id options, id* error) { *error = 0x8000000000000020; return 0; }
static void bytes(id self, id sel, const int32_t* data, uint64_t length, uint64_t at) {
  SAY("%d %d, %ld at %ld", data[0], data[1], (long)length, (long)at);
}
static void copy(id self, id sel, id a, uint64_t b, id c, uint64_t d, uint64_t e) {
  SAY("%ld %ld %ld %ld %ld", (long)a, (long)b, (long)c, (long)d, (long)e);
}
static void fast(id self, id sel, _Bool on) { SAY("fast %d", on); }
static int32_t memory[4] = {1, 2, 3, 4};
static id contents(id self, id sel) { return (id)memory; }
static const struct { const char* name; void* method; } METHODS[] = {
  {"retain", retain}, {"stringWithUTF8String:", string}, {"UTF8String", text}, {"systemUptime", uptime},
  {"supportsFamily:", supports}, {"maxThreadsPerThreadgroup", largest},
  {"dispatchThreadgroups:threadsPerThreadgroup:", dispatch}, {"executeCommandsInBuffer:withRange:", execute},
  {"newLibraryWithSource:options:error:", library}, {"setBytes:length:atIndex:", bytes},
  {"copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", copy}, {"setFastMathEnabled:", fast},
  {"contents", contents},
};
id sel_registerName(const char* name) {
  for (unsigned i = 0; i < sizeof(METHODS) / sizeof(METHODS[0]); i++)
    if (strcmp(METHODS[i].name, name) == 0) return (id)METHODS[i].method;
  return 0;
}
id objc_getClass(const char* name) { return strcmp(name, "NSString") == 0 ? 0x8000000000000030 : 0; }
id objc_autoreleasePoolPush(void) { return ++pools; }
void objc_autoreleasePoolPop(id pool) { SAY("pool %ld of %d", (long)pool, pools--); }
id MTLCreateSystemDefaultDevice(void) { return 77; }
id MTLCopyAllDevices(void) { return 0; }
`;

const canBuild =
  process.platform === "linux" &&
  ["x64", "arm64"].includes(process.arch) &&
  spawnSync("gcc", ["--version"]).status === 0;
let folder = "";
let objc: ObjC | undefined;
beforeAll(async () => {
  if (!canBuild) return;
  folder = mkdtempSync(join(tmpdir(), "gradloom-objc-"));
  writeFileSync(join(folder, "runtime.c"), RUNTIME);
  const args = ["-w", "-O1", "-shared", "-fPIC", "runtime.c", "-o", "runtime.so"];
  const made = spawnSync("gcc", args, { cwd: folder, encoding: "utf8" });
  expect(made.stderr).toBe("");
  const path = join(folder, "runtime.so");
  objc = openRuntime(await openKoffi("METAL"), "METAL", { objc: path, metal: path, others: [] });
});
afterAll(() => {
  if (folder !== "") rmSync(folder, { recursive: true, force: true });
});
function opened(ctx: TestContext): ObjC {
  ctx.skip(objc === undefined, "gcc is not installed, or this is not Linux");
  return objc as ObjC;
}

test("objects, words, texts, doubles and truth values, there and back", (ctx) => {
  const o = opened(ctx);
  const big = 0x8000_0000_0000_0001n;
  expect([o.send(1n, "retain"), o.send(big, "retain")]).toEqual([2n, big + 1n]);
  expect(o.send(1n, "stringWithUTF8String:", "mätal")).toBe(0x8000_0000_0000_0010n);
  expect(o.send(1n, "UTF8String")).toBe("string mätal");
  expect(o.send(1n, "systemUptime")).toBe(12.5);
  expect([1007, 1009].map((f) => o.send(1n, "supportsFamily:", f))).toEqual([true, false]);
  o.send(1n, "setFastMathEnabled:", false);
  expect(o.send(1n, "UTF8String")).toBe("fast 0");
  o.send(1n, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", 5n, 6, 7n, 8, 9);
  expect(o.send(1n, "UTF8String")).toBe("5 6 7 8 9");
});
test("structs by value, large and small, as arguments and as answers", (ctx) => {
  const o = opened(ctx);
  const [a, b] = [
    { width: 1, height: 2, depth: 3 },
    { width: 4, height: 5, depth: 6 },
  ];
  o.send(9n, "dispatchThreadgroups:threadsPerThreadgroup:", a, b);
  expect(o.send(1n, "UTF8String")).toBe("9: 1 2 3, 4 5 6");
  o.send(9n, "executeCommandsInBuffer:withRange:", 0x8000_0000_0000_00ffn, { location: 3, length: 4 });
  expect(o.send(1n, "UTF8String")).toBe("80000000000000ff 3 4");
  const { width, height, depth } = o.send(2n, "maxThreadsPerThreadgroup");
  expect([width, height, depth]).toEqual([1024, 512, 66]);
});
test("arrays that a call reads and fills in; memory of the host", (ctx) => {
  const o = opened(ctx);
  o.send(1n, "setBytes:length:atIndex:", Int32Array.of(-5, 6), 8, 2);
  expect(o.send(1n, "UTF8String")).toBe("-5 6, 8 at 2");
  const error = new BigUint64Array(1);
  expect(o.send(1n, "newLibraryWithSource:options:error:", 1n, 2n, error)).toBe(0n);
  expect(error[0]).toBe(0x8000_0000_0000_0020n);
  const view = o.view(o.send(1n, "contents") + 4n, 8);
  expect([...new Int32Array(view.buffer, view.byteOffset, 2)]).toEqual([2, 3]);
});
test("classes, pools and devices", (ctx) => {
  const o = opened(ctx);
  expect([o.classOf("NSString"), o.classOf("Nothing")]).toEqual([0x8000_0000_0000_0030n, 0n]);
  expect([o.createSystemDefaultDevice(), o.copyAllDevices()]).toEqual([77n, 0n]);
  const attempt = () =>
    o.pool(() => {
      o.pool(() => 1);
      throw new Error("on the way");
    });
  expect(attempt).toThrow("on the way");
  expect(o.send(1n, "UTF8String")).toBe("pool 1 of 1");
});
test("no library: the error says what it needs", async () => {
  const koffi = await openKoffi("METAL");
  const paths = { objc: "/nowhere/libobjc.dylib", metal: "/nowhere/Metal", others: [] };
  expect(() => openRuntime(koffi, "METAL", paths)).toThrow(
    /METAL: cannot load Metal \(.*cannot open.*\); it needs macOS 13 or later. WEBGPU runs on the same GPU/,
  );
});
