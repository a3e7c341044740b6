"""Arrays of the oracle: a type name and a numpy array. Integers have numpy's own types, which wrap; floats are
long doubles that have not been rounded. `fl` is where a device rounds: in a noisy run it moves the result by about
a unit in the last place, and how far the outputs move is how far a device may be off."""

import numpy as np

LD = np.longdouble
INTS = {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
LOW = {"float16": -14, "bfloat16": -126, "float32": -126, "float64": -1022}
MOST = {
    "float16": LD(65504),
    "bfloat16": LD(2) ** 127 * (2 - LD(2) ** -7),
    "float32": LD(np.finfo(np.float32).max),
    "float64": LD(np.finfo(np.float64).max),
}
BITS = {"bool": 8, "float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}
BITS |= {d: int("".join(c for c in d if c.isdigit())) for d in INTS}


class Unsuitable(Exception):
    """A program whose result hangs on rounding, or that the oracle does not know."""


class T:
    """A tensor: the name of its type, and its elements."""

    __slots__ = ("d", "a")

    def __init__(self, d, a):
        self.d = d
        self.a = np.asarray(a, dtype=LD if is_float(d) else d)

    @property
    def s(self):
        return self.a.shape


def is_float(d):
    return d in DIGITS


def unit(d):
    return LD(2) ** -DIGITS[d]


# ---- types ----


def promote(a, b):
    if a == b or b == "bool":
        return a
    if a == "bool":
        return b
    if is_float(a) and is_float(b):
        return "float32" if BITS[a] == BITS[b] else (a if BITS[a] > BITS[b] else b)
    if is_float(a) or is_float(b):
        return a if is_float(a) else b
    if (a[0] == "u") == (b[0] == "u"):
        return a if BITS[a] > BITS[b] else b
    signed, unsigned = (b, a) if a[0] == "u" else (a, b)
    if BITS[signed] > BITS[unsigned]:
        return signed
    return {8: "int16", 16: "int32", 32: "int64", 64: "float32"}[BITS[unsigned]]


def category(d):
    return 2 if is_float(d) else 0 if d == "bool" else 1


def result_type(xs):
    """torch.result_type of tensors and plain numbers."""
    ranks = [[], [], []]
    for x in xs:
        if isinstance(x, T):
            ranks[0 if x.a.ndim else 1].append(x.d)
        else:
            whole = float(x).is_integer()
            ranks[2].append("bool" if isinstance(x, bool) else "int32" if whole else "float32")
    out = None
    for level, names in enumerate(ranks):
        if not names:
            continue
        here = names[0]
        for d in names[1:]:
            here = promote(here, d)
        if out is None:
            out = here
        elif category(here) > category(out):
            out = here if level == 2 else promote(out, here)
    return out


def to_float(d):
    return d if is_float(d) else "float32"


def sum_type(d):
    if is_float(d) or BITS[d] >= 32:
        return d
    return "uint32" if d[0] == "u" else "int32"


def product_type(d):
    return d if is_float(d) or d == "uint64" else "int32" if d == "bool" else "int64"


def round_to(d, x):
    """The nearest number of a float type."""
    x = np.asarray(x, dtype=LD)
    if d == "float64":
        return x.astype(np.float64).astype(LD)
    if d == "float32":
        return x.astype(np.float32).astype(LD)
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(np.where(np.isfinite(x) & (x != 0), x, 1))[1] - 1, LOW[d])
        step = np.ldexp(LD(1), exponent - DIGITS[d] + 1)
        r = np.rint(x / step) * step
        r = np.where(np.abs(r) > MOST[d], np.copysign(LD(np.inf), x), r)
    return np.where(np.isfinite(x) & (x != 0), r, x)


def store(d, x):
    """What a cast between floats stores: narrow ones come by way of float32."""
    with np.errstate(all="ignore"):
        return round_to(d, x) if d == "float64" else round_to(d, round_to("float32", x))


def cast(t, d):
    if t.d == d:
        return t
    with np.errstate(all="ignore"):
        if d == "bool":
            return T(d, t.a != 0)
        if is_float(d):
            if not is_float(t.d):
                return T(d, round_to(d, t.a.astype(LD)))
            if not noise.on:
                return T(d, store(d, t.a))
            inexact = np.full(t.s, True) if noise.tape is not None else (round_to(t.d, t.a) != t.a) & np.isfinite(t.a)
            return T(d, np.where(inexact, fl(d, t.a), store(d, t.a)))
        if not is_float(t.d):
            return T(d, t.a.astype(d))
        return T(d, float_to_int(t.a, d))


def float_to_int(a, d):
    """Truncates; NaN gives 0; what is out of range stops at 32 or 64 bits, and then wraps to the width."""
    if d == "uint64":
        low, high = 0, 2**64 - 1
    elif d in ("int64", "uint32"):
        low, high = -(2**63), 2**63 - 1
    else:
        low, high = -(2**31), 2**31 - 1
    flat = []
    for x in a.ravel():
        n = 0 if np.isnan(x) else high if x >= LD(high) else low if x <= LD(low) else int(x)
        n &= 2 ** BITS[d] - 1
        flat.append(n - 2 ** BITS[d] if d[0] == "i" and n >> (BITS[d] - 1) else n)
    return np.array(flat, dtype=d).reshape(a.shape)


# ---- noise ----


class Noise:
    on = False
    rounds = False  # every result as IEEE 754 rounds it, for numbers so far apart that what is lost decides
    sign = 1
    tape = None  # for gradients: what every rounding gave at the middle point
    at = 0
    recording = False
    random = np.random.default_rng(0)

    def start(self, seed):
        self.random = np.random.default_rng(seed)

    def draw(self, shape):
        """Between 0.5 and 1 in size, of either sign."""
        size = self.random.uniform(0.5, 1, shape)
        return self.sign * np.where(self.random.integers(0, 2, shape) == 1, size, -size).astype(LD)


noise = Noise()


def fl(d, x, ulps=1, scale=None):
    """A result that a device rounds to type `d`: `ulps` of `scale` off at most."""
    x = np.asarray(x, dtype=LD)
    if noise.tape is not None:
        return taped(d, x, ulps, scale)
    with np.errstate(all="ignore"):
        small = np.abs(x) < LD(2) ** LOW[d]
        x = np.where((np.abs(x) > MOST[d]) | (small & (not noise.on)), round_to(d, x), x)
    if not noise.on:
        return round_to(d, x) if noise.rounds else x
    by = noise.draw(x.shape) * ulps * unit(d)
    exact = ~np.isfinite(x)
    if ulps == 1:
        exact = exact | (round_to(d, x) == x)
    size = np.abs(x) if scale is None else scale
    moved = np.where(exact, x, x + np.where(np.isfinite(x), by * size, 0))
    step = LD(2) ** (LOW[d] - DIGITS[d] + 1)
    return np.where(small, np.where(round_to(d, x) == x, x, x + by / (ulps * unit(d)) * step), moved)


def taped(d, x, ulps, scale):
    """Values move, and so do their changes: a backward pass computes with those."""
    change, value = noise.draw(x.shape), noise.draw(x.shape)
    if noise.recording:
        noise.tape.append(x)
    middle = noise.tape[noise.at]
    noise.at += 1
    size = np.abs(middle) if scale is None or not noise.recording else scale
    return x + ulps * unit(d) * (change * (x - middle) + value * size)


def sum_up(d, x, axis):
    """The sum along axes in any order of adding; `x` are long doubles."""
    n = int(np.prod([x.shape[i] for i in axis])) if axis else 1
    total = x.sum(axis=axis)
    if not noise.on or n <= 1:
        return fl(d, total)
    wide = "float64" if d == "float64" else "float32"
    ulps = min(n, 8)
    if noise.tape is not None:
        return fl(d, fl(wide, x, ulps).sum(axis=axis))
    with np.errstate(all="ignore"):
        whole = np.all(np.mod(x * 4096, 1) == 0, axis=axis)
        exact = whole & (np.abs(x).sum(axis=axis) * 8192 * unit(wide) < 1)
        moved = (x * (1 + noise.draw(x.shape) * ulps * unit(wide))).sum(axis=axis)
    return fl(d, np.where(exact | ~np.isfinite(total), total, moved))
