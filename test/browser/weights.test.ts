// Weights in the page's own file system: downloaded once, read again on the next visit and offline, replaced
// when the server has another version, downloaded again when what is kept is damaged.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { nn, Tensor } from "gradloom";
import { afterAll, expect, test } from "vitest";
import { bundlePage, executablePath, NO_CHROMIUM, useChromium } from "./harness.ts";
import type { WeightsPage } from "./weightspage.ts";

declare const gradloomWeights: WeightsPage; // exists inside the page only

const openPage = useChromium();
const asked: string[] = [];
let values = [1.5, 2];
let isLengthSaid = true;
const server = createServer(async (request, response) => {
  asked.push(request.method ?? "");
  response.setHeader("ETag", `"${values}"`);
  response.setHeader("Access-Control-Allow-Origin", "*");
  response.setHeader("Access-Control-Expose-Headers", "ETag");
  response.setHeader("Cross-Origin-Resource-Policy", "cross-origin");
  if (request.method === "HEAD") return response.end();
  const body = await nn.safeSave({ w: new Tensor(values) });
  if (isLengthSaid) return response.end(body);
  response.write(body); // in chunks
  response.end();
});
await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/w.safetensors`;
afterAll(() => {
  server.close();
  server.closeAllConnections();
});
/** The requests since the last look. */
const requests = (): string => asked.splice(0).join(" ");

test("a page downloads weights once", async ({ skip }) => {
  skip(executablePath === undefined, NO_CHROMIUM);
  const page = await openPage((await bundlePage("test/browser/weightspage.ts")).files);
  const load = (revalidate = true) =>
    page.evaluate(([a, r]) => gradloomWeights.weights(a, { revalidate: r }), [address, revalidate] as const);
  expect([await load(), requests()]).toEqual([[1.5, 2], "GET"]);
  await page.reload({ waitUntil: "load" });
  expect([await load(), requests()]).toEqual([[1.5, 2], "HEAD"]);
  expect([await load(false), requests()]).toEqual([[1.5, 2], ""]);
  values = [3, 4, 5];
  expect([await load(false), requests()]).toEqual([[1.5, 2], ""]);
  expect([await load(), requests()]).toEqual([[3, 4, 5], "HEAD GET"]);
  await page.context().setOffline(true);
  expect(await load()).toEqual([3, 4, 5]);
  await page.context().setOffline(false);
  await page.evaluate(() => gradloomWeights.damage());
  expect([await load(false), requests()]).toEqual([[3, 4, 5], "GET"]);
  await page.evaluate((a) => gradloomWeights.forget(a), address);
  expect([await load(false), requests()]).toEqual([[3, 4, 5], "GET"]);
  await page.evaluate(() => gradloomWeights.forget());
  expect([await load(false), requests()]).toEqual([[3, 4, 5], "GET"]);
});

test("a download says how far it is, and what is kept says nothing", async ({ skip }) => {
  skip(executablePath === undefined, NO_CHROMIUM);
  const page = await openPage((await bundlePage("test/browser/weightspage.ts")).files);
  const told = () => page.evaluate((a) => gradloomWeights.progress(a), address);
  const size = (await nn.safeSave({ w: new Tensor(values) })).byteLength;
  expect((await told()).at(-1)).toEqual([size, size]);
  expect(await told()).toEqual([]);
  isLengthSaid = false;
  await page.evaluate(() => gradloomWeights.forget());
  expect((await told()).at(-1)).toEqual([size, undefined]);
  isLengthSaid = true;
  // without a file system, too
  const inNode: number[] = [];
  await nn.fetchCached(address, { onProgress: (received) => void inNode.push(received) });
  expect(inNode.at(-1)).toBe(size);
  requests();
});

test("without such a file system it is fetched, and a Blob is read in parts", async () => {
  const before = values;
  values = [7];
  const blob = await nn.fetchCached(address);
  expect(await (await nn.safeLoad(blob)).w?.tolist()).toEqual([7]);
  expect((await nn.safeHeader(blob)).tensors).toBeDefined();
  await expect(nn.safeLoad(blob.slice(0, 20))).rejects.toThrow(/Blob/);
  await expect(nn.fetchCached("http://127.0.0.1:1/x")).rejects.toThrow(
    /cannot fetch http:\/\/127\.0\.0\.1:1\/x/,
  );
  values = before;
});
