"""The oracle: reads random programs, one JSON object a line (scripts/oracle/programs.ts writes them), computes what
they give with numpy, and writes each with the expected outputs. It shares nothing with src/ or with the reference
interpreter of scripts/fuzz. Deterministic: the same programs give the same file.

    npx tsx scripts/oracle/programs.ts | python3 scripts/oracle/expect.py test/oracle/programs.jsonl.gz
"""

import gzip
import json
import math
import sys

import elementwise
import methods
import networks
import numpy as np
from arrays import LD, LOW, DIGITS, T, Unsuitable, is_float, noise, unit

METHODS = {**elementwise.METHODS, **methods.METHODS, **networks.METHODS}
SPECIAL = {"#nan": math.nan, "#inf": math.inf, "#-inf": -math.inf, "#-0": -0.0}

# ---- the language ----


def element(x):
    if not isinstance(x, str):
        return x
    return SPECIAL[x] if x in SPECIAL else int(x[1:-1])


def resolve(arg, nodes):
    if isinstance(arg, str) and arg[:1] == "$":
        return nodes[int(arg[1:])]
    if isinstance(arg, str) and arg[:1] == "#":
        return element(arg)
    if isinstance(arg, list):
        return [resolve(a, nodes) for a in arg]
    if isinstance(arg, dict):
        return {k: resolve(v, nodes) for k, v in arg.items()}
    return arg


def inputs_of(program):
    out = []
    for d, s, v in program["in"]:
        values = [element(x) for x in v]
        out.append(T(d, np.array(values, dtype=LD if is_float(d) else d).reshape(s)))
    return out


def perform(nodes, call):
    method, receiver, *args = call
    if method == "realize":
        return
    values = [resolve(a, nodes) for a in args]
    if method == "assign":
        nodes[receiver] = values[0]
        nodes.append(values[0])
        return
    op = METHODS.get(method)
    if op is None:
        raise Unsuitable(f"the oracle does not know {method}")
    while values and values[-1] is None:
        values.pop()
    made = op(*values) if receiver < 0 else op(nodes[receiver], *values)
    if method == "setitem":
        nodes[receiver] = made
    nodes.extend(made if isinstance(made, list) else [made])


def interpret(program, inputs, upto=None):
    nodes = list(inputs)
    for k, call in enumerate(program["ops"][:upto]):
        if call[0] == "backward":
            nodes.extend(gradients(program, k, inputs))
        else:
            perform(nodes, call)
    return nodes


# ---- gradients: differences in long doubles ----

STEP = LD(2) ** -8


def gradients(program, at, inputs):
    _, loss, leaves = program["ops"][at]
    seed = noise.random.integers(1 << 30) if noise.on else 0
    tape = []

    def value(xs, recording):
        if noise.on:
            noise.start(seed)
            noise.tape, noise.at, noise.recording = tape, 0, recording
        return interpret(program, xs, at)[loss].a.reshape(())[()]

    middle = value(inputs, True)

    def along(leaf, i):
        def f(by):
            if by == 0:
                return middle
            moved = inputs[leaf].a.copy()
            moved.flat[i] += by
            return value([*inputs[:leaf], T(inputs[leaf].d, moved), *inputs[leaf + 1 :]], False)

        return f

    slope = quick if noise.on else derivative
    return [T(inputs[k].d, np.array([slope(along(k, i)) for i in range(inputs[k].a.size)], dtype=LD).reshape(inputs[k].s)) for k in leaves]


def central(f, h):
    return (f(h) - f(-h)) / (2 * h)


def quick(f):
    return central(f, STEP / 4)


def derivative(f):
    """Richardson's extrapolation; refused where the function has a corner."""
    a, b, c = (central(f, STEP / k) for k in (1, 2, 4))
    ab, bc = (4 * b - a) / 3, (4 * c - b) / 3
    best = (16 * bc - ab) / 15
    h = STEP / 4
    sides = (f(h) - f(0)) / h - (f(0) - f(-h)) / h
    size = max(1, abs(best))
    if not np.isfinite(best) or abs(best - bc) > 1e-8 * size or abs(sides) > 0.2 * size:
        raise Unsuitable("not differentiable here")
    return best


# ---- bounds ----

PAIRS, MARGIN, DIFFERENCE_ERROR = 3, 16, 1e-9
WIDEST = {"float16": 2**-3, "bfloat16": 0.5, "float32": 2**-9, "float64": 2**-20}


def noisy(program, seed, sign):
    noise.on, noise.sign = True, sign
    noise.start(seed)
    try:
        return interpret(program, inputs_of(program))
    finally:
        noise.on, noise.tape = False, None


def bounds(exact, plain, runs, largest):
    """How far each element may be off; 0 means exactly."""
    with np.errstate(all="ignore"):
        off = np.zeros(exact.s, dtype=LD)
        for r in runs:
            gap = np.where((r.a == plain.a) | (np.isnan(r.a) & np.isnan(plain.a)), 0, np.abs(r.a - plain.a))
            off = np.maximum(off, np.where(np.isnan(gap), LD(np.inf), gap))
    tiny = LD(2) ** (LOW[exact.d] - DIGITS[exact.d] + 1)
    by_difference = plain is not exact
    floor = DIFFERENCE_ERROR * max(1, largest) if by_difference else 2 * tiny
    bound = np.where((off == 0) & (not by_difference), 0, MARGIN * off + 4 * unit(exact.d) * np.abs(np.nan_to_num(exact.a)) + floor)
    if not np.all(bound <= WIDEST[exact.d] * max(largest, 2**-20)):
        raise Unsuitable("ill-conditioned")
    return bound


def expected(program):
    noise.rounds = "z" in program
    exact = interpret(program, inputs_of(program))
    backward = any(call[0] == "backward" for call in program["ops"])
    plain = noisy(program, 1, 0) if backward else exact
    runs = [noisy(program, 100 + k, sign) for k in range(PAIRS) for sign in (1, -1)]
    out = []
    for i in program["out"]:
        t = exact[i]
        if not is_float(t.d):
            if any(not np.array_equal(r[i].a, t.a) for r in runs):
                raise Unsuitable("rounding decides")
            out.append([t.d, list(t.s), [integer(x) for x in t.a.ravel().tolist()]])
            continue
        finite = np.abs(t.a[np.isfinite(t.a)])
        bound = bounds(t, plain[i], [r[i] for r in runs], float(finite.max()) if finite.size else 0.0)
        out.append(written(t, bound))
    return out


# ---- writing ----


def integer(x):
    x = int(x)
    return x if abs(x) < 2**53 else f"#{x}n"


def written(t, bound):
    """Elements with as many digits as their bound allows, and the bounds as powers of two; none means exactly."""
    values, powers = [], []
    for x, b in zip(t.a.ravel(), bound.ravel()):
        if not np.isfinite(x):
            values.append("#nan" if np.isnan(x) else "#inf" if x > 0 else "#-inf")
            powers.append(None)
        elif b == 0:
            values.append("#-0" if x == 0 and np.signbit(x) else number(float(x)))
            powers.append(None)
        else:
            # rounding the text by a sixteenth of the bound at most costs the bound a sixteenth
            power = math.ceil(math.log2(float(b) * 17 / 16))
            digits = max(0, math.ceil(-math.log10(float(b) / 16)))
            text = f"{float(x):.17g}" if digits > 15 else f"{float(x):.{digits}f}"
            values.append(number(float(text)))
            powers.append(power)
    if all(p is None for p in powers):
        return [t.d, list(t.s), values]
    known = [p for p in powers if p is not None]
    same = all(p == known[0] for p in powers)
    return [t.d, list(t.s), values, known[0] if same else powers]


def number(x):
    return int(x) if x == int(x) and abs(x) < 2**53 else x


def main(path):
    kept, dropped = [], {}
    for line in sys.stdin:
        program = json.loads(line)
        try:
            want = expected(program)
        except Unsuitable as e:
            dropped[str(e)] = dropped.get(str(e), 0) + 1
            continue
        kept.append(json.dumps({**program, "want": want}, separators=(",", ":")))
    data = ("\n".join(kept) + "\n").encode()
    with open(path, "wb") as f:
        f.write(gzip.compress(data, 9, mtime=0))
    print(f"{len(kept)} programs, {len(data)} bytes, dropped {dropped}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
