// The models in any package with onnxruntime's sessions: ort.mjs and ortweb.mjs provide them.

import { isThere, pathOf, WORKS } from "./works.ts";

/** `open` makes a session of a path, `Tensor` is the class of what it takes. */
export const sessions = (open, Tensor) =>
  Object.fromEntries(
    Object.entries(WORKS)
      .filter(([, work]) => isThere(work))
      .map(([name, work]) => [
        name,
        async () => {
          const session = await open(pathOf(work));
          const feeds = Object.fromEntries(
            Object.entries(work.inputs()).map(([k, x]) => [k, new Tensor(x.type, x.data, x.shape)]),
          );
          return {
            async run() {
              const outputs = await session.run(feeds);
              for (const [input, output] of Object.entries(work.state ?? {})) feeds[input] = outputs[output];
              return Object.values(outputs).map((x) => x.data);
            },
            close: () => void session.release(),
          };
        },
      ]),
  );
