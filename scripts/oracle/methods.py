"""Movement, reductions, order and indexing of the oracle, on numpy's own functions."""

import numpy as np
from arrays import BITS, LD, T, Unsuitable, cast, fl, is_float, noise, product_type, promote, round_to, sum_type, sum_up, to_float
from elementwise import FUNCTIONS, add, as_float, div, mul, sub, together

# ---- movement ----


def same(f):
    """A method that only moves elements."""
    return lambda x, *args: T(x.d, f(x.a, *args))


def sizes(args):
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], list) else tuple(args)


def pad(x, amounts, mode="constant", value=0):
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode == "constant":
        filler = round_to(x.d, LD(value)) if is_float(x.d) else int(value)
        return T(x.d, np.pad(x.a, amounts, "constant", constant_values=filler))
    return T(x.d, np.pad(x.a, amounts, names[mode]))


def cat(x, others, dim=0):
    d = x.d
    for t in others:
        d = promote(d, t.d)
    return T(d, np.concatenate([cast(t, d).a for t in [x, *others]], axis=dim))


def stack(x, others, dim=0):
    return T(x.d, np.stack([t.a for t in [x, *others]], axis=dim))


def shrink(a, cuts):
    return a[tuple(slice(None) if c is None else slice(*c) for c in cuts)]


def stride(a, *steps):
    return a[tuple(slice(None, None, k) for k in sizes(steps))]


def split(x, parts, dim=0):
    return [T(x.d, p) for p in np.split(x.a, np.cumsum(parts)[:-1], axis=dim)]


def unfold(a, dim, size, step):
    windows = np.lib.stride_tricks.sliding_window_view(a, size, axis=dim)
    return np.take(windows, range(0, windows.shape[dim], step), axis=dim)


def expand(a, *wanted):
    s = sizes(wanted)
    lead = len(s) - a.ndim
    return np.broadcast_to(a, tuple(a.shape[i - lead] if n == -1 else n for i, n in enumerate(s)))


def flatten(a, start=0, end=-1):
    i, j = start % max(a.ndim, 1), end % max(a.ndim, 1)
    return a.reshape(a.shape[:i] + (-1,) + a.shape[j + 1 :])


def squeeze(a, dim=None):
    return np.squeeze(a) if dim is None else np.squeeze(a, axis=dim)


MOVEMENT = {
    "reshape": same(lambda a, *s: a.reshape(sizes(s))),
    "permute": same(lambda a, *s: np.transpose(a, sizes(s))),
    "transpose": same(lambda a, i=-2, j=-1: np.swapaxes(a, i, j)),
    "movedim": same(np.moveaxis),
    "expand": same(expand),
    "flatten": same(flatten),
    "unsqueeze": same(lambda a, dim: np.expand_dims(a, dim)),
    "squeeze": same(squeeze),
    "shrink": same(shrink),
    "pad": pad,
    "flip": same(lambda a, dims: np.flip(a, tuple(dims) if isinstance(dims, list) else dims)),
    "stride": same(stride),
    "cat": cat,
    "stack": stack,
    "repeat": same(lambda a, *n: np.tile(a, sizes(n))),
    "roll": same(lambda a, by, dim=None: np.roll(a, by, dim)),
    "tril": same(lambda a, k=0: np.tril(a, k)),
    "triu": same(lambda a, k=0: np.triu(a, k)),
    "diagonal": same(lambda a, k=0: np.diagonal(a, k)),
    "unfold": same(unfold),
    "narrow": same(lambda a, dim, start, n: np.take(a, range(start, start + n), axis=dim)),
    "select": same(lambda a, dim, i: np.take(a, i, axis=dim)),
    "split": split,
    "rot90": same(lambda a, k=1: np.rot90(a, k)),
    "repeatInterleave": same(lambda a, n, dim: np.repeat(a, n, axis=dim)),
    "contiguous": same(lambda a: a),
    "clone": same(lambda a: a),
    "detach": same(lambda a: a),
}

# ---- reductions ----


def axes_of(x, dim):
    if dim is None or dim == []:
        return tuple(range(x.a.ndim))
    dims = [dim] if isinstance(dim, int) else dim
    return tuple(d % max(x.a.ndim, 1) for d in dims) if x.a.ndim else ()


def kept(a, x, axes, keep):
    return a.reshape([1 if i in axes else n for i, n in enumerate(x.s)]) if keep else a


def total(x, dim=None, keep=False):
    axes = axes_of(x, dim)
    d = sum_type(x.d)
    wide = cast(x, d)
    out = sum_up(d, wide.a, axes) if is_float(d) else wide.a.sum(axis=axes, dtype=d)
    return T(d, kept(np.asarray(out), x, axes, keep))


def count(x, dim):
    return int(np.prod([x.s[i] for i in axes_of(x, dim)]))


def mean(x, dim=None, keep=False):
    n = count(x, dim)
    # a mean of integers does not wrap: sums that could are those of floats
    bits = BITS[x.d] - (0 if x.d.startswith("u") or x.d == "bool" else 1)
    wraps = not is_float(x.d) and BITS[x.d] < 64 and n * 2**bits > 2**31 - 1
    return as_float(lambda a: a / n, 2)(total(cast(x, to_float(x.d)) if wraps else x, dim, keep))


def variance(x, dim=None, keep=False, correction=1):
    n = count(x, dim) - correction
    if n <= 0:
        raise Unsuitable("too few elements")
    apart = sub(cast(x, to_float(x.d)), mean(x, dim, True))
    return as_float(lambda a: a / n, 2)(total(mul(apart, apart), dim, keep))


def extreme(f):
    def op(x, dim=None, keep=False):
        axes = axes_of(x, dim)
        return T(x.d, kept(np.asarray(f(x.a, axis=axes)), x, axes, keep))

    return op


amax, amin = extreme(np.max), extreme(np.min)


def product(x, dim=None, keep=False):
    axes = axes_of(x, dim)
    d = product_type(x.d)
    a = cast(x, d).a
    if not is_float(d):
        return T(d, kept(np.asarray(a.prod(axis=axes, dtype=d)), x, axes, keep))
    wide = "float64" if d == "float64" else "float32"
    rows = np.moveaxis(a, axes, range(len(axes))).reshape((-1,) + tuple(n for i, n in enumerate(x.s) if i not in axes))
    out = np.ones(rows.shape[1:], dtype=LD)
    for row in rows:
        out = fl(wide, out * row)
    return T(d, kept(fl(d, out), x, axes, keep))


def place(f):
    def op(x, dim=None, keep=False):
        out = f(x.a, axis=dim) if x.a.ndim else np.asarray(0)
        return T("int32", np.expand_dims(out, dim) if keep and x.a.ndim and dim is not None else out)

    return op


argmax, argmin = place(np.argmax), place(np.argmin)


def logsumexp(x, dim=None, keep=False):
    axes = axes_of(x, dim)
    top = amax(cast(x, to_float(x.d)), dim, True)
    rest = as_float(np.log, 4, lambda a, y: np.maximum(1, y))(total(FUNCTIONS["exp"](sub(x, top)), dim, True))
    out = add(rest, top)
    return out if keep else T(out.d, out.a.reshape([n for i, n in enumerate(x.s) if i not in axes]))


def norm(x, order=2, dim=None, keep=False):
    size = as_float(np.abs)(x)
    if order == 1:
        return total(size, dim, keep)
    if order == np.inf:
        return amax(size, dim, keep)
    return FUNCTIONS["sqrt"](total(mul(size, size), dim, keep))


def truths(f):
    def op(x, dim=None, keep=False):
        axes = axes_of(x, dim)
        return T("bool", kept(np.asarray(f(x.a != 0, axis=axes)), x, axes, keep))

    return op


def softmax(x, dim=-1):
    e = FUNCTIONS["exp"](sub(x, amax(cast(x, to_float(x.d)), dim, True)))
    return div(e, total(e, dim, True))


def typed_sum(x, dim=None, keep=False, o=None):
    if not o:
        return total(x, dim, keep)
    return cast(total(cast(x, o["dtype"]), dim, keep), o["dtype"])


# ---- order ----


def sorted_both(x, dim=-1, descending=False):
    if x.a.ndim == 0:
        return [x, T("int32", 0)]
    a = np.moveaxis(x.a, dim, -1)
    at = np.argsort(a, axis=-1, kind="stable")
    if descending:
        # stable the other way round: equal elements keep their order
        at = a.shape[-1] - 1 - np.flip(np.argsort(np.flip(a, -1), axis=-1, kind="stable"), -1)
    values = np.take_along_axis(a, at, -1)
    return [T(x.d, np.moveaxis(values, -1, dim)), T("int32", np.moveaxis(at, -1, dim))]


def topk(x, k, dim=-1, largest=True):
    return [T(t.d, np.take(t.a, range(k), axis=dim)) for t in sorted_both(x, dim, largest)]


def nth(x, k, dim, keep):
    both = [np.take(t.a, [k], axis=dim) for t in sorted_both(x, dim)]
    values, at = both if keep else [np.squeeze(a, axis=dim) for a in both]
    return [T(x.d, values), T("int32", at)]


def median(x, dim=None, keep=False):
    if dim is None:
        return T(x.d, np.sort(x.a, axis=None)[(x.a.size - 1) // 2])
    return nth(x, (x.s[dim] - 1) // 2, dim, keep)


def scan_sum(x, dim):
    d = sum_type(x.d)
    a = np.moveaxis(cast(x, d).a, dim, -1)
    if not is_float(d):
        return T(d, np.cumsum(cast(x, d).a, axis=dim, dtype=d))
    out = [sum_up(d, a[..., : i + 1], (a.ndim - 1,)) for i in range(a.shape[-1])]
    return T(d, np.moveaxis(np.stack(out, -1), -1, dim))


def scan_prod(x, dim):
    d = product_type(x.d)
    if not is_float(d):
        return T(d, np.cumprod(cast(x, d).a, axis=dim, dtype=d))
    a = np.moveaxis(cast(x, d).a, dim, -1)
    out = []
    for i in range(a.shape[-1]):
        last = np.ones(a.shape[:-1], dtype=LD)
        for k in range(i + 1):
            last = fl("float64" if d == "float64" else "float32", last * a[..., k])
        out.append(last)
    return T(d, np.moveaxis(np.stack(out, -1), -1, dim))


def scan_best(better):
    def op(x, dim):
        a = np.moveaxis(x.a, dim, -1)
        at = np.zeros(a.shape, dtype=np.int32)
        for i in range(1, a.shape[-1]):
            before = np.take_along_axis(a, at[..., i - 1 : i], -1)[..., 0]
            at[..., i] = np.where(better(before, a[..., i]), at[..., i - 1], i)
        values = np.take_along_axis(a, at, -1)
        return [T(x.d, np.moveaxis(values, -1, dim)), T("int32", np.moveaxis(at, -1, dim))]

    return op


def scan_logsumexp(x, dim):
    parts = [logsumexp(T(x.d, np.take(x.a, range(i + 1), axis=dim)), dim, True).a for i in range(x.s[dim])]
    return T(to_float(x.d), np.concatenate(parts, axis=dim))


def searchsorted(x, values, o=None):
    side = "right" if o and o.get("right") else "left"
    return T("int32", np.searchsorted(x.a, values.a, side=side))


def diff(x, n=1, dim=-1):
    a = np.moveaxis(x.a, dim, 0)
    return T(x.d, np.moveaxis(sub(T(x.d, a[1:]), T(x.d, a[:-1])).a, 0, dim))


REDUCE = {
    "sum": typed_sum,
    "mean": mean,
    "prod": product,
    "max": amax,
    "min": amin,
    "amax": amax,
    "amin": amin,
    "any": truths(np.any),
    "all": truths(np.all),
    "countNonzero": lambda x, dim=None: T("int32", np.count_nonzero(x.a, axis=axes_of(x, dim))),
    "var": variance,
    "std": lambda x, dim=None, keep=False, c=1: FUNCTIONS["sqrt"](variance(x, dim, keep, c)),
    "logsumexp": logsumexp,
    "vectorNorm": norm,
    "argmax": argmax,
    "argmin": argmin,
    "maxWithIndices": lambda x, dim, keep=False: [amax(x, dim, keep), argmax(x, dim, keep)],
    "minWithIndices": lambda x, dim, keep=False: [amin(x, dim, keep), argmin(x, dim, keep)],
    "cumsum": scan_sum,
    "cumprod": scan_prod,
    "cummax": scan_best(np.greater),
    "cummin": scan_best(np.less),
    "logcumsumexp": scan_logsumexp,
    "sort": sorted_both,
    "argsort": lambda x, dim=-1, down=False: sorted_both(x, dim, down)[1],
    "msort": lambda x: sorted_both(x, 0)[0],
    "topk": topk,
    "kthvalue": lambda x, k, dim=-1, keep=False: nth(x, k - 1, dim, keep),
    "median": median,
    "searchsorted": searchsorted,
    "diff": diff,
    "softmax": softmax,
    "softmin": lambda x, dim=-1: softmax(sub(0, x), dim),
    "logSoftmax": lambda x, dim=-1: sub(x, logsumexp(x, dim, True)),
}

# ---- indexing ----


def filler(d, x):
    return cast(x, d).a if isinstance(x, T) else together([x], d)[1][0]


def python_index(index):
    """The index of numpy that stands for one of the program."""
    out = []
    for i in index:
        if isinstance(i, T):
            out.append(i.a.astype(np.int64))
        elif isinstance(i, list):
            out.append(slice(*(i or [None])))
        else:
            out.append(Ellipsis if i == "..." else i)
    return tuple(out)


def setitem(x, index, value):
    a = x.a.copy()
    a[python_index(index)] = filler(x.d, value)
    return T(x.d, a)


def joined(x, to, join, self=True):
    """What goes to each flat place, after what was there, combined."""
    here = [[e] for e in x.a.ravel()]
    for i, e in to:
        here[i].append(e)
    out = []
    for v in here:
        if len(v) == 1:
            out.append(v[0])
            continue
        terms = np.array(v if self else v[1:], dtype=x.a.dtype)
        if join == "last":
            out.append(terms[-1])
        elif join in ("amax", "amin"):
            out.append(terms.max() if join == "amax" else terms.min())
        elif join in ("sum", "add"):
            out.append(sum_up(x.d, terms, (0,)) if is_float(x.d) else terms.sum(dtype=x.a.dtype))
        elif join == "mean":
            out.append(fl(x.d, sum_up(x.d, terms, (0,)) / len(terms), 2))
        else:
            out.append(product(T(x.d, terms)).a if is_float(x.d) else terms.prod(dtype=x.a.dtype))
    return T(x.d, np.array([np.asarray(e).reshape(()) for e in out], dtype=x.a.dtype).reshape(x.s))


def scatter(x, dim, index, src, join="last", self=True):
    flat = np.arange(x.a.size).reshape(x.s)
    to = []
    for at in np.ndindex(index.s):
        place = list(at)
        place[dim] = int(index.a[at])
        to.append((flat[tuple(place)], src.a[at] if isinstance(src, T) else filler(x.d, src)))
    return joined(x, to, join, self)


def by_slices(x, dim, index, source, join):
    flat = np.arange(x.a.size).reshape(x.s)
    to = []
    for at in np.ndindex(source.s):
        place = list(at)
        place[dim] = int(index.a.ravel()[at[dim]])
        to.append((flat[tuple(place)], source.a[at]))
    return joined(x, to, join)


def index_fill(x, dim, index, value):
    a = x.a.copy()
    a[(slice(None),) * (dim % x.a.ndim) + (index.a.astype(np.int64),)] = filler(x.d, value)
    return T(x.d, a)


def put(x, index, source, o=None):
    to = [(int(i) % x.a.size, e) for i, e in zip(index.a.ravel(), source.a.ravel())]
    return joined(x, to, "add" if o and o.get("accumulate") else "last")


def masked_fill(x, mask, value):
    return T(x.d, np.where(mask.a, filler(x.d, value), x.a))


INDEXING = {
    "gather": lambda x, dim, i: T(x.d, x.a[gathered(x, dim, i)]),
    "takeAlongDim": lambda x, i, dim: T(x.d, x.a[gathered(x, dim, i)]),
    "indexSelect": lambda x, dim, i: T(x.d, np.take(x.a, i.a, axis=dim)),
    "take": lambda x, i: T(x.d, x.a.ravel()[i.a]),
    "embedding": lambda x, w: T(w.d, w.a[x.a]),
    "get": lambda x, *index: T(x.d, x.a[python_index(index)]),
    "setitem": setitem,
    "oneHot": lambda x, n: T("int32", x.a[..., None] == np.arange(n)),
    "scatter": lambda x, dim, i, src, o=None: scatter(x, dim, i, src, (o or {}).get("reduce", "last")),
    "scatterAdd": lambda x, dim, i, src: scatter(x, dim, i, src, "add"),
    "scatterReduce": lambda x, dim, i, src, how, o=None: scatter(x, dim, i, src, how, (o or {}).get("includeSelf", True)),
    "indexAdd": lambda x, dim, i, src: by_slices(x, dim, i, src, "add"),
    "indexCopy": lambda x, dim, i, src: by_slices(x, dim, i, src, "last"),
    "indexFill": index_fill,
    "put": put,
    "maskedFill": masked_fill,
}


def gathered(x, dim, index):
    """Open grids of the other dims, and the index itself along `dim`."""
    grid = list(np.indices(index.s, sparse=True))
    grid[dim] = index.a.astype(np.int64)
    return tuple(grid)


METHODS = {**MOVEMENT, **REDUCE, **INDEXING}
__all__ = ["METHODS", "mean", "noise", "softmax", "total", "variance"]
