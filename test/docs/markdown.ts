// What the tests of README and of the guide share: the fenced blocks and links of a page, and running a
// program that imports gradloom in a process of its own.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";

export const root = join(import.meta.dirname, "..", "..");

export interface Block {
  readonly language: string;
  readonly text: string;
  /** of its first line */
  readonly line: number;
}

export interface Page {
  /** from the root of the repository */
  readonly path: string;
  readonly text: string;
  readonly blocks: readonly Block[];
  /** what follows `](`, without addresses of other sites */
  readonly links: readonly string[];
}

export function readPage(path: string): Page {
  const text = readFileSync(join(root, path), "utf8").replaceAll("\r\n", "\n");
  const blocks = [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map((m) => ({
    language: m[1] as string,
    text: m[2] as string,
    line: text.slice(0, m.index).split("\n").length + 1,
  }));
  const links = [...text.matchAll(/\]\(([^)]+)\)/g)].map((m) => m[1] as string);
  return { path, text, blocks, links: links.filter((link) => !/^https?:/.test(link)) };
}

/** The anchors that a page offers: its headings as a forge spells them. */
export const anchorsOf = (text: string): string[] =>
  [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, "")
      .trim()
      .replaceAll(" ", "-"),
  );

const { DEV: _, DEBUG: __, SPEC: ___, ...environment } = process.env;

/** What a program prints that imports gradloom, which is src/index.ts here. */
export function output(code: string, settings: Record<string, string> = {}): string {
  const dir = mkdtempSync(join(tmpdir(), "gradloom-docs-"));
  try {
    const file = join(dir, "program.mts");
    writeFileSync(file, code);
    const env = { ...environment, ...settings };
    const run = spawnSync(process.execPath, ["--import", "tsx", file], { cwd: root, encoding: "utf8", env });
    expect(run.stderr).toBe("");
    expect(run.status).toBe(0);
    return run.stdout;
  } finally {
    rmSync(dir, { recursive: true });
  }
}
