// The two hosts keep one contract: the same names with the same types, so that `#host` can be either.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FileError, withEnv } from "gradloom";
import { describe, expect, test } from "vitest";
import * as chosen from "#host/files";
import * as browser from "../../src/host/browser.ts";
import type { Files, Host, Peers } from "../../src/host/contract.ts";
import * as pageFiles from "../../src/host/files/browser.ts";
import * as nodeFiles from "../../src/host/files/node.ts";
import * as node from "../../src/host/node.ts";
import * as pagePeers from "../../src/host/peers/browser.ts";
import * as nodePeers from "../../src/host/peers/node.ts";

const HOSTS: Readonly<Record<string, Host>> = { node, browser };

test("both export the names of the contract and no others", () => {
  expect(Object.keys(HOSTS.browser as Host).sort()).toEqual(Object.keys(HOSTS.node as Host).sort());
});
test("and so do their files and peers", () => {
  const files: readonly Files[] = [nodeFiles, pageFiles];
  const peers: readonly Peers[] = [nodePeers, pagePeers];
  for (const [node, page] of [files, peers]) {
    expect(Object.keys(page as object).sort()).toEqual(Object.keys(node as object).sort());
  }
});
test("#host/files is Node's here", () => {
  expect(chosen.readBytes).toBe(nodeFiles.readBytes);
});

describe("Node", () => {
  const inFolder = async (use: (folder: string) => unknown): Promise<void> => {
    const folder = mkdtempSync(join(tmpdir(), "gradloom-host-"));
    try {
      await use(folder);
    } finally {
      rmSync(folder, { recursive: true });
    }
  };

  test("a file is written whole, and read in part", () =>
    inFolder(async (folder) => {
      const path = join(folder, "x");
      await nodeFiles.writeBytes(
        path,
        (async function* () {
          yield Uint8Array.of(1, 2);
          yield Uint8Array.of(3, 4, 5);
        })(),
      );
      expect(await nodeFiles.fileSize(path)).toBe(5);
      expect([...(await nodeFiles.readBytes(path))]).toEqual([1, 2, 3, 4, 5]);
      expect([...(await nodeFiles.readBytes(path, 1, 3))]).toEqual([2, 3]);
      expect([...(await nodeFiles.readBytes(path, 3, 9))]).toEqual([4, 5]);
      nodeFiles.writeText(path, "text");
      expect(readFileSync(path, "utf8")).toBe("text");
    }));
  test("a writer that fails leaves the old file", () =>
    inFolder(async (folder) => {
      const path = join(folder, "x");
      nodeFiles.writeText(path, "old");
      // biome-ignore lint/correctness/useYield: it fails before its first part
      const failing = (async function* (): AsyncGenerator<Uint8Array> {
        throw new Error("no more");
      })();
      await expect(nodeFiles.writeBytes(path, failing)).rejects.toThrow("no more");
      expect(readFileSync(path, "utf8")).toBe("old");
    }));
  test("a file that is not there is a FileError that names it", async () => {
    await expect(nodeFiles.readBytes("/no/such/file")).rejects.toThrow(FileError);
    await expect(nodeFiles.fileSize("/no/such/file")).rejects.toThrow(/cannot read \/no\/such\/file/);
  });
  test("what is remembered is recalled, in a folder of its own", () =>
    inFolder((folder) =>
      withEnv({ CACHE: folder }, () => {
        expect(node.recall("a key")).toBeUndefined();
        node.remember("a key", "a text");
        expect(node.recall("a key")).toBe("a text");
        expect(node.recall("another key")).toBeUndefined();
      }),
    ));
  test("a scope is seen after an await, and by nobody outside", async () => {
    const asyncScope = node.makeAsyncScope();
    const inside = asyncScope.run("mine", async () => {
      await Promise.resolve();
      return asyncScope.get();
    });
    expect(asyncScope.get()).toBeUndefined();
    expect(await inside).toBe("mine");
    asyncScope.rest();
  });
});

describe("a page", () => {
  test("writes through the function that it put there", async () => {
    const page = globalThis as { GRADLOOM_WRITE?: (path: string, data: string | Uint8Array) => void };
    const parts = async function* () {
      yield Uint8Array.of(1, 2);
      yield Uint8Array.of(3);
    };
    await expect(pageFiles.writeBytes("x.bin", parts())).rejects.toThrow(/a page has no files/);
    const written: unknown[] = [];
    page.GRADLOOM_WRITE = (path, data) => void written.push([path, data]);
    await pageFiles.writeBytes("x.bin", parts());
    pageFiles.writeText("y.txt", "text");
    delete page.GRADLOOM_WRITE;
    expect(written).toEqual([
      ["x.bin", Uint8Array.of(1, 2, 3)],
      ["y.txt", "text"],
    ]);
  });
  test("without IndexedDB nothing is remembered, and nothing fails", async () => {
    await browser.remember("a key", "a text");
    expect(await browser.recall("a key")).toBeUndefined();
  });
});
