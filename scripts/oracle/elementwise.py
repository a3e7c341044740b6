"""Elementwise methods of the oracle, on numpy: arithmetic of every type, functions, comparison and casts."""

import math

import numpy as np
from arrays import BITS, INTS, LD, MOST, T, Unsuitable, cast, fl, is_float, noise, product_type, result_type, round_to
from arrays import sum_type, to_float, unit

erf = np.vectorize(lambda x: LD(math.erf(x)), otypes=[LD])
erfc = np.vectorize(lambda x: LD(math.erfc(x)), otypes=[LD])


def together(xs, d=None):
    """All operands as arrays of one type, which broadcast."""
    d = d or result_type(xs)
    out = []
    for x in xs:
        if isinstance(x, T):
            out.append(cast(x, d).a)
        elif is_float(d):
            out.append(round_to(d, LD(x)))
        elif d == "bool":
            out.append(np.bool_(x != 0))
        else:
            n = int(x) & (2 ** BITS[d] - 1)
            out.append(np.array(n - 2 ** BITS[d] if d[0] == "i" and n >> (BITS[d] - 1) else n, dtype=d))
    return d, out


def arithmetic(ints, floats, ulps=1):
    def op(*xs):
        d, args = together(xs)
        with np.errstate(all="ignore"):
            if is_float(d):
                return T(d, fl(d, floats(*args), ulps))
            return T(d, ints(*np.broadcast_arrays(*args)).astype(d))

    return op


def on_ints(f):
    """Element by element in Python's own integers, wrapped afterwards."""

    def op(a, b):
        bits = a.dtype.itemsize * 8
        flat = []
        for x, y in zip(a.ravel().tolist(), b.ravel().tolist()):
            n = int(f(int(x), int(y), bits)) & (2**bits - 1)
            flat.append(n - 2**bits if a.dtype.kind == "i" and n >> (bits - 1) else n)
        return np.array(flat, dtype=a.dtype).reshape(a.shape)

    return op


def trunc_div(x, y, _=0):
    if y == 0:
        return 0
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def c_mod(x, y, _=0):
    return 0 if y == 0 else x - trunc_div(x, y) * y


def int_power(x, n, bits):
    if n < 0:
        return 1 if x == 1 else (1 if n % 2 == 0 else -1) if x == -1 else 0
    return pow(x, n, 2 ** (bits + 1)) if x >= 0 else pow(x % 2 ** (bits + 1), n, 2 ** (bits + 1))


add = arithmetic(lambda a, b: a + b, lambda a, b: a + b)
sub = arithmetic(lambda a, b: a ^ b if a.dtype == bool else a - b, lambda a, b: a - b)
mul = arithmetic(lambda a, b: a * b, lambda a, b: a * b)
maximum = arithmetic(np.maximum, np.maximum)
minimum = arithmetic(np.minimum, np.minimum)
SAME = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "rsub": arithmetic(lambda a, b: b - a, lambda a, b: b - a),
    "maximum": maximum,
    "minimum": minimum,
    "fmod": arithmetic(on_ints(c_mod), np.fmod),
    "remainder": arithmetic(on_ints(lambda x, y, _: 0 if y == 0 else x % y), np.mod),
    "floorDivide": arithmetic(on_ints(lambda x, y, _: 0 if y == 0 else x // y), np.floor_divide),
    "pow": arithmetic(on_ints(int_power), np.power, 32),
}


def power(x, y):
    if result_type([x, y]) == "bool":
        d, (a, b) = together([x, y])
        return T(d, a | ~b)
    return SAME["pow"](x, y)


def integers(f):
    def op(x, y):
        d, (a, b) = together([x, y])
        if d == "bool":
            a, b = np.broadcast_arrays(a, b)
            return T(d, f(a.astype(int), b.astype(int), 1) if not isinstance(f, np.ufunc) else f(a, b))
        if d not in INTS:
            raise Unsuitable("of integers")
        a, b = np.broadcast_arrays(a, b)
        return T(d, f(a, b) if isinstance(f, np.ufunc) else on_ints(f)(a, b))

    return op


INTEGER = {
    "idiv": integers(trunc_div),
    "bitwiseAnd": integers(np.bitwise_and),
    "bitwiseOr": integers(np.bitwise_or),
    "bitwiseXor": integers(np.bitwise_xor),
    "lshift": integers(lambda x, y, bits: x << (y % bits)),
    "rshift": integers(lambda x, y, bits: x >> (y % bits)),
    "gcd": integers(lambda x, y, _: math.gcd(x, y)),
}
TEST = {
    "lt": np.less,
    "gt": np.greater,
    "le": np.less_equal,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "logicalAnd": np.logical_and,
    "logicalOr": np.logical_or,
    "logicalXor": np.logical_xor,
}


def as_float(f, ulps=1, scale=None):
    """A function of each element as a float; narrow floats compute in float32 and round once."""

    def op(x, *args):
        d = to_float(x.d)
        a = cast(x, d).a
        with np.errstate(all="ignore"):
            y = f(a, *args)
            size = None if scale is None else scale(np.abs(a), np.abs(y))
        return T(d, fl(d, y, ulps if BITS[d] >= 32 else min(ulps, 2), size))

    return op


def larger(x, y):
    return np.maximum(x, y)


def at_least_one(x, y):
    return np.maximum(1, np.maximum(x, y))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(LD(0), x)


def div(x, y):
    d, (a, b) = together([x, y], to_float(result_type([x, y])))
    with np.errstate(all="ignore"):
        return T(d, fl(d, a / b))


def float_pair(f, ulps):
    def op(x, y):
        d, (a, b) = together([x, y], to_float(result_type([x, y])))
        with np.errstate(all="ignore"):
            return T(d, f(a, b) if ulps == 0 else fl(d, f(a, b), ulps))

    return op


SELU = (LD(1.0507009873554805), LD(1.6732632423543772))
FUNCTIONS = {
    "exp": as_float(np.exp, 4),
    "exp2": as_float(np.exp2, 4),
    "expm1": as_float(np.expm1, 4),
    "log": as_float(np.log, 4, larger),
    "log2": as_float(np.log2, 4, larger),
    "log10": as_float(np.log10, 4, larger),
    "log1p": as_float(np.log1p, 8),
    "sqrt": as_float(np.sqrt),
    "rsqrt": as_float(lambda x: 1 / np.sqrt(x), 3),
    "reciprocal": as_float(lambda x: 1 / x),
    "sin": as_float(np.sin, 4),
    "cos": as_float(np.cos, 4, at_least_one),
    "tan": as_float(np.tan, 8, larger),
    "sinh": as_float(np.sinh, 8),
    "cosh": as_float(np.cosh, 8),
    "tanh": as_float(np.tanh, 8),
    "asin": as_float(np.arcsin, 8, larger),
    "acos": as_float(np.arccos, 8, at_least_one),
    "atan": as_float(np.arctan, 8),
    "asinh": as_float(np.arcsinh, 8),
    "acosh": as_float(np.arccosh, 8, at_least_one),
    "atanh": as_float(np.arctanh, 8),
    "erf": as_float(erf, 8),
    "erfc": as_float(erfc, 8, at_least_one),
    "sigmoid": as_float(sigmoid, 8),
    "silu": as_float(lambda x: x * sigmoid(x), 8),
    "gelu": as_float(lambda x: x * erfc(-x / np.sqrt(LD(2))) / 2, 8, larger),
    "mish": as_float(lambda x: x * np.tanh(softplus(x)), 16, larger),
    "logsigmoid": as_float(lambda x: -softplus(-x), 8),
    "softsign": as_float(lambda x: x / (1 + np.abs(x)), 3),
    "tanhshrink": as_float(lambda x: x - np.tanh(x), 8, larger),
    "selu": as_float(lambda x: SELU[0] * np.where(x > 0, x, SELU[1] * np.expm1(x)), 8, larger),
    "hardsigmoid": as_float(lambda x: np.clip(x / 6 + LD(0.5), 0, 1), 4, lambda x, y: np.ones_like(x)),
    "hardswish": as_float(lambda x: x * np.clip(x / 6 + LD(0.5), 0, 1), 4, larger),
    "deg2rad": as_float(np.deg2rad, 3),
    "rad2deg": as_float(np.rad2deg, 3),
    "leakyRelu": as_float(lambda x, slope=0.01: np.where(x > 0, x, x * LD(slope)), 2),
    "elu": as_float(lambda x, alpha=1: np.where(x > 0, x, LD(alpha) * np.expm1(x)), 8, larger),
    "softplus": as_float(softplus, 8, larger),
    "softshrink": as_float(lambda x, by=0.5: np.sign(x) * np.maximum(np.abs(x) - by, 0), 1, lambda x, y: x),
}


def steps(f):
    return lambda x: T(x.d, f(x.a)) if is_float(x.d) else x


def where(c, x, y):
    d, (a, b) = together([x, y])
    return T(d, np.where(c.a, a, b))


def clamp(x, low=None, high=None):
    d = result_type([x] + [b for b in (low, high) if b is not None])
    out = cast(x, d)
    if low is not None:
        out = T(d, np.maximum(out.a, together([low], d)[1][0]))
    return out if high is None else T(d, np.minimum(out.a, together([high], d)[1][0]))


def lerp(x, y, w):
    d, (a, b, t) = together([x, y, w], to_float(result_type([x, y, w])))
    size = np.maximum(np.abs(a), np.abs(b)) * (1 + np.abs(t))
    return T(d, fl(d, a + t * (b - a), 4, size))


def sign(x):
    if x.d == "bool":
        return x
    if is_float(x.d):
        return T(x.d, np.where(np.isnan(x.a), 0, np.sign(x.a)))
    return T(x.d, (x.a > 0).astype(x.d) - (x.a < 0).astype(x.d) if x.d[0] == "i" else (x.a > 0).astype(x.d))


def nan_to_num(x):
    if not is_float(x.d):
        return x
    return T(x.d, np.where(np.isnan(x.a), 0, np.where(np.isinf(x.a), np.copysign(MOST[x.d], x.a), x.a)))


def bitcast(x, d):
    wide = {"float32": np.float32, "float64": np.float64}
    bits = x.a.astype(wide[x.d]) if x.d in wide else x.a
    out = np.ascontiguousarray(bits).view(wide.get(d, d))
    return T(d, out.astype(LD) if d in wide else out)


def square(x):
    wide = cast(x, "int32") if x.d == "bool" else x
    return mul(wide, wide)


def absolute(x):
    return T(x.d, np.abs(x.a)) if x.d != "bool" else x


def test(f):
    def op(x, y):
        d, (a, b) = together([x, y])
        out = f(a, b)
        if noise.on and is_float(d) and f in (np.equal, np.not_equal):
            # rounding may make equal what is near: then one of two runs says so
            size = np.maximum(np.abs(a), np.abs(b))
            with np.errstate(all="ignore"):
                near = (np.abs(a - b) <= 4 * unit(d) * size) & (a != b)
            out = np.where(near, (noise.sign > 0) == (f is np.equal), out)
        return T("bool", out)

    return op


def scaled(f):
    return lambda x, y, o=None: f(x, mul(y, o["alpha"]) if o and "alpha" in o else y)


METHODS = {
    **SAME,
    **INTEGER,
    **FUNCTIONS,
    **{name: test(f) for name, f in TEST.items()},
    "add": scaled(add),
    "sub": scaled(sub),
    "pow": power,
    "div": div,
    "atan2": float_pair(np.arctan2, 8),
    "hypot": float_pair(np.hypot, 4),
    "copysign": float_pair(np.copysign, 0),
    "neg": lambda x: T(x.d, -x.a if is_float(x.d) else (0 - x.a).astype(x.d)),
    "abs": absolute,
    "sign": sign,
    "square": square,
    "floor": steps(np.floor),
    "ceil": steps(np.ceil),
    "trunc": steps(np.trunc),
    "round": steps(np.rint),
    "frac": lambda x: T(x.d, np.fmod(x.a, 1)),
    "relu": lambda x: maximum(cast(x, "int32") if x.d == "bool" else x, 0),
    "relu6": lambda x: clamp(x, 0, 6),
    "hardtanh": lambda x: clamp(x, -1, 1),
    "hardshrink": lambda x, by=0.5: T(x.d, np.where(np.abs(x.a) > by, x.a, 0)),
    "isnan": lambda x: T("bool", np.isnan(x.a)),
    "isinf": lambda x: T("bool", np.isinf(x.a)),
    "isfinite": lambda x: T("bool", np.isfinite(x.a)),
    "signbit": lambda x: T("bool", np.signbit(x.a) if is_float(x.d) else x.a < 0),
    "logicalNot": lambda x: T("bool", x.a == 0),
    "bitwiseNot": lambda x: T(x.d, ~x.a),
    "where": where,
    "clamp": clamp,
    "lerp": lerp,
    "cast": cast,
    "bitcast": bitcast,
    "nanToNum": nan_to_num,
}
__all__ = ["METHODS", "absolute", "add", "div", "maximum", "mul", "product_type", "sub", "sum_type", "where"]
