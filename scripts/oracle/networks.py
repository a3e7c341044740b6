"""Products, windows, normalisations and losses of the oracle, on numpy."""

import numpy as np
from arrays import LD, T, Unsuitable, cast, fl, is_float, noise, promote, sum_type, sum_up
from elementwise import FUNCTIONS, absolute, add, as_float, div, maximum, mul, sub, where
from methods import logsumexp, mean, softmax, total, variance

# ---- sums of products ----


def terms_of(d, arrays, formula):
    """The products before they are summed: summed labels come last."""
    left, out = formula.split("->")
    summed = "".join(sorted(set(left) - set(out) - {","}))
    full = np.einsum(f"{left}->{out}{summed}", *arrays)
    axes = tuple(range(len(out), full.ndim))
    wide = "float64" if d == "float64" else "float32"
    return fl(wide, full) if is_float(d) else full, axes


def einsum(formula, *xs):
    left, out = formula.split("->")
    d = xs[0].d
    for x in xs[1:]:
        d = promote(d, x.d)
    if set(left) - set(out) - {","}:
        d = sum_type(d)
    arrays = [cast(x, d).a for x in xs]
    terms, axes = terms_of(d, arrays, formula)
    return T(d, sum_up(d, terms, axes) if is_float(d) else terms.sum(axis=axes, dtype=d))


def matmul(x, y):
    a, b = x, y
    if x.a.ndim == 1:
        a = T(x.d, x.a[None, :])
    if y.a.ndim == 1:
        b = T(y.d, y.a[:, None])
    batch = np.broadcast_shapes(a.s[:-2], b.s[:-2])
    wide = [T(t.d, np.broadcast_to(t.a, batch + t.s[-2:])) for t in (a, b)]
    front = "abcdef"[: len(batch)]
    out = einsum(f"{front}ik,{front}kj->{front}ij", *wide).a
    if x.a.ndim == 1:
        out = out[..., 0, :]
    if y.a.ndim == 1:
        out = out[..., 0]
    return T(sum_type(promote(x.d, y.d)), out)


def by(x, factor):
    return x if factor == 1 else as_float(lambda a: a * LD(factor))(x)


def addmm(x, a, b, o=None):
    o = o or {}
    return add(by(x, o.get("beta", 1)), by(matmul(a, b), o.get("alpha", 1)))


def linear(x, w, bias=None):
    out = matmul(x, T(w.d, w.a.T))
    return out if bias is None else add(out, bias)


# ---- windows ----


def per_dim(x, n, otherwise):
    return [otherwise if x is None else x] * n if not isinstance(x, list) else x


def padded(a, padding, value=0, more=None):
    extra = more or [0] * len(padding)
    width = [(0, 0)] * (a.ndim - len(padding)) + [(p, p + e) for p, e in zip(padding, extra)]
    return np.pad(a, width, constant_values=value)


def taps(a, kernel, stride, dilation):
    """The windows over the last dims: [..., places, taps]."""
    n = len(kernel)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    axes = tuple(range(a.ndim - n, a.ndim))
    if any(r > a.shape[x] for r, x in zip(reach, axes)):
        raise Unsuitable("the window does not fit")
    w = np.lib.stride_tricks.sliding_window_view(a, reach, axis=axes)
    front = (slice(None),) * (a.ndim - n)
    return w[front + tuple(slice(None, None, s) for s in stride) + tuple(slice(None, None, d) for d in dilation)]


def with_bias(t, bias):
    return t if bias is None else add(t, T(bias.d, bias.a.reshape((-1,) + (1,) * (t.a.ndim - 2))))


def conv(x, w, bias=None, o=None):
    o = o or {}
    n = x.a.ndim - 2
    d = promote(x.d, w.d)
    groups = o.get("groups", 1)
    get = lambda name, otherwise: per_dim(o.get(name), n, otherwise)
    a = taps(padded(x.a, get("padding", 0)), w.s[2:], get("stride", 1), get("dilation", 1))
    parts = []
    for g in range(groups):
        inner = a[:, g * w.s[1] : (g + 1) * w.s[1]]
        outer = w.a[g * w.s[0] // groups : (g + 1) * w.s[0] // groups]
        places, kernel = "pqr"[:n], "xyz"[:n]
        terms, axes = terms_of(d, [inner, outer], f"bi{places}{kernel},oi{kernel}->bo{places}")
        parts.append(sum_up(d, terms, axes) if is_float(d) else terms.sum(axis=axes, dtype=x.a.dtype))
    return with_bias(T(d, np.concatenate(parts, axis=1)), bias)


def conv_transpose(x, w, bias=None, o=None):
    """A convolution of the input, with zeros between its elements, by the kernel turned around."""
    o = o or {}
    n = x.a.ndim - 2
    groups = o.get("groups", 1)
    get = lambda name, otherwise: per_dim(o.get(name), n, otherwise)
    stride, dilation, padding, more = get("stride", 1), get("dilation", 1), get("padding", 0), get("outputPadding", 0)
    spread = np.zeros(x.s[:2] + tuple((m - 1) * s + 1 for m, s in zip(x.s[2:], stride)), dtype=x.a.dtype)
    spread[(slice(None), slice(None)) + tuple(slice(None, None, s) for s in stride)] = x.a
    around = [e * (k - 1) - p for e, k, p in zip(dilation, w.s[2:], padding)]
    if any(a < 0 for a in around):
        raise Unsuitable("more padding than kernel")
    turned = np.flip(w.a, tuple(range(2, 2 + n)))
    parts = []
    for g in range(groups):
        size = x.s[1] // groups
        kernel = T(w.d, np.swapaxes(turned[g * size : (g + 1) * size], 0, 1))
        inner = T(x.d, padded(spread[:, g * size : (g + 1) * size], around, 0, more))
        parts.append(conv(inner, kernel, None, {"dilation": dilation}).a)
    return with_bias(T(promote(x.d, w.d), np.concatenate(parts, axis=1)), bias)


def pool_windows(x, n, kernel, o, value):
    kernel = per_dim(kernel, n, 1)
    stride = per_dim(o.get("stride"), n, None)
    stride = [k if s is None else s for s, k in zip(stride, kernel)]
    padding = per_dim(o.get("padding"), n, 0)
    more = []
    for m, k, s, p in zip(x.s[-n:], kernel, stride, padding):
        room = m + 2 * p - k
        if room < 0:
            raise Unsuitable("the window does not fit")
        places = -(-room // s) + 1 if o.get("ceilMode") else room // s + 1
        if o.get("ceilMode") and (places - 1) * s >= m + p:
            places -= 1
        more.append(max(0, (places - 1) * s + k - m - 2 * p))
    cut = lambda a: taps(padded(a[0], padding, a[1], more), kernel, stride, [1] * n)
    inside = cut((np.ones(x.s, dtype=bool), False))
    framed = np.pad(np.ones(x.s, dtype=bool), [(0, 0)] * (x.a.ndim - n) + [(p, p) for p in padding], constant_values=True)
    width = [(0, 0)] * (x.a.ndim - n) + [(0, e) for e in more]
    counted = taps(np.pad(framed, width, constant_values=False), kernel, stride, [1] * n)
    numbers = np.broadcast_to(np.arange(int(np.prod(x.s[-n:]))).reshape(x.s[-n:]), x.s)
    return cut((x.a, value)), inside, counted, cut((numbers, 0))


def avg_pool(n):
    def op(x, kernel, o=None):
        o = o or {}
        wide = T(x.d if is_float(x.d) else "float32", x.a.astype(LD))
        w, inside, counted, _ = pool_windows(wide, n, kernel, o, 0)
        axes = tuple(range(w.ndim - n, w.ndim))
        by_all = o.get("countIncludePad", True)
        size = (counted if by_all else inside).sum(axis=axes, keepdims=True)
        return T(wide.d, fl(wide.d, sum_up(wide.d, np.where(inside, w, 0) / size, axes), 2))

    return op


def max_pool(n, both=False):
    def op(x, kernel, o=None):
        low = LD(-np.inf) if is_float(x.d) else np.iinfo(x.a.dtype).min
        w, inside, _, numbers = pool_windows(x, n, kernel, o or {}, low)
        flat = lambda a: a.reshape(a.shape[: w.ndim - n] + (-1,))
        if not flat(inside).any(axis=-1).all():
            raise Unsuitable("an empty window")
        # elements of the frame never win, not even over the lowest integer
        key = np.where(flat(inside), flat(w).astype(LD), LD(-np.inf))
        at = key.argmax(axis=-1)[..., None]
        values = T(x.d, np.take_along_axis(flat(w), at, -1)[..., 0])
        return [values, T("int32", np.take_along_axis(flat(numbers), at, -1)[..., 0])] if both else values

    return op


def adaptive(n):
    def op(x, size):
        wanted = per_dim(size, n, 1)
        out = np.empty(x.s[:-n] + tuple(wanted), dtype=LD)
        for at in np.ndindex(*wanted):
            box = tuple(slice(i * m // k, -(-(i + 1) * m // k)) for i, m, k in zip(at, x.s[-n:], wanted))
            part = x.a[(Ellipsis,) + box]
            axes = tuple(range(part.ndim - n, part.ndim))
            size_of = int(np.prod(part.shape[-n:]))
            out[(Ellipsis,) + at] = fl(x.d, sum_up(x.d, part / size_of, axes), 2)
        return T(x.d, out)

    return op


# ---- normalisation and attention ----


def standard(x, dims, eps):
    return div(sub(x, mean(x, dims, True)), FUNCTIONS["sqrt"](add(variance(x, dims, True, 0), eps)))


def affine(x, o, shape=lambda p: p):
    if o.get("weight") is not None:
        x = mul(x, shape(o["weight"]))
    return add(x, shape(o["bias"])) if o.get("bias") is not None else x


def channels(x):
    return lambda p: T(p.d, p.a.reshape((-1,) + (1,) * (x.a.ndim - 2)))


def last(x, s):
    n = len(s) if isinstance(s, list) else 1
    return list(range(x.a.ndim - n, x.a.ndim))


def layer_norm(x, s, o=None):
    return affine(standard(x, last(x, s), (o or {}).get("eps", 1e-5)), o or {})


def rms_norm(x, s, o):
    return affine(div(x, FUNCTIONS["sqrt"](add(mean(mul(x, x), last(x, s), True), o["eps"]))), o)


def batch_norm(x, m, v, o):
    fit = channels(x)
    eps = o.get("eps", 1e-5)
    return affine(div(sub(x, fit(m)), fit(FUNCTIONS["sqrt"](add(v, eps)))), o, fit)


def group_norm(x, groups, o=None):
    parts = T(x.d, x.a.reshape(x.s[0], groups, -1))
    normal = standard(parts, [2], (o or {}).get("eps", 1e-5))
    return affine(T(x.d, normal.a.reshape(x.s)), o or {}, channels(x))


def normalize(x, o=None):
    return div(x, maximum(FUNCTIONS["sqrt"](total(mul(x, x), (o or {}).get("dim", 1), True)), 1e-12))


def cosine(x, y, o=None):
    dim = (o or {}).get("dim", 1)
    unit = lambda t: div(t, maximum(FUNCTIONS["sqrt"](total(mul(t, t), dim, True)), 1e-8))
    return total(mul(unit(x), unit(y)), dim)


def attention(q, k, v, o=None):
    o = o or {}
    scores = as_float(lambda a: a / np.sqrt(LD(q.s[-1])))(matmul(q, T(k.d, np.swapaxes(k.a, -1, -2))))
    if o.get("isCausal"):
        seen = np.tril(np.ones(scores.s[-2:], dtype=bool))
        scores = T(scores.d, np.where(seen, scores.a, LD(-np.inf)))
    return matmul(softmax(scores, -1), v)


# ---- losses ----


def reduced(x, o):
    how = (o or {}).get("reduction", "mean")
    return x if how == "none" else total(x) if how == "sum" else mean(x)


def class_loss(logs, target, o):
    rows = np.moveaxis(logs.a, 1, -1) if logs.a.ndim > 1 else logs.a
    chosen = np.take_along_axis(rows, target.a.astype(np.int64)[..., None], -1)[..., 0]
    losses = sub(0, T(logs.d, chosen))
    if o.get("weight") is None:
        return reduced(losses, o)
    w = T(o["weight"].d, o["weight"].a[target.a])
    weighted = mul(losses, w)
    return div(total(weighted), total(w)) if o.get("reduction", "mean") == "mean" else reduced(weighted, o)


def cross_entropy(x, target, o=None):
    return class_loss(sub(x, logsumexp(x, 0 if x.a.ndim == 1 else 1, True)), target, o or {})


def huber(smooth):
    def op(x, t, o=None):
        apart = absolute(sub(x, t))
        near = as_float(lambda a: a * a / 2, 3)(apart)
        far = as_float(lambda a: a - LD(0.5), 3, lambda a, y: a + 1)(apart)
        return reduced(where(T("bool", apart.a < 1), near, far), o)

    return op


def bce(x, t, o=None):
    tail = as_float(lambda a: np.log1p(np.exp(-np.abs(a))), 8)(x)
    return reduced(add(sub(maximum(x, 0), mul(x, t)), tail), o)


def glu(x, dim=-1):
    a, b = np.split(x.a, 2, axis=dim)
    return mul(T(x.d, a), FUNCTIONS["sigmoid"](T(x.d, b)))


def squared(x):
    return mul(x, x)


METHODS = {
    "einsum": lambda formula, *xs: einsum(formula, *xs),
    "matmul": matmul,
    "dot": matmul,
    "bmm": matmul,
    "mv": matmul,
    "outer": lambda x, y: einsum("i,j->ij", x, y),
    "inner": lambda x, y: einsum("ik,jk->ij", x, y),
    "linear": linear,
    "addmm": addmm,
    "baddbmm": addmm,
    "conv1d": conv,
    "conv2d": conv,
    "convTranspose1d": conv_transpose,
    "convTranspose2d": conv_transpose,
    "avgPool1d": avg_pool(1),
    "avgPool2d": avg_pool(2),
    "maxPool1d": max_pool(1),
    "maxPool2d": max_pool(2),
    "maxPool1dWithIndices": max_pool(1, True),
    "maxPool2dWithIndices": max_pool(2, True),
    "adaptiveAvgPool1d": adaptive(1),
    "adaptiveAvgPool2d": adaptive(2),
    "layerNorm": layer_norm,
    "rmsNorm": rms_norm,
    "batchNorm": batch_norm,
    "groupNorm": group_norm,
    "instanceNorm": lambda x, o=None: affine(standard(x, list(range(2, x.a.ndim)), 1e-5), o or {}, channels(x)),
    "normalize": normalize,
    "cosineSimilarity": cosine,
    "scaledDotProductAttention": attention,
    "mseLoss": lambda x, t, o=None: reduced(squared(sub(x, t)), o),
    "l1Loss": lambda x, t, o=None: reduced(absolute(sub(x, t)), o),
    "smoothL1Loss": huber(True),
    "huberLoss": huber(False),
    "bceWithLogits": bce,
    "crossEntropy": cross_entropy,
    "nllLoss": lambda x, t, o=None: class_loss(x, t, o or {}),
    "glu": glu,
}
__all__ = ["METHODS", "noise"]
