// The closing lines of a test run. It takes vitest's results and adds to the default report every skipped
// test with its reason, and as the very last line the counts in the plain form
// that continuous integration reads.

import { DefaultReporter, type TestModule } from "vitest/node";

export default class ClosingReporter extends DefaultReporter {
  override onTestRunEnd(...args: Parameters<DefaultReporter["onTestRunEnd"]>): void {
    super.onTestRunEnd(...args);
    const [modules, unhandled] = args;
    const { counts, skips } = closing(modules);
    counts.failed += unhandled.length;
    for (const line of skips) console.log(line);
    console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  }
}

export function closing(modules: readonly TestModule[]) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const skips: string[] = [];
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const result = test.result();
      // A test that never got to run (its file broke, the run was cut short) is neither a success nor a skip.
      counts[result.state === "pending" ? "failed" : result.state]++;
      if (result.state !== "skipped") continue;
      const reason = result.note ?? `no reason given (${test.options.mode})`;
      skips.push(`skipped: ${module.relativeModuleId} > ${test.fullName}: ${reason}`);
    }
    // A file that does not load, or a hook that throws, fails without any failed test.
    counts.failed += module.errors().length;
    for (const suite of module.children.allSuites()) counts.failed += suite.errors().length;
  }
  return { counts, skips };
}
