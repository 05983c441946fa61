"""Attention over the ranks of a torch.distributed group, each of which holds some tokens of the sequence.

    partition = longca.parallel.Partition(mask, group)
    x, labels = partition.shard(x), partition.shard(labels)
    q, k, v = model(x, partition.position_ids)                 # [own tokens, heads, dim]
    o = longca.parallel.attention(q, k, v, partition)

Any mask, any number of tokens, no padding. On CPUs messages go by gloo, or whatever the group's backend sends CPU tensors
with; on GPUs, one a rank, by copies between the GPUs of one host or by NCCL, whatever the group's backend is.
"""

import ctypes
import hashlib
import os
from typing import Optional

import torch
import torch.distributed as dist
from torch.autograd import forward_ad

from ._agreement import agree, tell_failure
from ._attention import (_BACKWARD, _FORWARD, _autocast, _check_sink, _check_tensor, _dense, _no_kernel_for,
                         _parameters, _refuse_functorch, _refuse_tangents, _stream, _tensor)
from ._library import (INT32_MAX, PartitionOptions, Problem, check, head_counts, lib, made, released_with, text,
                       whole)
from ._mask import Mask
from ._messages import Gpus, TensorMessages
from ._plans import DEVICES, DTYPES, use_device

SCHEMES = ("ulysses", "ring_p2p", "ring_allgather", "usp", "loongtrain", "magi")
TRANSPORTS = ("peer", "nccl")
# How long a rank waits for the others to make the same Partition; read whenever one is made.
TIMEOUT_S = 120.0

# A stream that waits for another rank must not hold up others of this process; read when CUDA starts.
if not torch.cuda.is_initialized():
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")


__all__ = ["SCHEMES", "TIMEOUT_S", "TRANSPORTS", "Partition", "attention"]


class Partition:
    """Which of a mask's tokens each rank of a group owns, and the plans of its attention.

    Every rank of the group makes it, in the same order and of the same arguments: a rank that makes another one, or that
    cannot make its own, is named in a ValueError on the others, and so is one that does not come within
    longca.parallel.TIMEOUT_S (120.0, in seconds; may be set). It counts as made: all go on to the next one.

    mask            a square longca.Mask
    group           a torch.distributed group; None: the default one
    scheme          ulysses, ring_p2p, ring_allgather, usp, loongtrain or magi
    shard           contiguous, zigzag, document_zigzag, balanced, document_balanced; None: what suits the scheme best
    heads, dim      (query heads, KV heads) and head dimension of the attention, by which work is weighed and, in usp
                    and loongtrain, ranks are split; attention of another shape is a ValueError where it matters
    factor          ranks that share heads, in usp and loongtrain; 0: the scheme's choice. Other schemes ignore it
    ranks_per_node  ranks that are near each other
    device          cpu or cuda, on which the ranks compute and by which work is weighed too; None: cuda where there is one
    transport       between GPUs: peer (copies, inside one host) or nccl; None: peer where the GPUs reach each other, else
                    nccl. The attribute says which it is once an attention has run on GPUs

    tokens, token_ids, position_ids
                    how many tokens this rank owns, their numbers, and their numbers inside their documents, for RoPE
    """

    token_ids: torch.Tensor
    position_ids: torch.Tensor
    tokens: int
    transport: Optional[str]

    # Dynamo cannot trace calls of the library and messages to other ranks: each such method breaks a compiled function's graph.
    @torch._disable_dynamo
    def __init__(self, mask: Mask, group: Optional[dist.ProcessGroup] = None, scheme: str = "magi", *,
                 shard: Optional[str] = None, heads: "tuple[int, int]" = (64, 8), dim: int = 128, factor: int = 0,
                 ranks_per_node: int = 8, device: Optional[str] = None, transport: Optional[str] = None) -> None:
        if not (group is None or isinstance(group, dist.ProcessGroup) or group is dist.GroupMember.NON_GROUP_MEMBER):
            raise TypeError(f"group is a {type(group).__name__}: a torch.distributed group is meant, or None")
        self.ranks, self.rank = dist.get_world_size(group), dist.get_rank(group)
        if self.rank < 0:
            raise ValueError(f"rank {dist.get_rank()} is not in the group")
        try:
            description = self._make(mask, scheme, shard, heads, dim, factor, ranks_per_node, device, transport)
        except Exception as error:
            tell_failure(group, error)
            raise
        agree(group, description, TIMEOUT_S)
        self.mask, self.group, self.scheme = mask, group, scheme
        self.transport = self._asked_transport = transport
        self._ids = {}  # by rank and device
        self.token_ids = self._ids_of(self.rank)
        self.tokens = self.token_ids.numel()
        with torch.inference_mode(False):
            self.position_ids = mask.position_ids[self.token_ids]
        self._plans = {}

    def _make(self, mask, scheme, shard, heads, dim, factor, ranks_per_node, device, transport):
        """Makes the library's partition. Returns what must be equal on all ranks."""
        if not isinstance(mask, Mask):
            raise TypeError(f"mask is a {type(mask).__name__}: a longca.Mask is meant")
        if transport is not None and transport not in TRANSPORTS:
            raise ValueError(f"transport = {transport!r}: one of {', '.join(TRANSPORTS)}, or None")
        if device is None:
            device = "cuda" if torch.cuda.is_available() else "cpu"
        if not isinstance(device, str) or device not in DEVICES:
            raise ValueError(f"device = {device!r}: one of {', '.join(DEVICES)}, or None")
        heads, dim = head_counts(heads), whole(dim, "dim", 1, INT32_MAX)
        factor, ranks_per_node = whole(factor, "factor", 0, INT32_MAX), whole(ranks_per_node, "ranks_per_node", 1, INT32_MAX)
        options = PartitionOptions(ctypes.sizeof(PartitionOptions), self.rank, self.ranks, text(scheme, "scheme"),
                                   None if shard is None else text(shard, "shard"), factor, ranks_per_node, *heads, dim,
                                   DEVICES[device], 0)
        try:
            self._pointer = made(lib.longca_partition_create, ctypes.byref(options), mask._core.pointer)
        except NotImplementedError as error:
            if "share the heads" not in str(error):
                raise
            raise NotImplementedError(f"{error}; they are those of the argument heads = {heads}") from None
        released_with(self, lib.longca_partition_release, self._pointer)
        return {
            "scheme": scheme, "shard": shard, "heads": list(heads), "dim": dim, "factor": factor,
            "ranks_per_node": ranks_per_node, "device": device, "transport": transport,
            "mask": hashlib.sha256(mask._core.bytes).hexdigest(),
        }

    def __copy__(self):
        return self  # it does not change, and the library's partition is released once

    def __deepcopy__(self, memo):
        return self

    def __reduce_ex__(self, protocol):
        raise TypeError("a longca.parallel.Partition belongs to this process and its group: make one in each process, "
                        "of its mask, which can be pickled")

    def _ids_of(self, rank, device=None):
        """The numbers of a rank's tokens, on a device; None: on the CPU. Found when they are asked for."""
        ids = self._ids.get((rank, device))
        if ids is None:
            with torch.inference_mode(False):  # training may use them
                ids = self._tokens_of(rank) if device is None else self._ids_of(rank).to(device)
            self._ids[rank, device] = ids
        return ids

    def _tokens_of(self, rank):
        room, count = 64, ctypes.c_size_t()
        while True:
            bounds = (ctypes.c_int64 * (2 * room))()
            check(lib.longca_partition_ranges_of(self._pointer, rank, bounds, room, ctypes.byref(count)))
            if count.value <= room:
                break
            room = count.value
        ranges = [torch.arange(bounds[2 * i], bounds[2 * i + 1], device="cpu") for i in range(count.value)]
        return torch.cat(ranges) if ranges else torch.empty(0, dtype=torch.int64, device="cpu")

    def shard(self, x: torch.Tensor, dim: int = 0) -> torch.Tensor:
        """This rank's tokens of a tensor that every rank has whole: [.., tokens, ..] with tokens at `dim`."""
        dim = _checked_dim(x, dim)
        if x.shape[dim] != self.mask.tokens_q:
            raise ValueError(f"x has {x.shape[dim]} tokens, the mask has {self.mask.tokens_q}")
        return x.index_select(dim, self._ids_of(self.rank, x.device))

    @torch._disable_dynamo
    def unshard(self, x: torch.Tensor, dim: int = 0) -> torch.Tensor:
        """The whole tensor on every rank, of each one's tokens. Its gradient is the sum of what all ranks ask for."""
        dim = _checked_dim(x, dim)
        if x.shape[dim] != self.tokens:
            raise ValueError(f"x has {x.shape[dim]} tokens, rank {self.rank} owns {self.tokens}")
        _refuse_functorch("longca.parallel.Partition.unshard")
        return _Unshard.apply(x.movedim(dim, 0), self).movedim(0, dim)

    def _plan(self, q, k, sink, scale, softcap, deterministic, backward):
        key = (q.shape[1], k.shape[1], q.shape[2], q.dtype, q.device.type, scale, softcap, deterministic, sink is not None,
               backward)
        if key not in self._plans:
            if q.is_cuda:
                use_device(q.device.index)
            self._plans[key] = _RankPlan(self, *key)
        return self._plans[key]


def _checked_dim(x, dim):
    _check_tensor(x, "x")
    dim = whole(dim, "dim", -INT32_MAX, INT32_MAX)
    if not -x.dim() <= dim < x.dim():
        raise ValueError(f"dim = {dim}: x has {x.dim()} dimensions")
    return dim


# Dynamo would compile it anew for each partition: what its plan keeps for the backward pass is of another size.
@torch._disable_dynamo
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, partition: Partition, scale: Optional[float] = None,
              sink: Optional[torch.Tensor] = None, softcap: float = 0.0, deterministic: bool = False) -> torch.Tensor:
    """longca.attention over the ranks of a partition: q, k and v are [own tokens, heads, dim], and so is the result.

    scale, sink, softcap and deterministic are those of longca.attention. The sink is the same on every rank; its gradient is
    the rank's part, to be summed over the ranks as the gradients of all parameters are. Every rank calls it, in the same
    order; so it is with the backward pass, which sends gradients of keys to who owns them. Raises ValueError with one
    sentence for arguments that do not fit, NotImplementedError for a v of another dimension than q and k.
    """
    if not isinstance(partition, Partition):
        raise TypeError(f"partition is a {type(partition).__name__}: a longca.parallel.Partition is meant")
    scale, softcap, deterministic = _parameters(scale, softcap, deterministic)
    q, k, v = _autocast(q, k, v)
    _check(q, k, v, partition)
    if q.dtype not in DTYPES:
        raise _no_kernel_for(q, "q")
    if sink is not None:
        _check_sink(sink, q)
        sink = sink.float()
    _refuse_functorch("longca.parallel.attention")
    if forward_ad._current_level >= 0:
        _refuse_tangents((q, k, v, sink), "longca.parallel.attention")
    return _Attention.apply(q, k, v, sink, partition, scale, softcap, deterministic)


def _check(q, k, v, partition):
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dim() != 3:
            raise ValueError(f"{name} has {x.dim()} dimensions: [own tokens, heads, dim]")
        if x.shape[0] != partition.tokens:
            raise ValueError(f"{name} has {x.shape[0]} tokens, rank {partition.rank} owns {partition.tokens}")
        if x.device != q.device:
            raise ValueError(f"{name} is on {x.device}, q on {q.device}: on one device")
        if x.dtype != q.dtype:
            raise ValueError(f"{name} has dtype {x.dtype}, q has {q.dtype}")
        if x.shape[2] > 1 and x.stride(-1) != 1:
            raise ValueError(f"{name} has stride {x.stride(-1)} in its last dimension: make it contiguous")
    if k.shape[:2] == v.shape[:2] and q.shape[2] == k.shape[2] != v.shape[2]:
        raise NotImplementedError(f"q and k have head dimension {k.shape[2]}, v has {v.shape[2]}: no scheme of context "
                                  "parallelism takes a v of another dimension than q and k")
    if k.shape != v.shape:
        raise ValueError(f"k is {list(k.shape)} and v is {list(v.shape)}: of one shape")
    if q.shape[2] != k.shape[2]:
        raise ValueError(f"q has head dimension {q.shape[2]}, k has {k.shape[2]}")
    if k.shape[1] == 0 or q.shape[1] == 0 or q.shape[1] % k.shape[1] != 0:
        raise ValueError(f"q has {q.shape[1]} heads, k has {k.shape[1]}: the KV heads must divide the query heads")


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, sink, partition, scale, softcap, deterministic):
        backward = any(ctx.needs_input_grad)
        plan = partition._plan(q, k, sink, scale, softcap, deterministic, backward)
        q, k, v = (_dense(x) for x in (q, k, v))
        sink = None if sink is None else sink.contiguous()
        o = torch.empty_like(q, memory_format=torch.contiguous_format)
        state = torch.empty(plan.state_bytes if backward else 0, dtype=torch.uint8, device=q.device)
        plan.forward((q, k, v, o), sink, state if backward else None)
        ctx.save_for_backward(q, k, v, sink, o, state)
        ctx.plan, ctx.partition = plan, partition
        return o

    @staticmethod
    def backward(ctx, dout):
        gradients = _Once.apply if torch.is_grad_enabled() else _gradients
        return (*gradients(dout, *ctx.saved_tensors, ctx.plan), None, None, None, None)


def _gradients(dout, q, k, v, sink, o, state, plan):
    """dq, dk, dv and dsink."""
    _check_saved(plan, q=q, k=k, v=v, o=o, sink=sink, state=state)
    gradients = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in (q, k, v)]
    dsink = None if sink is None else torch.empty_like(sink)
    plan.backward((_dense(dout), q, k, v, o, *gradients), sink, dsink, state)
    return (*gradients, dsink)


def _check_saved(plan, **saved):
    """Of tensors that hooks may have changed, what the library takes on trust."""
    dtypes = {"sink": torch.float32, "state": torch.uint8}
    for name, x in saved.items():
        dtype = dtypes.get(name, plan.dtype)
        if x is not None and x.dtype != dtype:
            raise ValueError(f"{name} has dtype {x.dtype}, {dtype} was saved: hooks of saved tensors have to give it back")


class _Once(torch.autograd.Function):
    """_gradients where their own gradients could be asked for."""

    @staticmethod
    def forward(ctx, *arguments):
        return _gradients(*arguments)

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError("longca.parallel.attention is differentiable once: its backward pass has no gradients")


# PyTorch has no index_put for the dtypes on the left.
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def _bytes(x):
    return x.view(-1).view(torch.uint8)


class _Unshard(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, partition):
        ctx.partition = partition
        all_ids = [partition._ids_of(rank, x.device) for rank in range(partition.ranks)]
        most = max(ids.numel() for ids in all_ids)
        mine = x.new_zeros((most, *x.shape[1:]))
        mine[:partition.tokens] = x
        parts = [torch.empty_like(mine) for _ in range(partition.ranks)]
        # As bytes: gloo does not take every dtype.
        dist.all_gather([_bytes(part) for part in parts], _bytes(mine), group=partition.group)
        whole = x.new_empty((partition.mask.tokens_q, *x.shape[1:]))
        writable = whole.view(_SIGNED.get(x.dtype, x.dtype))
        for ids, part in zip(all_ids, parts):
            writable[ids] = part[:ids.numel()].view(writable.dtype)
        return whole

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        total = gradient.contiguous().clone()
        dist.all_reduce(total, group=ctx.partition.group)
        return ctx.partition.shard(total), None


class _RankPlan:
    """A longca_rank_plan and how its messages go."""

    def __init__(self, partition, heads_q, heads_k, head_dim, dtype, device, scale, softcap, deterministic, sink, backward):
        problem = Problem(ctypes.sizeof(Problem), heads_q, heads_k, head_dim, DTYPES[dtype], DEVICES[device], backward,
                          deterministic, scale, None, None, softcap, sink, 0)
        if device == "cuda":
            gpus = Gpus.of(partition.group, partition._asked_transport)
            partition.transport = gpus.transport
            create, by = lib.longca_rank_plan_create_on_gpus, gpus.pointer
            self._messages = gpus.messages
        else:
            self._messages = TensorMessages(partition.group)
            create, by = lib.longca_rank_plan_create, ctypes.byref(self._messages.functions)
        self._pointer = self._messages.run(lambda: made(create, partition._pointer, ctypes.byref(problem), by))
        released_with(self, lib.longca_rank_plan_release, self._pointer)
        self.state_bytes = lib.longca_rank_plan_state_bytes(self._pointer)
        self.dtype = dtype

    def forward(self, tensors, sink, state):
        members = [m for x in tensors for m in _tensor(x)]
        arguments = _FORWARD.pack(*members, 0, 0, 0, 0, _stream(tensors[0].device), 0 if sink is None else sink.data_ptr())
        self._messages.run(lambda: check(lib.longca_rank_forward(
            self._pointer, arguments, None if state is None else _address(state))))

    def backward(self, tensors, sink, dsink, state):
        members = [m for x in tensors[:5] for m in _tensor(x)]
        gradients = [m for x in tensors[5:] for m in _tensor(x)]
        sinks = (0, 0) if sink is None else (sink.data_ptr(), dsink.data_ptr())
        arguments = _BACKWARD.pack(*members, 0, 0, 0, 0, *gradients, _stream(tensors[0].device), *sinks)
        self._messages.run(lambda: check(lib.longca_rank_backward(self._pointer, arguments, _address(state))))


def _address(state):
    """Of its bytes; never NULL, also where it has none."""
    return state.data_ptr() or ctypes.addressof(ctypes.c_char())
