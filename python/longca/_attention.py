"""longca.attention and its operators."""

import math
import struct
from typing import Literal, Optional, Union, overload

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling

from ._library import check, lib
from ._mask import Core, Mask, flag, short
from ._plans import DEVICES, DTYPES, plans, use_device

# Normal numbers of float32, as the library takes them.
MIN_SCALE, MAX_SCALE = torch.finfo(torch.float32).tiny, torch.finfo(torch.float32).max
_SCALES = f"above 0, in the range of float32 ({MIN_SCALE:.8g} to {MAX_SCALE:.8g}), or None for 1/√dim"
_SOFTCAPS = "0, or from 0.001 to 1000000"

# longca_forward_arguments and longca_backward_arguments
_TENSOR, _LSE, _STREAM = "P5q", "P3q", "P"
_FORWARD = struct.Struct(_TENSOR * 4 + _LSE + _STREAM + "P")
_BACKWARD = struct.Struct(_TENSOR * 5 + _LSE + _TENSOR * 3 + _STREAM + "PP")


@overload
def attention(q: Tensor, k: Tensor, v: Tensor, mask: Mask, scale: Optional[float] = None, sink: Optional[Tensor] = None,
              softcap: float = 0.0, deterministic: bool = False, return_lse: Literal[False] = False) -> Tensor: ...


@overload
def attention(q: Tensor, k: Tensor, v: Tensor, mask: Mask, scale: Optional[float] = None, sink: Optional[Tensor] = None,
              softcap: float = 0.0, deterministic: bool = False, *,
              return_lse: Literal[True]) -> "tuple[Tensor, Tensor]": ...


@overload
def attention(q: Tensor, k: Tensor, v: Tensor, mask: Mask, scale: Optional[float], sink: Optional[Tensor],
              softcap: float, deterministic: bool, return_lse: Literal[True]) -> "tuple[Tensor, Tensor]": ...


@overload
def attention(q: Tensor, k: Tensor, v: Tensor, mask: Mask, scale: Optional[float] = None, sink: Optional[Tensor] = None,
              softcap: float = 0.0, deterministic: bool = False,
              return_lse: bool = False) -> "Union[Tensor, tuple[Tensor, Tensor]]": ...


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Mask, scale: Optional[float] = None, sink: Optional[Tensor] = None,
              softcap: float = 0.0, deterministic: bool = False,
              return_lse: bool = False) -> "Union[Tensor, tuple[Tensor, Tensor]]":
    """softmax(scale · q kᵀ) v over the keys that `mask` allows.

    Tensors are [tokens, heads, dim], or [batch, heads, tokens, dim] with the same mask for every sequence of the
    batch; the last dimension is contiguous. k and v may have fewer heads than q (GQA): query head h reads KV head
    h · heads_k // heads_q. v may have a smaller dim than q and k (192 and 128 in DeepSeek's MLA), which is then that of
    the result: any on the CPU, 192:128 on a Hopper GPU. A query that sees no key gets 0. float32, bfloat16 and float16
    on the CPU, the latter two on a GPU; under autocast, tensors of other dtypes, also of several, are cast.

    scale          of the scores; None: 1/√dim of q. It gets no gradient: a learned one multiplies q
    sink           [heads_q], a logit per query head that joins the softmax's denominator as a key without a value
                   would; differentiable. A query that sees no key then has the sink as its lse
    softcap        c, from 0.001 to 1000000: scores s become c · tanh(s / c); 0.0: as they are. It gets no gradient
    deterministic  gradients are equal to the bit from call to call
    return_lse     returns (o, lse), lse float32 [heads, tokens] or [batch, heads, tokens], −∞ for a query that sees
                   no key; it carries no gradient

    Raises ValueError with one sentence for arguments that do not fit (TypeError for what is no tensor or mask),
    NotImplementedError for what no kernel takes. Padding is to be finite: 0 · NaN is NaN, so that NaN and Inf reach
    results and gradients of other tokens in their tile. Differentiable once (not twice), and an operator: torch.compile
    needs no graph break.
    """
    scale, softcap, deterministic = _parameters(scale, softcap, deterministic)
    return_lse = flag(return_lse, "return_lse")
    q, k, v = _autocast(q, k, v)
    _check(q, k, v, mask)
    if sink is not None:
        _check_sink(sink, q)
        sink = sink.float()
    if q.dtype not in DTYPES:
        raise _no_kernel_for(q, "q")
    backward = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad or
                                            (sink is not None and sink.requires_grad))
    o, lse = _attention(q, k, v, sink, mask._handle, scale, softcap, deterministic, backward)
    return (o, lse.detach()) if return_lse else o


def _number(x, name, meant, instead):
    """x as a float; an infinite one for a whole number beyond float64. A gradient that would be lost is refused."""
    if type(x) is not float and isinstance(x, Tensor) and x.requires_grad and torch.is_grad_enabled():
        raise ValueError(f"{name} requires a gradient, and longca gives it none: {instead}")
    try:
        if not isinstance(x, (str, bytes)):
            return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf
    except (TypeError, ValueError, RuntimeError):
        pass
    raise ValueError(f"{name} = {short(x)}: {meant}")


def _parameters(scale, softcap, deterministic):
    """The three as the operator takes them: a scale of 0.0 is the default."""
    if scale is None:
        scale = 0.0
    else:
        scale = _number(scale, "scale", _SCALES, "multiply q by it")
        if not MIN_SCALE <= scale <= MAX_SCALE:
            raise ValueError(f"scale = {scale}: {_SCALES}")
    softcap = _number(softcap, "softcap", _SOFTCAPS, "detach it")
    return scale, softcap, flag(deterministic, "deterministic")


def _no_kernel_for(x, name):
    return NotImplementedError(f"{name} has dtype {x.dtype}: longca has kernels for float32, bfloat16 and float16")


def _check_tensor(x, name):
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} is a {type(x).__name__}: a torch.Tensor is meant")
    if x.layout is not torch.strided or x.is_nested:
        layout = "nested" if x.is_nested else str(x.layout)
        raise NotImplementedError(f"{name} is {layout}: a dense tensor is meant, of documents one behind the other with "
                                  "Mask.from_cu_seqlens")


def _autocast(q, k, v):
    """q, k and v, in autocast's dtype where it is on: they may differ before, as after RoPE in float32."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        _check_tensor(x, name)
    device_type = q.device.type
    if device_type not in DEVICES:
        raise NotImplementedError(f"q is on {q.device}: longca has kernels for CPUs and CUDA devices")
    if not torch.is_autocast_enabled(device_type):
        return q, k, v
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not x.is_floating_point():
            raise _no_kernel_for(x, name)
    dtype = torch.get_autocast_dtype(device_type)
    return q.to(dtype), k.to(dtype), v.to(dtype)


def _check(q, k, v, mask):
    if not isinstance(mask, Mask):
        raise TypeError(f"mask is a {type(mask).__name__}: a longca.Mask is meant")
    shape_q, shape_k, shape_v = q.shape, k.shape, v.shape
    dimensions = len(shape_q)
    if dimensions not in (3, 4) or len(shape_k) != dimensions or len(shape_v) != dimensions:
        raise ValueError(f"q, k and v have {dimensions}, {len(shape_k)} and {len(shape_v)} dimensions: "
                         "[tokens, heads, dim] or [batch, heads, tokens, dim]")
    if shape_k != shape_v and shape_k[:-1] != shape_v[:-1]:
        raise ValueError(f"k is {list(shape_k)} and v is {list(shape_v)}: of one shape but for the last dimension")
    device, dtype = q.device, q.dtype
    if device != k.device or device != v.device:
        raise ValueError(f"q, k and v are on {device}, {k.device} and {v.device}: on one device")
    if dtype != k.dtype or dtype != v.dtype:
        raise ValueError(f"q, k and v have dtypes {dtype}, {k.dtype} and {v.dtype}: of one dtype")
    if dimensions == 4 and shape_q[0] != shape_k[0]:
        raise ValueError(f"q has {shape_q[0]} sequences, k has {shape_k[0]}")
    dim = shape_q[-1]
    if dim != shape_k[-1]:
        raise ValueError(f"q has head dimension {dim}, k has {shape_k[-1]}")
    dim_v = shape_v[-1]
    if dim_v != dim and not 1 <= dim_v < dim:
        raise ValueError(f"v has head dimension {dim_v}, q and k have {dim}: that of v is at least 1, at most theirs")
    tokens_q, tokens_k = (shape_q[0], shape_k[0]) if dimensions == 3 else (shape_q[2], shape_k[2])
    if tokens_q == 0 or tokens_k == 0:
        raise ValueError(f"q has {tokens_q} tokens, k has {tokens_k}: at least 1")
    heads_q, heads_k = shape_q[1], shape_k[1]  # in both layouts
    if heads_k == 0 or heads_q == 0 or heads_q % heads_k != 0:
        raise ValueError(f"q has {heads_q} heads, k has {heads_k}: the KV heads must divide the query heads")
    # Compiled, it would fix the number of tokens; the library refuses others when the graph runs.
    if not is_dynamo_compiling() and (mask.tokens_q != tokens_q or mask.tokens_k != tokens_k):
        raise ValueError(f"the mask has {mask.tokens_q} queries and {mask.tokens_k} keys, "
                         f"q has {tokens_q} tokens and k has {tokens_k}")
    if dim > 1 and not q.stride(-1) == k.stride(-1) == v.stride(-1) == 1:
        for name, x in (("q", q), ("k", k), ("v", v)):
            if x.shape[-1] > 1 and x.stride(-1) != 1:
                raise ValueError(f"{name} has stride {x.stride(-1)} in its last dimension: make it contiguous")


def _check_sink(sink, q):
    _check_tensor(sink, "sink")
    if list(sink.shape) != [q.shape[1]]:
        raise ValueError(f"sink is {list(sink.shape)}: one logit per query head is [{q.shape[1]}]")
    if sink.device != q.device:
        raise ValueError(f"sink is on {sink.device}, q on {q.device}: on one device")
    if not sink.is_floating_point():
        raise ValueError(f"sink has dtype {sink.dtype}: a floating-point one is meant")


def _dense(x):
    """x, or a copy if rows of it share memory or have gaps inside, or on a GPU do not begin at multiples of 16 bytes."""
    strides = x.stride()
    if strides[-1] != 1 or 0 in strides:
        return x.contiguous()
    if x.is_cuda:
        bytes_of = [n * x.element_size() for n, extent in zip(strides[:-1], x.shape) if extent > 1]
        if any(n % 16 for n in (x.data_ptr(), *bytes_of)):
            return x.clone(memory_format=torch.contiguous_format)
    return x


def _begin_unaligned(*tensors):
    """Which ones on a GPU do not begin at a multiple of 16 bytes, which their strides do not tell."""
    return tuple(x.data_ptr() % 16 != 0 for x in tensors) if tensors[0].is_cuda else None


def _layout(x):
    """Sizes and strides of x as a longca_tensor has them, for each sequence of a batch; and the bytes from one sequence
    to the next."""
    shape, strides = x.shape, x.stride()
    if len(shape) == 3:
        return (*shape, *strides[:2]), 0
    return (shape[2], shape[1], shape[3], strides[2], strides[1]), strides[0] * x.element_size()


def _tensor(x):
    """Members of a longca_tensor; x is [tokens, heads, dim]."""
    return (x.data_ptr(), *_layout(x)[0])


class _Call:
    """What calls of equal shapes, strides and parameters share: the plan, how their tensors lie, and which of them are
    copied first. o, lse and gradients are contiguous."""

    def __init__(self, plan, tensors):
        dense = [_dense(x) for x in tensors]
        self.plan = plan
        self.pointer = plan.pointer
        self.copies = any(x is not y for x, y in zip(dense, tensors))
        self.layouts = [_layout(x) for x in dense]
        self.gradients = [_layout(_empty_like(x)) for x in dense[:3]]
        q, v = tensors[0], tensors[2]
        self.o = _layout(_empty_o(q, v))
        heads, tokens = q.shape[1], q.shape[0 if q.dim() == 3 else 2]
        self.lse = (heads, tokens, tokens), heads * tokens * 4
        self.sequences = range(1 if q.dim() == 3 else q.shape[0])


_NAMES = "q", "k", "v", "dout", "o"


def _check_operands(tensors, lse, sink):
    """What the library takes on trust, where an operator is called by itself or with saved tensors that hooks have changed."""
    q = tensors[0]
    if q.dtype not in DTYPES:
        raise _no_kernel_for(q, "q")
    meant = "of one dtype" + ("" if lse is None else ", which hooks of saved tensors have to give back")
    for name, x in zip(_NAMES, tensors):
        if x.dtype != q.dtype:
            raise ValueError(f"{name} has dtype {x.dtype}, q has {q.dtype}: {meant}")
        if x.dim() != q.dim() or x.dim() == 4 and x.shape[0] != q.shape[0]:
            raise ValueError(f"{name} is {list(x.shape)} and q is {list(q.shape)}: of as many dimensions and sequences")
    floats = [("sink", sink, [q.shape[1]])] if sink is not None else []
    if lse is not None:
        floats.append(("lse", lse, list(_empty_lse(q).shape)))
    for name, x, shape in floats:
        if x.dtype != torch.float32 or list(x.shape) != shape:
            raise ValueError(f"{name} is {x.dtype} {list(x.shape)}: torch.float32 {shape} is meant")
    for name, x in (*zip(_NAMES, tensors), *(named[:2] for named in floats)):
        if x.device != q.device:
            raise ValueError(f"{name} is on {x.device}, q on {q.device}: on one device")


def _find_call(key, tensors, lse, sink, mask, scale, softcap, deterministic, backward, stream):
    """The call of `key`; `tensors` are q, k, v and, of a backward pass, which has an lse, dout and o."""
    call = plans.call(key)
    if call is None:
        _check_operands(tensors, lse, sink)
        q, k, v = tensors[:3]
        if q.is_cuda:
            use_device(q.device.index)
        plan = plans.find((Core.find(mask), q.shape[1], k.shape[1], q.shape[-1], v.shape[-1], q.dtype, q.device.type,
                           scale, deterministic, softcap, sink is not None, stream), backward)
        call = plans.keep(key, _Call(plan, tensors))
    return call


def _stream(device):
    """The current stream of a GPU as a number; 0 on the CPU."""
    return torch._C._cuda_getCurrentRawStream(device.index) if device.type == "cuda" else 0


def _empty_like(x):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _empty_o(q, v):
    return q.new_empty((*q.shape[:-1], v.shape[-1]))


def _empty_lse(q):
    shape = q.shape
    return q.new_empty((shape[1], shape[0]) if len(shape) == 3 else shape[:3], dtype=torch.float32)


def _empty_dsink(q, sink):
    return q.new_empty(0 if sink is None else sink.shape[0], dtype=torch.float32)


# Defined and registered here rather than by torch.library.custom_op, whose wrappers serve any operator: with gradients
# they take 28 µs of a call.
_operators = torch.library.Library("longca", "DEF")
_PARAMETERS = "Tensor? sink, Tensor mask, float scale, float softcap, bool deterministic"
_operators.define(f"attention(Tensor q, Tensor k, Tensor v, {_PARAMETERS}, bool backward) -> (Tensor, Tensor)",
                  tags=(torch.Tag.pt2_compliant_tag,))
_operators.define("attention_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, "
                  f"{_PARAMETERS}) -> (Tensor, Tensor, Tensor, Tensor)", tags=(torch.Tag.pt2_compliant_tag,))
_attention = torch.ops.longca.attention.default
_attention_backward = torch.ops.longca.attention_backward.default


def _kind(x):
    return x.shape, x.dtype, x.device


@torch._disable_dynamo
def _forward(q, k, v, sink, mask, scale, softcap, deterministic, backward):
    stream = _stream(q.device)
    key = (mask.item(), q.shape, k.shape, v.shape, q.stride(), k.stride(), v.stride(), q.dtype, k.dtype, v.dtype, q.device,
           k.device, v.device, scale, softcap, deterministic, sink if sink is None else _kind(sink), backward, stream,
           _begin_unaligned(q, k, v))
    call = _find_call(key, (q, k, v), None, sink, mask, scale, softcap, deterministic, backward, stream)
    if call.copies:
        q, k, v = _dense(q), _dense(k), _dense(v)
    o, lse = _empty_o(q, v), _empty_lse(q)
    sink = None if sink is None else sink.contiguous()
    (q_of, q_step), (k_of, k_step), (v_of, v_step) = call.layouts
    o_of, o_step = call.o
    lse_of, lse_step = call.lse
    for i in call.sequences:
        check(lib.longca_forward(call.pointer, _FORWARD.pack(
            q.data_ptr() + i * q_step, *q_of, k.data_ptr() + i * k_step, *k_of, v.data_ptr() + i * v_step, *v_of,
            o.data_ptr() + i * o_step, *o_of, lse.data_ptr() + i * lse_step, *lse_of, stream,
            0 if sink is None else sink.data_ptr())))
    return o, lse


@torch._disable_dynamo
def _backward(dout, q, k, v, o, lse, sink, mask, scale, softcap, deterministic):
    stream = _stream(q.device)
    key = (mask.item(), q.shape, k.shape, v.shape, q.stride(), k.stride(), v.stride(), q.dtype, k.dtype, v.dtype, q.device,
           k.device, v.device, scale, softcap, deterministic, sink if sink is None else _kind(sink), dout.stride(), _kind(dout),
           o.stride(), _kind(o), _kind(lse), stream, _begin_unaligned(q, k, v, dout, o))
    call = _find_call(key, (q, k, v, dout, o), lse, sink, mask, scale, softcap, deterministic, True, stream)
    if call.copies:
        q, k, v, dout, o = _dense(q), _dense(k), _dense(v), _dense(dout), _dense(o)
    lse = lse.contiguous()
    dq, dk, dv, dsink = _empty_like(q), _empty_like(k), _empty_like(v), _empty_dsink(q, sink)
    of_sequence = sink
    if sink is not None:
        sink, of_sequence = sink.contiguous(), torch.empty_like(dsink)
        dsink.zero_()
    (q_of, q_step), (k_of, k_step), (v_of, v_step), (dout_of, dout_step), (o_of, o_step) = call.layouts
    (dq_of, dq_step), (dk_of, dk_step), (dv_of, dv_step) = call.gradients
    lse_of, lse_step = call.lse
    for i in call.sequences:
        check(lib.longca_backward(call.pointer, _BACKWARD.pack(
            dout.data_ptr() + i * dout_step, *dout_of, q.data_ptr() + i * q_step, *q_of, k.data_ptr() + i * k_step,
            *k_of, v.data_ptr() + i * v_step, *v_of, o.data_ptr() + i * o_step, *o_of,
            lse.data_ptr() + i * lse_step, *lse_of, dq.data_ptr() + i * dq_step, *dq_of,
            dk.data_ptr() + i * dk_step, *dk_of, dv.data_ptr() + i * dv_step, *dv_of, stream,
            *((0, 0) if sink is None else (sink.data_ptr(), of_sequence.data_ptr())))))
        if sink is not None:
            dsink += of_sequence
    return dq, dk, dv, dsink


_operators.impl("attention", _forward, "CompositeExplicitAutograd")
_operators.impl("attention_backward", _backward, "CompositeExplicitAutograd")


@torch.library.register_fake("longca::attention", lib=_operators)
def _(q, k, v, sink, mask, scale, softcap, deterministic, backward):
    return _empty_o(q, v), _empty_lse(q)


@torch.library.register_fake("longca::attention_backward", lib=_operators)
def _(dout, q, k, v, o, lse, sink, mask, scale, softcap, deterministic):
    return _empty_like(q), _empty_like(k), _empty_like(v), _empty_dsink(q, sink)


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(ctx, keys, q, k, v, sink, mask, scale, softcap, deterministic):
        with torch._C._AutoDispatchBelowAutograd():
            o, lse = _attention.redispatch(keys, q, k, v, sink, mask, scale, softcap, deterministic, True)
        ctx.save_for_backward(q, k, v, o, lse, sink, mask)
        ctx.mask = mask  # hooks may save a copy, which does not keep the mask
        ctx.parameters = scale, softcap, deterministic
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(lse)
        return o, lse

    @staticmethod
    def backward(ctx, dout, _):
        if dout is None:  # what is behind o has no gradient
            return (None,) * 9
        gradients = _Once.apply if torch.is_grad_enabled() else _attention_backward
        dq, dk, dv, dsink = gradients(dout, *ctx.saved_tensors, *ctx.parameters)
        return None, dq, dk, dv, dsink if ctx.needs_input_grad[4] else None, None, None, None, None


class _Once(torch.autograd.Function):
    """attention_backward where its own gradients could be asked for."""

    @staticmethod
    def forward(ctx, *arguments):
        return _attention_backward(*arguments)

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError("longca.attention is differentiable once: attention_backward has no gradients")


def _refuse_tangents(tensors, function):
    if any(x is not None and forward_ad.unpack_dual(x).tangent is not None for x in tensors):
        raise RuntimeError(f"{function} has no forward-mode derivative: use torch.autograd.grad or backward()")


def _refuse_functorch(function, transforms="transforms"):
    """Before an autograd.Function, whose own sentence does not name longca."""
    if torch._C._are_functorch_transforms_active():
        raise RuntimeError(f"{function} does not run under torch.func's {transforms}: use torch.autograd.grad or backward()")


def _autograd(keys, *arguments):
    if forward_ad._current_level >= 0:
        _refuse_tangents(arguments[:4], "longca.attention")
    keys &= torch._C._after_autograd_keyset
    # Inside torch.func.vmap the caller sees tensors that need no gradient, and here they do.
    if arguments[-1] or torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in arguments[:4]):
        _refuse_functorch("longca.attention", "grad, vjp or jacrev")
        return _Differentiable.apply(keys, *arguments[:-1])
    with torch._C._AutoDispatchBelowAutograd():
        return _attention.redispatch(keys, *arguments)


_operators.impl("attention", _autograd, "Autograd", with_keyset=True)
