// package.json as it ships. In the repository it also says how to build, test and lint; most `imports` name
// files of src/, which stay behind, as do the scripts and the tools that they run. In: our package.json. Out:
// that of the tarball.

const STAYS = ["scripts", "devDependencies", "overrides"];

const staysBehind = (target) =>
  typeof target === "string" ? target.startsWith("./src/") : Object.values(target).some(staysBehind);

export function packedManifest(manifest) {
  const kept = Object.entries(manifest).filter(([field]) => !STAYS.includes(field));
  const { sideEffects, imports = {}, ...rest } = Object.fromEntries(kept);
  const effects = Array.isArray(sideEffects) ? sideEffects.filter((p) => !staysBehind(p)) : sideEffects;
  const shipped = Object.fromEntries(Object.entries(imports).filter(([, target]) => !staysBehind(target)));
  return {
    ...rest,
    ...(effects === undefined ? {} : { sideEffects: effects }),
    ...(Object.keys(shipped).length === 0 ? {} : { imports: shipped }),
  };
}
