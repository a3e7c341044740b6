// What may be in the package and what must be. In: the files of the tarball (path and size, and the text of
// those that are text), package.json, and the folder that it was built in. Out: complaints; none
// means that it may be published.

/** Everything that ships. A file that no pattern allows is a mistake, however harmless. */
const ALLOWED = [
  /^(?:package\.json|LICENSE|(?:README|CHANGELOG|ARCHITECTURE|CONTRIBUTING)\.md|bench\/RESULTS\.md)$/,
  /^docs\/(?:[\w-]+\/)*[\w-]+\.md$/,
  /^docs\/tour\.ts$/,
  /^examples\/(?:[\w-]+\/)*[\w-]+\.(?:ts|c?js|html|css)$/,
  /^examples\/models\/package\.json$/,
  /^dist\/(?:node|browser|bundle)\/(?:[\w-]+\/)*[\w.-]+\.c?js(?:\.map)?$/,
  /^dist\/types\/(?:[\w-]+\/)*[\w-]+\.d\.ts$/,
];

const REQUIRED = ["package.json", "README.md", "LICENSE", "CHANGELOG.md", "dist/types/index.d.ts"];

/** Bytes of the packed tarball. More than half are source maps; those of Node hold the source. */
export const BUDGET = 4_200_000;

const SECRETS = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----/, "a private key"],
  [/\bnpm_[A-Za-z0-9]{36}\b/, "a token of npm"],
  [/\bgh[pousr]_[A-Za-z0-9]{36}\b/, "a token of GitHub"],
  [/\bAKIA[0-9A-Z]{16}\b/, "a key of AWS"],
];

/** The paths that an `exports` entry can resolve to. */
function targets(entry) {
  if (typeof entry === "string") return [entry];
  return Object.values(entry ?? {}).flatMap(targets);
}

/** Complaints about fields of the packed package.json that name what does not ship. */
export function checkManifest(packed, files) {
  const paths = files.map((file) => `./${file.path}`);
  const imported = targets(packed.imports).filter((path) => !paths.includes(path));
  const hooks = ["prepare", "preinstall", "install", "postinstall"].filter((name) => packed.scripts?.[name]);
  const folderOf = (pattern) => pattern.split("*")[0];
  const effects = [packed.sideEffects ?? []].flat().filter((pattern) => typeof pattern === "string");
  const unused = effects.filter((pattern) => !paths.some((path) => path.startsWith(folderOf(pattern))));
  return [
    ...imported.map((path) => `package.json: imports names ${path}, which does not ship`),
    ...hooks.map((name) => `package.json: the script ${name} would run where the package is installed`),
    ...unused.map((pattern) => `package.json: sideEffects names ${pattern}, which does not ship`),
  ];
}

/** Complaints about the list of files; `size` is that of the tarball. */
export function checkFiles(files, manifest, size) {
  const paths = new Set(files.map((file) => file.path));
  const stray = [...paths].filter((path) => !ALLOWED.some((pattern) => pattern.test(path)));
  const exported = targets(manifest.exports).map((path) => path.replace(/^\.\//, ""));
  const wanted = [...new Set([...REQUIRED, ...exported])];
  // a pattern such as ./nn/* stands for at least one file
  const isThere = (path) =>
    path.includes("*") ? [...paths].some((p) => p.startsWith(path.split("*")[0])) : paths.has(path);
  return [
    ...stray.map((path) => `${path} must not ship: no pattern of scripts/release/contents.mjs allows it`),
    ...wanted.filter((path) => !isThere(path)).map((path) => `${path} is missing`),
    ...(size > BUDGET ? [`the tarball has ${size} bytes, more than the budget of ${BUDGET}`] : []),
  ];
}

/** Complaints about what a text file says: secrets, and paths of the machine that built it. */
export function checkText(path, text, folder) {
  const secrets = SECRETS.filter(([pattern]) => pattern.test(text)).map(([, what]) => what);
  const machine = text.includes(folder) || text.includes(folder.replaceAll("\\", "/"));
  return [
    ...secrets.map((what) => `${path} holds ${what}`),
    ...(machine ? [`${path} names a folder of the machine that built it`] : []),
  ];
}
