// The closing lines of a test run. It takes vitest's results and adds to the default report the reasons of
// skipped tests (one line a reason), then every failure once more, and as the very last line the counts in
// the plain form that continuous integration reads. Whoever sees only the end of the output sees what failed.

import { DefaultReporter, type TestModule } from "vitest/node";

export default class ClosingReporter extends DefaultReporter {
  override onTestRunEnd(...args: Parameters<DefaultReporter["onTestRunEnd"]>): void {
    super.onTestRunEnd(...args);
    const [modules, unhandled] = args;
    const { counts, skips, failures } = closing(modules);
    counts.failed += unhandled.length;
    for (const [reason, tests] of skips) {
      console.log(`skipped: ${tests.length} (${tests[0]}${tests.length > 1 ? ", ..." : ""}): ${reason}`);
    }
    for (const error of unhandled) failures.push(`outside a test: ${firstLines(error)}`);
    for (const failure of failures) console.log(`failed: ${failure}`);
    console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  }
}

export function closing(modules: readonly TestModule[]) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const skips = new Map<string, string[]>(); // by reason
  const failures: string[] = [];
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const result = test.result();
      // A test that never got to run (its file broke, the run was cut short) is neither a success nor a skip.
      const state = result.state === "pending" ? "failed" : result.state;
      counts[state]++;
      const name = `${module.relativeModuleId} > ${test.fullName}`;
      if (state === "failed") failures.push(`${name}: ${firstLines(result.errors?.[0])}`);
      if (result.state !== "skipped") continue;
      const reason = result.note ?? `no reason given (${test.options.mode})`;
      skips.set(reason, [...(skips.get(reason) ?? []), name]);
    }
    // A file that does not load, or a hook that throws, fails without any failed test.
    for (const place of [module, ...module.children.allSuites()]) {
      for (const error of place.errors()) {
        counts.failed++;
        failures.push(`${module.relativeModuleId}: ${firstLines(error)}`);
      }
    }
  }
  return { counts, skips, failures };
}

// The message of an error, cut to what fits a report.
function firstLines(error: { message?: string } | undefined): string {
  return (error?.message ?? "it did not run").split("\n").slice(0, 8).join("\n  ").slice(0, 1000);
}
