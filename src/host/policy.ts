// Says which directive of a page's Content-Security-Policy keeps workers from starting.

let isWatched = false;
/** No error says why a worker did not start. An event does if the reason is the policy of the page. */
export function watchPolicy(): void {
  if (isWatched) return;
  isWatched = true;
  globalThis.addEventListener?.("securitypolicyviolation", (event) => {
    const { effectiveDirective, blockedURI } = event as SecurityPolicyViolationEvent;
    if (effectiveDirective !== "worker-src" || !blockedURI.startsWith("blob")) return;
    console.warn(
      "gradloom: the Content-Security-Policy of this page forbids workers made of blobs, so kernels run on " +
        "the thread of the page; add `worker-src blob:` to it",
    );
  });
}
