"""Writes edges.jsonl: what PyTorch says at the edges that a user meets and that random samples miss.

Ties, NaN, empty and 0-d tensors, mixed types, negative dims, options that change each other. One sample a line in the
form that sample.ts reads. Needs PyTorch, which nothing else here does: python3 test/conformance/edges.py
"""
import json
import math
import pathlib

import torch
import torch.nn.functional as F

NAN, INF = float("nan"), float("inf")
lines = []


def number(v):
    if isinstance(v, float):
        if math.isnan(v):
            return "nan"
        if math.isinf(v):
            return "inf" if v > 0 else "-inf"
        return float(f"{v:.9g}")
    return int(v) if isinstance(v, bool) else v


def encode(x, leaves=None):
    if isinstance(x, torch.Tensor):
        made = {"t": str(x.dtype)[6:], "s": list(x.shape), "v": [number(v) for v in x.detach().flatten().tolist()]}
        if leaves is not None and x.requires_grad:
            made["g"] = 1
            leaves.append(x)
        return made
    if isinstance(x, float) and not math.isfinite(x):
        return {"f": number(x)}
    if isinstance(x, torch.dtype):
        return {"dtype": str(x)[6:]}
    if isinstance(x, (list, tuple)):
        return {"l": [encode(y, leaves) for y in x]}
    return x


def outputs(o):
    return [o] if isinstance(o, torch.Tensor) else [t for y in o for t in outputs(y)] if isinstance(o, (list, tuple)) else []


def emit(op, fn, x, *args, variant="", **kwargs):
    leaves = []
    sample = {
        "op": op,
        "variant": variant,
        "dtype": str(x.dtype)[6:] if isinstance(x, torch.Tensor) else "float32",
        "input": encode(x, leaves),
        "args": [encode(a, leaves) for a in args],
        "kwargs": {k: encode(v, leaves) for k, v in kwargs.items()},
    }
    made = fn(x, *args, **kwargs)
    sample["out"] = encode(made)
    floats = [t for t in outputs(made) if t.dtype.is_floating_point and t.requires_grad]
    if leaves and floats:
        weight = lambda t: torch.tensor([((i * 7) % 11 - 5) / 5 for i in range(t.numel())], dtype=t.dtype)
        loss = sum((t.flatten() * weight(t)).sum() for t in floats)
        grads = torch.autograd.grad(loss, leaves, allow_unused=True)
        sample["grads"] = [None if g is None else encode(g) for g in grads]
    lines.append(json.dumps(sample, separators=(",", ":")))


def t(*values, dtype=torch.float32, grad=True):
    made = torch.tensor(*values, dtype=dtype)
    return made.requires_grad_(grad and made.dtype.is_floating_point)


def r(*shape):
    return torch.round(torch.randn(*shape) * 64) .div(64).requires_grad_()


torch.manual_seed(3)
ints = lambda *v: torch.tensor(*v, dtype=torch.int32)

# ---- extremes: ties, NaN, all dims, one dim, several ----
ties = t([[1, 3, 3, 2], [4, 4, 4, 4], [0, -1, -1, 5]])
holes = t([[1, NAN, 3], [NAN, NAN, 2], [-INF, 0, INF]])
for x in (ties, holes):
    for name in ("max", "min"):
        fn = getattr(torch, name)
        emit(name, fn, x)
        for dim in (0, -1):
            emit(name, fn, x, dim, True, variant="reduction_with_dim")
            emit(name, fn, x, dim, variant="reduction_with_dim")
    for name in ("amax", "amin"):
        emit(name, getattr(torch, name), x, dim=[0, 1], keepdim=True)
        emit(name, getattr(torch, name), x, dim=-1, keepdim=False)
    emit("aminmax", torch.aminmax, x, dim=1)
    for name in ("median", "nanmedian"):
        emit(name, getattr(torch, name), x)
        emit(name, getattr(torch, name), x, 1)
    for name in ("argmax", "argmin", "sort", "argsort", "cummax", "cummin", "nansum", "nanmean", "logsumexp", "softmax", "log_softmax", "logcumsumexp"):
        emit(name, getattr(torch, name), x, -1)
    emit("topk", torch.topk, x, 2, 0)
    emit("kthvalue", torch.kthvalue, x, 2, 0)
emit("mode", torch.mode, ties)
emit("mode", torch.mode, ties, 0, True)
emit("quantile", torch.quantile, r(3, 5), torch.tensor([0.1, 0.5, 0.9]), 1, interpolation="nearest")
emit("quantile", torch.quantile, holes, 0.25, 1, True)
emit("nanquantile", torch.nanquantile, holes, 0.25, 1)
for how in ("linear", "lower", "higher", "midpoint"):
    emit("quantile", torch.quantile, r(3, 5), 0.3, 0, interpolation=how)
for name in ("maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "copysign", "xlogy", "logaddexp", "pow", "fmod", "remainder"):
    emit(name, getattr(torch, name), t([0, -1, NAN, 2, INF, 0]), t([0, -1, 1, NAN, INF, -2]))
for name in ("relu", "elu", "selu", "celu", "hardtanh", "relu6", "hardsigmoid", "hardswish", "leaky_relu", "softplus", "mish", "silu", "softsign", "hardshrink", "softshrink", "tanhshrink", "logsigmoid"):
    emit(f"nn.functional.{name}", getattr(F, name), t([-INF, -3, -0.5, 0, 0.5, 3, 6, INF, NAN]))
emit("nn.functional.gelu", F.gelu, t([-30, -3, -0.5, 0, 0.5, 3, 30]))

# ---- zeros ----
emit("prod", torch.prod, t([0, 2, 0, 3]))
emit("prod", torch.prod, t([[0, 2], [1, 3]]), 1, keepdim=True)
emit("cumprod", torch.cumprod, t([2, 0, 3, 0, 4]), 0)
emit("std", torch.std, t([2, 2, 2]))
emit("var", torch.var, t([2.0]))
for p in (0, 0.5, 1, 2, 3, INF, -INF):
    emit("linalg.vector_norm", torch.linalg.vector_norm, t([[0, 0], [3, -3]]), ord=p, dim=1, keepdim=False)
emit("nn.functional.normalize", F.normalize, t([[0, 0], [3, 4]]))
emit("nn.functional.cosine_similarity", F.cosine_similarity, t([[0, 0], [3, 4]]), t([[1, 2], [3, 4]]), dim=1)

# ---- empty and 0-d ----
for name in ("sum", "prod", "mean", "logsumexp", "any", "all", "std"):
    fn = getattr(torch, name)
    if name != "prod":
        emit(name, fn, torch.empty(0, 3), dim=0)
        emit(name, fn, torch.empty(2, 0, 3), dim=[1], keepdim=True)
    emit(name, fn, torch.empty(2, 0), dim=0) if name != "prod" else emit(name, fn, torch.empty(0, 3), 0)
    emit(name, fn, t(2.5), dim=-1) if name != "prod" else emit(name, fn, t(2.5), 0)
for name in ("cumsum", "cumprod", "softmax", "log_softmax", "sort", "argmax", "max", "squeeze"):
    emit(name, getattr(torch, name), t(2.5), 0)
emit("cat", torch.cat, [torch.empty(0), r(2, 3)], dim=0)
emit("matmul", torch.matmul, torch.empty(2, 0), torch.empty(0, 3))
emit("matmul", torch.matmul, r(3), r(2, 3, 4))
emit("matmul", torch.matmul, r(2, 1, 3, 4), r(5, 4, 2))

# ---- mixed types ----
for op in ("add", "sub", "mul", "true_divide", "floor_divide", "remainder", "maximum", "eq", "lt", "fmod"):
    fn = getattr(torch, op)
    emit(op, fn, ints([7, -7, 6]), t([2, 2, -2.5], grad=False))
    if op != "maximum":  # takes no plain numbers
        emit(op, fn, ints([7, -7, 6]), 2)
        emit(op, fn, ints([7, -7, 6]), 2.5)
    emit(op, fn, torch.tensor([7, 6], dtype=torch.uint8), torch.tensor([-2, 3], dtype=torch.int8))
for op in ("add", "mul", "maximum", "eq"):
    emit(op, getattr(torch, op), torch.tensor([True, False]), ints([3, 4]))
emit("div", torch.div, ints([7, -7, 6]), ints([2, 2, -4]), rounding_mode="floor")
emit("div", torch.div, t([7, -7, 6]), t([2, 2, 0]), rounding_mode="trunc")
emit("pow", torch.pow, ints([2, -3, 0]), ints([3, 3, 0]))
for name in ("sum", "mean", "prod", "cumsum", "var"):
    if name not in ("mean", "var"):
        emit(name, getattr(torch, name), torch.tensor([True, True, False]), 0)
    emit(name, getattr(torch, name), torch.tensor([100, 100, 100], dtype=torch.int16).float(), 0)

# ---- losses ----
for red in ("mean", "sum", "none"):
    for smooth in (0.0, 0.3):
        ce = dict(reduction=red, label_smoothing=smooth)
        emit("nn.functional.cross_entropy", F.cross_entropy, r(4, 5), torch.tensor([1, -100, 0, 4]), weight=torch.rand(5), **ce)
        emit("nn.functional.cross_entropy", F.cross_entropy, r(4, 5), torch.softmax(r(4, 5), 1).detach(), weight=torch.rand(5), **ce)
        emit("nn.functional.cross_entropy", F.cross_entropy, r(2, 5, 3), torch.tensor([[0, 2, 4], [2, 2, 1]]), ignore_index=2, **ce)
        emit("nn.functional.cross_entropy", F.cross_entropy, r(5), torch.tensor(3), **ce)
    emit("nn.functional.mse_loss", F.mse_loss, r(3, 1), r(1, 4), reduction=red)
    emit("nn.functional.l1_loss", F.l1_loss, r(3, 1), r(1, 4), reduction=red)
    emit("nn.functional.smooth_l1_loss", F.smooth_l1_loss, r(3, 1), r(4), reduction=red, beta=0.0)
    emit("nn.functional.huber_loss", F.huber_loss, r(3, 1), r(4), reduction=red, delta=0.3)
    emit("nn.functional.kl_div", F.kl_div, r(3, 4), torch.rand(3, 4), reduction=red)
    emit("nn.functional.binary_cross_entropy", F.binary_cross_entropy, t([0, 1, 0.25]), t([0, 0, 1], grad=False), reduction=red)
    logits = dict(weight=torch.rand(4), reduction=red, pos_weight=torch.rand(4))
    emit("nn.functional.binary_cross_entropy_with_logits", F.binary_cross_entropy_with_logits, r(3, 4), torch.rand(3, 4), **logits)
    emit("nn.functional.multi_margin_loss", F.multi_margin_loss, r(3, 4), torch.tensor([1, 0, 3]), p=2, weight=torch.rand(4), reduction=red)
    emit("nn.functional.multilabel_margin_loss", F.multilabel_margin_loss, r(2, 4), torch.tensor([[1, 3, -1, 0], [2, -1, 1, 1]]), reduction=red)
    emit("nn.functional.multilabel_soft_margin_loss", F.multilabel_soft_margin_loss, r(2, 4), torch.rand(2, 4), weight=torch.rand(4), reduction=red)
    emit("nn.functional.gaussian_nll_loss", F.gaussian_nll_loss, r(3, 4), r(3, 4), torch.rand(3, requires_grad=True), full=True, reduction=red)
emit("nn.functional.kl_div", F.kl_div, r(3, 4), r(3, 4), reduction="batchmean", log_target=True)

# ---- windows ----
for mode in ("reflect", "replicate", "circular"):
    emit("nn.functional.pad", F.pad, r(1, 2, 3, 4), [1, 2, 2, 1], mode=mode)
emit("nn.functional.pad", F.pad, r(2, 3, 4), [-1, 2, 1, -1, 0, 1], value=2.5)
for ceil in (False, True):
    for count in (False, True):
        emit("nn.functional.avg_pool2d", F.avg_pool2d, r(1, 1, 5, 6), (3, 2), (2, 3), (1, 1), ceil, count)
    pool = dict(kernel_size=(3, 2), stride=(2, 3), padding=(1, 1), dilation=(1, 2), ceil_mode=ceil, return_indices=True)
    emit("nn.functional.max_pool2d", F.max_pool2d, r(1, 2, 5, 6), **pool)
emit("nn.functional.max_pool2d", F.max_pool2d, t([[[1, NAN], [2, 3]]]), kernel_size=2, return_indices=True)
values, places = F.max_pool2d(r(1, 1, 5, 5), 3, 2, return_indices=True)
emit("nn.functional.max_unpool2d", F.max_unpool2d, values.detach().requires_grad_(), places, 3, 2)
for mode in ("bilinear", "bicubic"):
    for corners in (False, True):
        resize = dict(mode=mode, align_corners=corners, antialias=True)
        emit("nn.functional.interpolate", F.interpolate, r(1, 1, 5, 6), size=[3, 2], **resize)
        emit("nn.functional.interpolate", F.interpolate, r(1, 1, 4, 3), scale_factor=[0.6, 1.6], **resize)

# ---- attention and normalisation ----
attend = F.scaled_dot_product_attention
emit("nn.functional.scaled_dot_product_attention", attend, r(1, 4, 3, 2), r(1, 2, 4, 2), r(1, 2, 4, 2), enable_gqa=True)
emit("nn.functional.scaled_dot_product_attention", attend, r(1, 1, 3, 2), r(1, 1, 4, 2), r(1, 1, 4, 3), attn_mask=torch.rand(3, 4) > 0.4)
emit("nn.functional.scaled_dot_product_attention", attend, r(1, 1, 3, 2), r(1, 1, 4, 2), r(1, 1, 4, 3), attn_mask=torch.randn(3, 4), scale=0.3)
emit("nn.functional.scaled_dot_product_attention", attend, r(1, 1, 3, 2), r(1, 1, 4, 2), r(1, 1, 4, 3), is_causal=True)
for training in (True, False):
    stats = (torch.rand(3), torch.rand(3), r(3), r(3))
    emit("nn.functional.batch_norm", F.batch_norm, r(4, 3, 2), *stats, training=training, momentum=0.3, eps=0.1)

# ---- indices ----
for reduce in ("sum", "mean", "prod", "amax", "amin"):
    for own in (True, False):
        emit("scatter_reduce", torch.scatter_reduce, r(3, 4), 1, torch.tensor([[0, 0, 3], [1, 1, 1], [2, 0, 2]]), r(3, 3), reduce, include_self=own, variant=reduce)
emit("index_copy", torch.index_copy, r(3, 2), 0, torch.tensor([1, 1]), r(2, 2))
emit("index_add", torch.index_add, r(3, 2), 0, torch.tensor([1, 1]), r(2, 2), alpha=2)
emit("masked_scatter", torch.masked_scatter, r(3), torch.tensor([[True, False, True], [False, True, True]]), r(4))
for right in (False, True):
    emit("searchsorted", torch.searchsorted, t([1, 2, 4]), t([2, NAN, 0, 5]), right=right)
emit("einsum", lambda x, e: torch.einsum(e, *x), [r(2, 3, 4), r(4, 2)], "...i,ij->...j")
emit("einsum", lambda x, e: torch.einsum(e, *x), [r(3, 3)], "ii->i")
emit("einsum", lambda x, e: torch.einsum(e, *x), [r(2, 3), r(2, 3)], "ab,ab")

# ---- numbers ----
emit("polygamma", torch.polygamma, 2, t([0.3, 5, 50, -0.5]))
emit("digamma", torch.digamma, t([0.3, 5, 50, -0.5]))
emit("mvlgamma", torch.mvlgamma, t([2.5, 7]), 3)
for op, fn in (("i0", torch.i0), ("special.i1", torch.special.i1)):
    emit(op, fn, t([-20, -3, 0, 1, 7.9, 8.1, 50]))
emit("frexp", torch.frexp, t([0, 1e-42, -3, 8, 1e30, -1e-38], grad=False))
emit("nextafter", torch.nextafter, t([0, 1, -1, 1, 0]), t([1, 0, 1, 1, -1]))
emit("gcd", torch.gcd, ints([0, -48, 17, 2147483647, 1836311903]), ints([0, 36, 0, 2, 1134903170]))
emit("lcm", torch.lcm, ints([0, -4, 7]), ints([3, 6, 0]))
emit("arange", torch.arange, -0.9, 2.1, 2.0, dtype=torch.int32)
emit("logspace", torch.logspace, 0, 4, 5, dtype=torch.int32)

pathlib.Path(__file__).with_name("edges.jsonl").write_text("\n".join(lines) + "\n")
print(len(lines), "samples")
