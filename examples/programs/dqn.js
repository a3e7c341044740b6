// Deep Q-learning: an agent in a corridor learns to walk to its right end. A replay buffer, a target network
// that follows slowly, gather for the actions that were taken, and the Huber loss.

import { nn, Tensor, TinyJit } from "gradloom";

const episodes = Number(process.env.STEPS ?? 25);
const [CELLS, BATCH, GAMMA, TAU] = [8, 32, 0.95, 0.05];

/** Numbers from 0 to below 1, the same in every run. */
let seed = 1;
const random = () => {
  seed = (seed * 16807) % 2147483647;
  return seed / 2147483647;
};

class Corridor {
  reset() {
    this.cell = 0;
    this.time = 0;
    return this.cell;
  }
  step(action) {
    this.cell = Math.max(0, this.cell + (action === 1 ? 1 : -1));
    this.time += 1;
    const goal = this.cell === CELLS - 1;
    return { next: this.cell, reward: goal ? 1 : -0.01, done: goal || this.time === 50 };
  }
}

Tensor.manualSeed(0);
const network = () => new nn.Sequential(new nn.Linear(CELLS, 32), new nn.ReLU(), new nn.Linear(32, 2));
const [policy, target] = [network(), network()];
await nn.loadStateDict(target, nn.getStateDict(policy));
const [parameters, followers] = [nn.getParameters(policy), nn.getParameters(target)];
const optimizer = new nn.optim.Adam(parameters, { lr: 5e-3 });
const seen = (cells) => cells.oneHot(CELLS).float();

const learn = new TinyJit(async (state, action, reward, next, done) => {
  const value = policy.forward(seen(state)).gather(1, action.unsqueeze(1)).squeeze(1);
  const best = Tensor.noGrad(() => target.forward(seen(next)).max(1));
  const goal = reward.add(best.mul(GAMMA).mul(done.logicalNot()));
  const loss = value.huberLoss(goal);
  optimizer.zeroGrad();
  loss.backward();
  nn.clipGradNorm(parameters, 10);
  await optimizer.step(loss);
  // the target follows: p = p + TAU (q - p)
  const moved = Tensor.noGrad(() => followers.map((p, i) => p.assign(p.lerp(parameters[i], TAU))));
  await Tensor.realize(...moved);
  return loss;
});
const choose = new TinyJit((state) => Tensor.noGrad(() => policy.forward(seen(state)).argmax(1)));

const memory = [];
const batch = () => Array.from({ length: BATCH }, () => memory[Math.floor(random() * memory.length)]);
const column = (rows, key, options) =>
  new Tensor(
    rows.map((row) => row[key]),
    options,
  );
const corridor = new Corridor();
for (let episode = 1; episode <= episodes; episode++) {
  const curiosity = Math.max(0.05, 1 - episode / 15);
  let [state, total, done] = [corridor.reset(), 0, false];
  while (!done) {
    const greedy = random() >= curiosity;
    const action = greedy ? await (await choose(new Tensor([state]))).item() : Math.floor(random() * 2);
    const result = corridor.step(action);
    memory.push({ state, action, ...result });
    ({ next: state, done } = result);
    total += result.reward;
    if (memory.length < BATCH) continue;
    const rows = batch();
    const reward = column(rows, "reward", { dtype: "float32" });
    await learn(
      column(rows, "state"),
      column(rows, "action"),
      reward,
      column(rows, "next"),
      column(rows, "done"),
    );
  }
  if (episode % 5 === 0)
    console.log(`episode ${episode}: return ${total.toFixed(2)} in ${corridor.time} steps`);
}

const values = Tensor.noGrad(() => policy.forward(Tensor.eye(CELLS)));
const path = (await values.argmax(1).tolist()).slice(0, -1).map((a) => (a === 1 ? ">" : "<"));
console.log(`what it does in each cell: ${path.join(" ")}`);
