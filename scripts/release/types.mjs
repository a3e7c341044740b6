// Whether tools find the code and the types of the packed package: publint for its fields,
// are-the-types-wrong for how TypeScript resolves each entry. In: the path of the tarball. Out: complaints.

import { readFileSync } from "node:fs";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

/**
 * The package is ESM for Node 20 and newer and for bundlers: these two ways to resolve it are not supported.
 */
const IGNORED = new Set(["node10", "node16-cjs"]);

export async function checkTypes(path, manifest) {
  const data = readFileSync(path);
  const tarball = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
  const { messages } = await publint({ pack: { tarball }, level: "warning", strict: true });
  const fields = messages.map((m) => `publint: ${formatMessage(m, manifest, { color: false })}`);
  const result = await checkPackage(createPackageFromTarballData(new Uint8Array(tarball)));
  if (!result.types) return [...fields, "are-the-types-wrong: the package has no types"];
  const wrong = result.problems
    .filter((p) => !IGNORED.has(p.resolutionKind))
    .map(
      (p) => `are-the-types-wrong: ${p.kind} ${p.entrypoint ?? p.fileName ?? ""} ${p.resolutionKind ?? ""}`,
    );
  return [...fields, ...wrong];
}
