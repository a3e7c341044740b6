// The cases of ONNX's own backend tests: each is a folder with `model.onnx` and `test_data_set_N/input_K.pb`,
// `output_K.pb`. In: a folder, or a .tgz, which is read as it is. Out: the files of each case.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

export interface DataSet {
  readonly inputs: readonly Uint8Array[];
  readonly outputs: readonly Uint8Array[];
}
export interface Case {
  readonly name: string;
  readonly model: Uint8Array;
  readonly sets: readonly DataSet[];
}

/** Path and contents of all files of a tar archive. */
function* untar(archive: Uint8Array): Generator<readonly [string, Uint8Array]> {
  const text = (from: number, n: number): string =>
    Buffer.from(archive.subarray(from, from + n))
      .toString()
      .replace(/\0.*$/s, "");
  let long: string | undefined;
  for (let at = 0; at + 512 <= archive.length; ) {
    const name = text(at, 100);
    if (name === "") return;
    const size = Number.parseInt(text(at + 124, 12), 8);
    const kind = text(at + 156, 1);
    const body = archive.subarray(at + 512, at + 512 + size);
    if (kind === "L") long = text(at + 512, size);
    else {
      if (kind === "0" || kind === "") yield [long ?? name, body];
      long = undefined;
    }
    at += 512 + Math.ceil(size / 512) * 512;
  }
}
function* filesOf(path: string): Generator<readonly [string, Uint8Array]> {
  if (!statSync(path).isDirectory()) {
    yield* untar(gunzipSync(readFileSync(path)));
    return;
  }
  for (const file of readdirSync(path, { recursive: true, encoding: "utf8" })) {
    if (/\.(?:onnx|pb)$/.test(file)) yield [file, readFileSync(join(path, file))];
  }
}

/** `wanted` is asked for the name of each case. */
export function readCases(path: string, wanted: (name: string) => boolean = () => true): Case[] {
  const models = new Map<string, Uint8Array>();
  const data = new Map<string, Map<string, Uint8Array>>();
  for (const [file, bytes] of filesOf(path)) {
    const parts = file.replaceAll("\\", "/").split("/");
    const leaf = parts.at(-1) as string;
    const isModel = leaf === "model.onnx";
    const name = parts.at(isModel ? -2 : -3) ?? "";
    if (!wanted(name)) continue;
    if (isModel) models.set(name, bytes);
    else {
      const files = data.get(name) ?? new Map();
      data.set(name, files.set(`${parts.at(-2)}/${leaf}`, bytes));
    }
  }
  const names = [...models.keys()].sort();
  return names.map((name) => ({ name, model: models.get(name) as Uint8Array, sets: setsOf(data.get(name)) }));
}

function setsOf(files: ReadonlyMap<string, Uint8Array> = new Map()): DataSet[] {
  const folders = [...new Set([...files.keys()].map((f) => f.split("/")[0] as string))].sort();
  const list = (folder: string, kind: string): Uint8Array[] => {
    const out: Uint8Array[] = [];
    for (let i = 0; ; i++) {
      const bytes = files.get(`${folder}/${kind}_${i}.pb`);
      if (bytes === undefined) return out;
      out.push(bytes);
    }
  };
  return folders.map((folder) => ({ inputs: list(folder, "input"), outputs: list(folder, "output") }));
}
