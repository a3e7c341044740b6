// An HTTP server for a model, loaded with require. Requests that come while a batch is computed are put into
// the next one. A hundred clients ask at the same time; each gets the answer to its own question.

const { createServer } = require("node:http");
const { nn, Tensor, TinyJit } = require("gradloom");

const [CLIENTS, REQUESTS, BATCH, INPUTS] = [100, Number(process.env.STEPS ?? 10), 32, 16];

Tensor.manualSeed(0);
const model = new nn.Sequential(new nn.Linear(INPUTS, 256), new nn.ReLU(), new nn.Linear(256, 4));
model.eval();
/** One captured function for a batch of fixed size. */
const predict = new TinyJit((x) => Tensor.noGrad(() => model.forward(x).softmax(-1)));

const waiting = [];
let isBusy = false;
let batches = 0;
async function work() {
  if (isBusy) return;
  isBusy = true;
  while (waiting.length > 0) {
    const jobs = waiting.splice(0, BATCH);
    const rows = new Float32Array(BATCH * INPUTS); // rows that nobody asked for are zeros
    for (const [i, job] of jobs.entries()) rows.set(job.x, i * INPUTS);
    try {
      const answers = await (await predict(new Tensor(rows).reshape(BATCH, INPUTS))).tolist();
      for (const [i, job] of jobs.entries()) job.resolve(answers[i]);
    } catch (error) {
      for (const job of jobs) job.reject(error);
    }
    batches++;
  }
  isBusy = false;
}
const ask = (x) =>
  new Promise((resolve, reject) => {
    waiting.push({ x, resolve, reject });
    setImmediate(work); // after all requests that are here
  });

const server = createServer(async (request, response) => {
  try {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { x } = JSON.parse(Buffer.concat(chunks).toString());
    if (!Array.isArray(x) || x.length !== INPUTS) throw new Error(`expected x with ${INPUTS} numbers`);
    response.end(JSON.stringify(await ask(x)));
  } catch (error) {
    response.writeHead(400).end(error.message);
  }
});

async function main() {
  await predict(Tensor.zeros(BATCH, INPUTS)); // compile before the first request
  await predict(Tensor.zeros(BATCH, INPUTS));
  await new Promise((resolve) => server.listen(0, resolve));
  const url = `http://localhost:${server.address().port}`;
  const post = (body) => fetch(url, { method: "POST", body: JSON.stringify(body) });

  const questions = Tensor.randn(CLIENTS, REQUESTS, INPUTS);
  const expected = await Tensor.noGrad(() => model.forward(questions).softmax(-1)).tolist();
  const asked = await questions.tolist();
  const isRight = (answer, wanted) => answer.every((p, i) => Math.abs(p - wanted[i]) < 1e-5);
  let right = 0;
  const client = async (c) => {
    for (let i = 0; i < REQUESTS; i++) {
      const answer = await (await post({ x: asked[c][i] })).json();
      if (isRight(answer, expected[c][i])) right++;
    }
  };
  const start = performance.now();
  await Promise.all(asked.map((_, c) => client(c)));
  const rate = Math.round((CLIENTS * REQUESTS * 1000) / (performance.now() - start));
  console.log(`${CLIENTS} clients, ${right} of ${CLIENTS * REQUESTS} answers right`);
  console.log(
    `${((CLIENTS * REQUESTS) / batches).toFixed(1)} requests to a batch, ${rate} requests a second`,
  );
  const refused = await post({ x: [1, 2] });
  console.log(`a wrong request: ${refused.status}, ${await refused.text()}`);
  server.close();
}
main();
