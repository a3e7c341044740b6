import * as tf from "@tensorflow/tfjs-core";
import "@tensorflow/tfjs-backend-wasm";

await tf.setBackend("wasm");
console.log((await tf.dot(tf.tensor1d([1, 2]), tf.tensor1d([3, 4])).data())[0]);
