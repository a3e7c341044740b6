"""The truth about functions of Tensor: values at chosen points, to 100 bits and more (mpmath).

python3 scripts/accuracy/reference.py POINTS OUT.json [FUNCTION...]

A function has ranges of points for float32 and float64: (low, high, how), where `how` spreads them evenly
("even") or by exponent ("exp"). Every point is a number of the type. OUT.json has, by function and type, rows
[x, value, rest] or, for two arguments, [x, y, value, rest]: value + rest is the truth, value a double.
scripts/accuracy/accuracy.ts measures devices against it; a small one is kept for the tests.
"""

import json
import random
import struct
import sys

import mpmath as mp

mp.mp.prec = 1400
BIG32, BIG64 = 3.4028234663852886e38, 1.7976931348623157e308


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]



def lgamma(x):
    return mp.log(abs(mp.gamma(x))) if x < 1e6 else mp.loggamma(x).real


# by function: the truth, and the ranges of points for float32 and for float64
FUNCTIONS = {
    "exp": (mp.exp, [(-100, 88, "even"), (-1, 1, "exp")], [(-740, 709, "even"), (-1, 1, "exp")]),
    "exp2": (lambda x: mp.mpf(2) ** x, [(-148, 127, "even")], [(-1070, 1023, "even")]),
    "expm1": (mp.expm1, [(-20, 88, "even"), (-1, 1, "exp")], [(-40, 709, "even"), (-1, 1, "exp")]),
    "log": (mp.log, [(1e-44, BIG32, "exp"), (0.5, 2, "even")], [(1e-320, BIG64, "exp"), (0.5, 2, "even")]),
    "log2": (lambda x: mp.log(x, 2), [(1e-44, BIG32, "exp"), (0.5, 2, "even")], [(1e-320, BIG64, "exp"), (0.5, 2, "even")]),
    "log10": (mp.log10, [(1e-44, BIG32, "exp"), (0.5, 2, "even")], [(1e-320, BIG64, "exp"), (0.5, 2, "even")]),
    "log1p": (mp.log1p, [(-0.99, 10, "even"), (1e-20, BIG32, "exp")], [(-0.99, 10, "even"), (1e-20, BIG64, "exp")]),
    "sin": (mp.sin, [(-10, 10, "even"), (1, BIG32, "exp")], [(-10, 10, "even"), (1, BIG64, "exp")]),
    "cos": (mp.cos, [(-10, 10, "even"), (1, BIG32, "exp")], [(-10, 10, "even"), (1, BIG64, "exp")]),
    "tan": (mp.tan, [(-10, 10, "even"), (1, BIG32, "exp")], [(-10, 10, "even"), (1, BIG64, "exp")]),
    "asin": (mp.asin, [(-1, 1, "even"), (-1, 1, "exp")], [(-1, 1, "even"), (-1, 1, "exp")]),
    "acos": (mp.acos, [(-1, 1, "even")], [(-1, 1, "even")]),
    "atan": (mp.atan, [(-10, 10, "even"), (1e-20, BIG32, "exp")], [(-10, 10, "even"), (1e-20, BIG64, "exp")]),
    "sinh": (mp.sinh, [(-89, 89, "even"), (-2, 2, "even"), (-1, 1, "exp")], [(-710, 710, "even"), (-2, 2, "even"), (-1, 1, "exp")]),
    "cosh": (mp.cosh, [(-89, 89, "even"), (-2, 2, "even")], [(-710, 710, "even"), (-2, 2, "even")]),
    "tanh": (mp.tanh, [(-10, 10, "even"), (-1, 1, "exp")], [(-20, 20, "even"), (-1, 1, "exp")]),
    "asinh": (mp.asinh, [(-10, 10, "even"), (1e-20, BIG32, "exp")], [(-10, 10, "even"), (1e-20, BIG64, "exp")]),
    "acosh": (mp.acosh, [(1, 10, "even"), (1, BIG32, "exp")], [(1, 10, "even"), (1, BIG64, "exp")]),
    "atanh": (mp.atanh, [(-1, 1, "even"), (-1, 1, "exp")], [(-1, 1, "even"), (-1, 1, "exp")]),
    "erf": (mp.erf, [(-4, 4, "even"), (-1, 1, "exp")], [(-6, 6, "even"), (-1, 1, "exp")]),
    "erfc": (mp.erfc, [(-4, 10, "even"), (-1, 1, "exp")], [(-6, 26, "even"), (-1, 1, "exp")]),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), [(-80, 20, "even")], [(-700, 40, "even")]),
    "lgamma": (lgamma, [(0.001, 20, "even"), (1e-30, 1e30, "exp"), (-1e-30, -1e-3, "exp"), (-6, 0, "even"), (0.5, 2.5, "even")],
               [(0.001, 20, "even"), (1e-300, 1e300, "exp"), (-1e-300, -1e-3, "exp"), (-6, 0, "even"), (0.5, 2.5, "even")]),
    "digamma": (mp.digamma, [(0.001, 20, "even"), (1e-30, 1e30, "exp"), (-1e-30, -1e-3, "exp"), (-6, 0, "even")],
                [(0.001, 20, "even"), (1e-300, 1e300, "exp"), (-1e-300, -1e-3, "exp"), (-6, 0, "even")]),
    "pow": (lambda x, y: x**y, [], []),
}


def point(low, high, how, bits):
    if how == "even":
        return random.uniform(low, high)
    if low < 0 < high:
        return random.choice((low, high)) * 2.0 ** -random.uniform(0, bits)
    sign = -1 if high < 0 else 1
    a, b = sorted((abs(low), abs(high)))
    return sign * float(mp.e ** random.uniform(float(mp.log(a)), float(mp.log(b))))


def bases(n, is_double):
    """Pairs whose powers fill the range of the type, near 1 and far from it, and whole ones."""
    most = 1020 if is_double else 126
    for i in range(n):
        if i % 4 == 0:
            x = random.uniform(0.5, 2)
        elif i % 4 == 1:
            x = 2.0 ** random.uniform(-most, most)
        elif i % 4 == 2:
            x = random.uniform(0, 100)
        else:
            yield float(random.randint(-20, 20) or 1), float(random.randint(-8, 12))
            continue
        yield x, random.uniform(-most, most) / max(abs(float(mp.log(x, 2))), 1e-3)


def rows(f, ranges, points, is_double, biggest):
    fit = float if is_double else single
    random.seed(points)
    if not ranges:
        arguments = [(fit(x), fit(y)) for x, y in bases(points, is_double)]
    else:
        each = -(-points // len(ranges))
        arguments = [(fit(point(*r, 300 if is_double else 60)),) for r in ranges for _ in range(each)]
    out = []
    for xs in arguments:
        try:
            v = f(*(mp.mpf(x) for x in xs))
        except (ValueError, ZeroDivisionError, OverflowError):
            continue
        if isinstance(v, mp.mpc) or not mp.isfinite(v) or abs(v) > biggest:
            continue
        out.append([*xs, float(v), float(mp.nstr(v - mp.mpf(float(v)), 3))])
    return out


def main():
    points, path, *names = sys.argv[1:]
    table = {}
    for name, (f, ranges32, ranges64) in FUNCTIONS.items():
        if names and name not in names:
            continue
        table[name] = {
            "float32": rows(f, ranges32, int(points), False, BIG32),
            "float64": rows(f, ranges64, int(points), True, BIG64),
        }
    with open(path, "w", encoding="utf8") as out:
        text = ",\n".join(f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in table.items())
        out.write("{\n" + text + "\n}\n")


main()
