// JS under another name, which gets the kernels of another target: with a GPU's renderer it executes, item by
// item, what the GPU would have been given, and finds races. The text that the renderer
// makes is made too, and thrown away.

import { Device } from "gradloom";
import type { Renderer } from "../../src/codegen/target.ts";
import { JSRenderer, open } from "../../src/devices/js.ts";

/** From now on there is a device of this name; gives the name. */
export function registerOracle(name: string, renderer: Renderer): string {
  const device = {
    ...open(name),
    renderer: {
      ...renderer,
      render: (kernel, uops) => {
        renderer.render(kernel, uops);
        return JSRenderer.render(kernel, uops);
      },
    } satisfies Renderer,
  };
  Device.register({ [name]: { storage: "memory", load: () => ({ open: () => device }) } });
  return name;
}
