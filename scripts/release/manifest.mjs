// package.json as it ships. In the repository it also says how to build, test and lint; `imports` name files
// of src/, which stay behind, as do the scripts and the tools that they run. In: our package.json. Out: that
// of the tarball.

const STAYS = ["imports", "scripts", "devDependencies", "overrides"];

export function packedManifest(manifest) {
  const kept = Object.entries(manifest).filter(([field]) => !STAYS.includes(field));
  const { sideEffects, ...rest } = Object.fromEntries(kept);
  const shipped = Array.isArray(sideEffects)
    ? sideEffects.filter((p) => !p.startsWith("./src/"))
    : sideEffects;
  return shipped === undefined ? rest : { ...rest, sideEffects: shipped };
}
