"""Expected values of test/nn/rnn.test.ts, computed by numpy in float64: `python3 test/nn/rnn.py` writes
rnn.json beside it. The formulas are those of torch's documentation; nothing of this repository is used.
Gradients are central differences. Weights and inputs come from the generator of test/nn/close.ts."""

import json
import os

import numpy as np

TIME, BATCH, INPUT, HIDDEN = 4, 3, 2, 3

CASES = [
    {"kind": "RNN"},
    {"kind": "RNN", "nonlinearity": "relu", "numLayers": 2, "bidirectional": True, "bias": False},
    {"kind": "RNN", "bidirectional": True, "lengths": [2, 4, 1], "state": True},
    {"kind": "LSTM", "state": True},
    {"kind": "LSTM", "numLayers": 2, "bidirectional": True, "lengths": [4, 1, 3]},
    {"kind": "LSTM", "projSize": 2, "bidirectional": True, "state": True, "lengths": [3, 2, 4]},
    {"kind": "GRU", "numLayers": 2, "batchFirst": True, "state": True},
    {"kind": "GRU", "bidirectional": True, "lengths": [1, 4, 2], "state": True},
    {"kind": "GRU", "bias": False, "unbatched": True},
]
GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}


class Numbers:
    """Numbers in (-1, 1), as `numbers` of close.ts gives them."""

    def __init__(self, seed):
        self.state = seed

    def take(self, *shape):
        out = np.empty(int(np.prod(shape)))
        for i in range(out.size):
            self.state = (self.state * 1664525 + 1013904223) % 2**32
            out[i] = (self.state >> 8) / 2**23 - 1
        return out.reshape(shape)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(case, x, state, w):
    """One step of one cell; the formulas of torch.nn.RNN, LSTM and GRU."""
    h = state[0]
    gates_x = x @ w["weightIh"].T + w.get("biasIh", 0)
    gates_h = h @ w["weightHh"].T + w.get("biasHh", 0)
    if case["kind"] == "RNN":
        pre = gates_x + gates_h
        return [np.maximum(pre, 0) if case.get("nonlinearity") == "relu" else np.tanh(pre)]
    if case["kind"] == "GRU":
        xr, xz, xn = np.split(gates_x, 3, axis=-1)
        hr, hz, hn = np.split(gates_h, 3, axis=-1)
        r, z = sigmoid(xr + hr), sigmoid(xz + hz)
        n = np.tanh(xn + r * hn)
        return [(1 - z) * n + z * h]
    i, f, g, o = np.split(gates_x + gates_h, 4, axis=-1)
    c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return [h @ w["weightHr"].T if "weightHr" in w else h, c]


def forward(case, given):
    """Each sequence by itself, cut at its length: what pack_padded_sequence means."""
    x = given["x"]
    x = x[:, None] if case.get("unbatched") else x.swapaxes(0, 1) if case.get("batchFirst") else x
    time, batch = x.shape[:2]
    lengths = case.get("lengths", [time] * batch)
    directions = 2 if case.get("bidirectional") else 1
    size = case.get("projSize", HIDDEN)
    sizes = [size, HIDDEN] if case["kind"] == "LSTM" else [size]
    count = case.get("numLayers", 1) * directions
    lasts = [np.zeros((count, batch, s)) for s in sizes]
    for layer in range(case.get("numLayers", 1)):
        out = np.zeros((time, batch, size * directions))
        for d in range(directions):
            suffix = f"L{layer}" + ("Reverse" if d else "")
            w = {k[: -len(suffix)]: v for k, v in given.items() if k.endswith(suffix)}
            at = layer * directions + d
            for b in range(batch):
                state = [given[f"state{k}"][at, b] if case.get("state") else np.zeros(s) for k, s in enumerate(sizes)]
                steps = range(lengths[b])
                for t in reversed(steps) if d else steps:
                    state = step(case, x[t, b], state, w)
                    out[t, b, d * size : (d + 1) * size] = state[0]
                for k, part in enumerate(state):
                    lasts[k][at, b] = part
        x = out
    if case.get("unbatched"):
        return [x[:, 0], *[part[:, 0] for part in lasts]]
    return [x.swapaxes(0, 1) if case.get("batchFirst") else x, *lasts]


def inputs(case):
    """Everything with a gradient, by name, in the order in which the numbers are drawn."""
    numbers = Numbers(7)
    directions = 2 if case.get("bidirectional") else 1
    size, rows = case.get("projSize", HIDDEN), GATES[case["kind"]] * HIDDEN
    given = {}
    for layer in range(case.get("numLayers", 1)):
        for suffix in [f"L{layer}", f"L{layer}Reverse"][:directions]:
            given[f"weightIh{suffix}"] = numbers.take(rows, INPUT if layer == 0 else size * directions)
            given[f"weightHh{suffix}"] = numbers.take(rows, size)
            if case.get("bias", True):
                given[f"biasIh{suffix}"] = numbers.take(rows)
                given[f"biasHh{suffix}"] = numbers.take(rows)
            if "projSize" in case:
                given[f"weightHr{suffix}"] = numbers.take(size, HIDDEN)
    shape = (TIME, INPUT) if case.get("unbatched") else (TIME, BATCH, INPUT)
    given["x"] = numbers.take(*((BATCH, TIME, INPUT) if case.get("batchFirst") else shape))
    if case.get("state"):
        sizes = [size, HIDDEN] if case["kind"] == "LSTM" else [size]
        for k, s in enumerate(sizes):
            given[f"state{k}"] = numbers.take(case.get("numLayers", 1) * directions, BATCH, s)
    return given, numbers


def run(case):
    given, numbers = inputs(case)
    results = forward(case, given)
    # the loss weighs every element of every result differently
    weights = [numbers.take(*r.shape) for r in results]
    loss = lambda: sum((r * w).sum() for r, w in zip(forward(case, given), weights))
    gradients = {}
    for name, value in given.items():
        gradient = np.empty(value.size)
        flat = value.reshape(-1)
        for i in range(flat.size):
            kept, eps = flat[i], 1e-5
            flat[i] = kept + eps
            above = loss()
            flat[i] = kept - eps
            below = loss()
            flat[i] = kept
            gradient[i] = (above - below) / (2 * eps)
        gradients[name] = gradient
    short = lambda xs: [float(f"{x:.8g}") for x in np.asarray(xs).reshape(-1)]
    return {"case": case, "results": [short(r) for r in results], "gradients": {k: short(g) for k, g in gradients.items()}}


if __name__ == "__main__":
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rnn.json")
    with open(path, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(run(c)) for c in CASES) + "\n]\n")
