"""longca.attention and its operators."""

import math
import struct
from typing import Optional, Tuple

import torch
from torch import Tensor

from ._library import check, lib
from ._mask import Core, Mask
from ._plans import DTYPES, plans, use_device

# longca_forward_arguments and longca_backward_arguments
_TENSOR, _LSE, _STREAM = "P5q", "P3q", "P"
_FORWARD = struct.Struct(_TENSOR * 4 + _LSE + _STREAM + "P")
_BACKWARD = struct.Struct(_TENSOR * 5 + _LSE + _TENSOR * 3 + _STREAM + "PP")


def attention(q, k, v, mask, scale=None, sink=None, softcap=0.0, deterministic=False, return_lse=False):
    """softmax(scale · q kᵀ) v over the keys that `mask` allows.

    Tensors are [tokens, heads, dim], or [batch, heads, tokens, dim] with the same mask for every sequence of the
    batch; the last dimension is contiguous. k and v may have fewer heads than q (GQA): query head h reads KV head
    h · heads_k // heads_q. A query that sees no key gets 0. float32 and bfloat16 on the CPU, bfloat16 and float16 on a
    GPU; under autocast, tensors of other dtypes are cast.

    scale          of the scores; None: 1/√dim
    sink           [heads_q], a logit per query head that joins the softmax's denominator as a key without a value
                   would; differentiable. A query that sees no key then has the sink as its lse
    softcap        c: scores s become c · tanh(s / c); 0.0: as they are
    deterministic  gradients are equal to the bit from call to call
    return_lse     returns (o, lse), lse float32 [heads, tokens] or [batch, heads, tokens], −∞ for a query that sees
                   no key; it carries no gradient

    Raises ValueError with one sentence for arguments that do not fit, NotImplementedError for what no kernel takes.
    Differentiable once (not twice), and an operator: torch.compile needs no graph break.
    """
    if scale is not None and not (scale > 0 and math.isfinite(scale)):
        raise ValueError(f"scale = {scale}: above 0 and finite, or None for 1/√dim")
    _check(q, k, v, mask)
    if sink is not None:
        _check_sink(sink, q)
        sink = sink.float()
    if torch.is_autocast_enabled(q.device.type):
        dtype = torch.get_autocast_dtype(q.device.type)
        q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    if q.dtype not in DTYPES:
        raise NotImplementedError(f"q has dtype {q.dtype}: longca has kernels for float32, bfloat16 and float16")
    backward = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in (q, k, v, sink))
    o, lse = torch.ops.longca.attention(q, k, v, sink, mask._handle, 0.0 if scale is None else float(scale),
                                        float(softcap), deterministic, backward)
    return (o, lse.detach()) if return_lse else o


def _check(q, k, v, mask):
    if not isinstance(mask, Mask):
        raise TypeError(f"mask is a {type(mask).__name__}: a longca.Mask is meant")
    if q.dim() not in (3, 4) or k.dim() != q.dim() or v.dim() != q.dim():
        raise ValueError(f"q, k and v have {q.dim()}, {k.dim()} and {v.dim()} dimensions: "
                         "[tokens, heads, dim] or [batch, heads, tokens, dim]")
    if k.shape[:-1] == v.shape[:-1] and k.shape[-1] != v.shape[-1]:
        raise ValueError(f"k has head dimension {k.shape[-1]}, v has {v.shape[-1]}: of one dimension here")
    if k.shape != v.shape:
        raise ValueError(f"k is {list(k.shape)} and v is {list(v.shape)}: of one shape")
    if q.device != k.device or q.device != v.device:
        raise ValueError(f"q, k and v are on {q.device}, {k.device} and {v.device}: on one device")
    if q.dtype != k.dtype or q.dtype != v.dtype:
        raise ValueError(f"q, k and v have dtypes {q.dtype}, {k.dtype} and {v.dtype}: of one dtype")
    if q.dim() == 4 and q.shape[0] != k.shape[0]:
        raise ValueError(f"q has {q.shape[0]} sequences, k has {k.shape[0]}")
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q has head dimension {q.shape[-1]}, k has {k.shape[-1]}")
    tokens = 0 if q.dim() == 3 else 2
    tokens_q, tokens_k = q.shape[tokens], k.shape[tokens]
    if tokens_q == 0 or tokens_k == 0:
        raise ValueError(f"q has {tokens_q} tokens, k has {tokens_k}: at least 1")
    heads_q, heads_k = q.shape[1], k.shape[1]  # in both layouts
    if heads_k == 0 or heads_q == 0 or heads_q % heads_k != 0:
        raise ValueError(f"q has {heads_q} heads, k has {heads_k}: the KV heads must divide the query heads")
    if mask.tokens_q != tokens_q or mask.tokens_k != tokens_k:
        raise ValueError(f"the mask has {mask.tokens_q} queries and {mask.tokens_k} keys, "
                         f"q has {tokens_q} tokens and k has {tokens_k}")
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.shape[-1] > 1 and x.stride(-1) != 1:
            raise ValueError(f"{name} has stride {x.stride(-1)} in its last dimension: make it contiguous")


def _check_sink(sink, q):
    if list(sink.shape) != [q.shape[1]]:
        raise ValueError(f"sink is {list(sink.shape)}: one logit per query head is [{q.shape[1]}]")
    if sink.device != q.device:
        raise ValueError(f"sink is on {sink.device}, q on {q.device}: on one device")
    if not sink.is_floating_point():
        raise ValueError(f"sink has dtype {sink.dtype}: a floating-point one is meant")


def _dense(x):
    """x, or a copy if rows of it share memory or have gaps inside."""
    strides = x.stride()
    return x if strides[-1] == 1 and 0 not in strides else x.contiguous()


def _tensor(x):
    """Members of a longca_tensor; x is [tokens, heads, dim]."""
    return (x.data_ptr(), *x.shape, *x.stride()[:2])


def _lse(x):
    """Members of a longca_lse."""
    return (x.data_ptr(), *x.shape, x.stride(0))


def _pointer(x):
    return 0 if x is None else x.data_ptr()


def _zeros_like_sink(q, sink):
    return q.new_zeros(0 if sink is None else sink.shape[0], dtype=torch.float32)


def _sequences(lse, *tensors):
    """The tensors of each sequence as [tokens, heads, dim], after its lse."""
    if lse.dim() == 2:
        return ((lse, *tensors),)
    return ((lse[i], *(x[i].transpose(0, 1) for x in tensors)) for i in range(lse.shape[0]))


def _plan(q, k, sink, mask, scale, softcap, deterministic, backward):
    stream = 0
    if q.is_cuda:
        use_device(q.device.index)
        stream = torch.cuda.current_stream(q.device).cuda_stream
    shape = q.shape
    key = (Core.find(mask), shape[1], k.shape[1], shape[-1], q.dtype, q.device.type, scale, deterministic, softcap,
           sink is not None, stream)
    return plans.find(key, backward), stream


def _empty_like(x):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _empty_lse(q):
    shape = q.shape
    return q.new_empty((shape[1], shape[0]) if len(shape) == 3 else shape[:3], dtype=torch.float32)


@torch.library.custom_op("longca::attention", mutates_args=())
def _forward(q: Tensor, k: Tensor, v: Tensor, sink: Optional[Tensor], mask: Tensor, scale: float, softcap: float,
             deterministic: bool, backward: bool) -> Tuple[Tensor, Tensor]:
    q, k, v = _dense(q), _dense(k), _dense(v)
    sink = None if sink is None else sink.contiguous()
    plan, stream = _plan(q, k, sink, mask, scale, softcap, deterministic, backward)
    o, lse = _empty_like(q), _empty_lse(q)
    for l, *x in _sequences(lse, q, k, v, o):
        members = (*_tensor(x[0]), *_tensor(x[1]), *_tensor(x[2]), *_tensor(x[3]), *_lse(l), stream, _pointer(sink))
        check(lib.longca_forward(plan.pointer, _FORWARD.pack(*members)))
    return o, lse


@_forward.register_fake
def _(q, k, v, sink, mask, scale, softcap, deterministic, backward):
    return _empty_like(q), _empty_lse(q)


@torch.library.custom_op("longca::attention_backward", mutates_args=())
def _backward(dout: Tensor, q: Tensor, k: Tensor, v: Tensor, o: Tensor, lse: Tensor, sink: Optional[Tensor],
              mask: Tensor, scale: float, softcap: float,
              deterministic: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    dout, q, k, v = _dense(dout), _dense(q), _dense(k), _dense(v)
    sink = None if sink is None else sink.contiguous()
    plan, stream = _plan(q, k, sink, mask, scale, softcap, deterministic, True)
    dq, dk, dv, dsink = _empty_like(q), _empty_like(k), _empty_like(v), _zeros_like_sink(q, sink)
    of_sequence = torch.empty_like(dsink)
    for l, *x in _sequences(lse, dout, q, k, v, o, dq, dk, dv):
        inputs = (member for tensor in x[:5] for member in _tensor(tensor))
        gradients = (member for tensor in x[5:] for member in _tensor(tensor))
        check(lib.longca_backward(plan.pointer, _BACKWARD.pack(*inputs, *_lse(l), *gradients, stream, _pointer(sink),
                                                            of_sequence.data_ptr())))
        dsink += of_sequence
    return dq, dk, dv, dsink


@_backward.register_fake
def _(dout, q, k, v, o, lse, sink, mask, scale, softcap, deterministic):
    return _empty_like(q), _empty_like(k), _empty_like(v), _zeros_like_sink(q, sink)


def _setup_context(ctx, inputs, output):
    q, k, v, sink, mask, scale, softcap, deterministic, _ = inputs
    o, lse = output
    ctx.save_for_backward(q, k, v, o, lse, sink, mask)
    ctx.scale, ctx.softcap, ctx.deterministic = scale, softcap, deterministic


def _gradients(ctx, dout, _):
    q, k, v, o, lse, sink, mask = ctx.saved_tensors
    dq, dk, dv, dsink = torch.ops.longca.attention_backward(dout, q, k, v, o, lse, sink, mask, ctx.scale, ctx.softcap,
                                                            ctx.deterministic)
    return dq, dk, dv, None if sink is None else dsink, None, None, None, None, None


_forward.register_autograd(_gradients, setup_context=_setup_context)
