// A page that cannot fetch what it loads late: what a kernel needs is asked for again, with an error that
// says so meanwhile; what would only make it fast is gone without.

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { bundlePage, executablePath, NO_CHROMIUM, useChromium } from "./harness.ts";
import type { OfflinePage } from "./offlinepage.ts";

declare const gradloomOffline: OfflinePage; // exists inside the page only

const openPage = useChromium();
const text = (page: Page, what: keyof OfflinePage, n: number): Promise<string> =>
  page.evaluate(
    ([name, size]) =>
      gradloomOffline[name](size).then(
        (x) => `${x}`,
        (e: Error) => `${e.name}: ${e.message}`,
      ),
    [what, n] as const,
  );

test("the compiler is fetched again, and kernels are right without what makes them fast", async ({
  skip,
}) => {
  skip(executablePath === undefined, NO_CHROMIUM);
  const { files } = await bundlePage("test/browser/offlinepage.ts", { minify: true });
  const page = await openPage(files);
  const block = (part: RegExp) => page.route(part, (route) => route.abort());
  const tuning = /\/(?:tuning|node|simd)-[^/]*\.js$/;
  await block(/\/compiler-[^/]*\.js$/);
  await block(tuning);
  expect(await text(page, "sum", 1000)).toMatch(
    /^DeviceError: a page loads the compiler .*Failed to fetch.*; call again$/,
  );
  await page.unroute(/\/compiler-[^/]*\.js$/);
  expect(await text(page, "sum", 1000)).toBe("1498500");
  expect(await text(page, "product", 100)).toBe("100");
  await page.unroute(tuning);
  expect(await text(page, "product", 101)).toBe("101");
});
