import { defaultDevice, init, numpy as np } from "@jax-js/jax";

await init("wasm");
defaultDevice("wasm");
console.log(await np.dot(np.array([1, 2]), np.array([3, 4])).jsAsync());
