"""Attention over the ranks of a torch.distributed group, each of which holds some tokens of the sequence.

    partition = longca.parallel.Partition(mask, group)
    x, labels = partition.shard(x), partition.shard(labels)
    q, k, v = model(x, partition.position_ids)                 # [own tokens, heads, dim]
    o = longca.parallel.attention(q, k, v, partition)

Any mask, any number of tokens, no padding. On CPUs, by gloo or whatever the group's backend sends CPU tensors with.
"""

import ctypes
import hashlib
import itertools
import json
import math
import threading
import time
import weakref

import torch
import torch.distributed as dist

from ._attention import _BACKWARD, _FORWARD, _dense, _tensor
from ._library import FinishMessages, PartitionOptions, Problem, StartMessages, Transport, check, lib, made
from ._mask import Mask
from ._plans import DTYPES

SCHEMES = ("ulysses", "ring_p2p", "ring_allgather", "usp", "loongtrain", "magi")

# How long a rank waits for the others to make the same Partition.
TIMEOUT_S = 120.0


class Partition:
    """Which of a mask's tokens each rank of a group owns, and the plans of its attention.

    Every rank of the group makes it, in the same order and of the same arguments: a rank that makes another one is
    named in a ValueError.

    mask            a square longca.Mask
    group           a torch.distributed group; None: the default one
    scheme          ulysses, ring_p2p, ring_allgather, usp, loongtrain or magi
    shard           contiguous, zigzag, document_zigzag, balanced, document_balanced; None: what suits the scheme best
    heads, dim      (query heads, KV heads) and head dimension of the attention, by which work is weighed and, in usp
                    and loongtrain, ranks are split; attention of another shape is a ValueError where it matters
    factor          ranks that share heads, in usp and loongtrain; 0: the scheme's choice
    ranks_per_node  ranks that are near each other

    tokens, token_ids, position_ids
                    how many tokens this rank owns, their numbers, and their numbers inside their documents, for RoPE
    """

    def __init__(self, mask, group=None, scheme="magi", *, shard=None, heads=(64, 8), dim=128, factor=0, ranks_per_node=8):
        if not isinstance(mask, Mask):
            raise TypeError(f"mask is a {type(mask).__name__}: a longca.Mask is meant")
        self.mask, self.group, self.scheme = mask, group, scheme
        self.ranks, self.rank = dist.get_world_size(group), dist.get_rank(group)
        if self.rank < 0:
            raise ValueError(f"rank {dist.get_rank()} is not in the group")
        options = PartitionOptions(ctypes.sizeof(PartitionOptions), self.rank, self.ranks, scheme.encode(),
                                   shard.encode() if shard else None, factor, ranks_per_node, *heads, dim)
        pointer = made(lib.longca_partition_create, ctypes.byref(options), mask._core.pointer)
        self._pointer = pointer
        weakref.finalize(self, lib.longca_partition_release, pointer)
        _agree(group, {
            "scheme": scheme, "shard": shard, "heads": list(heads), "dim": dim, "factor": factor,
            "ranks_per_node": ranks_per_node, "mask": hashlib.sha256(mask._core.bytes).hexdigest(),
        })
        self._ids = [self._tokens_of(rank, options) for rank in range(self.ranks)]
        self.token_ids = self._ids[self.rank]
        self.tokens = self.token_ids.numel()
        self.position_ids = mask.position_ids[self.token_ids]
        self._plans = {}

    def _tokens_of(self, rank, options):
        options.rank = rank
        pointer = made(lib.longca_partition_create, ctypes.byref(options), self.mask._core.pointer)
        count = lib.longca_partition_ranges(pointer, None, 0)
        bounds = (ctypes.c_int64 * (2 * count))()
        lib.longca_partition_ranges(pointer, bounds, count)
        lib.longca_partition_release(pointer)
        ranges = [torch.arange(bounds[2 * i], bounds[2 * i + 1]) for i in range(count)]
        return torch.cat(ranges) if ranges else torch.empty(0, dtype=torch.int64)

    def shard(self, x, dim=0):
        """This rank's tokens of a tensor that every rank has whole: [.., tokens, ..] with tokens at `dim`."""
        if x.shape[dim] != self.mask.tokens_q:
            raise ValueError(f"x has {x.shape[dim]} tokens, the mask has {self.mask.tokens_q}")
        return x.index_select(dim, self.token_ids.to(x.device))

    def unshard(self, x, dim=0):
        """The whole tensor on every rank, of each one's tokens. Its gradient is the sum of what all ranks ask for."""
        if x.shape[dim] != self.tokens:
            raise ValueError(f"x has {x.shape[dim]} tokens, rank {self.rank} owns {self.tokens}")
        return _Unshard.apply(x.movedim(dim, 0), self).movedim(0, dim)

    def _plan(self, q, k, scale, deterministic, backward):
        key = (q.shape[1], k.shape[1], q.shape[2], q.dtype, scale, deterministic, backward)
        if key not in self._plans:
            self._plans[key] = _RankPlan(self, *key)
        return self._plans[key]


def attention(q, k, v, partition, scale=None, deterministic=False):
    """longca.attention over the ranks of a partition: q, k and v are [own tokens, heads, dim], and so is the result.

    Every rank calls it, in the same order; so it is with the backward pass, which sends gradients of keys to who owns
    them. Raises ValueError with one sentence for arguments that do not fit.
    """
    if not isinstance(partition, Partition):
        raise TypeError(f"partition is a {type(partition).__name__}: a longca.parallel.Partition is meant")
    if scale is not None and not (scale > 0 and math.isfinite(scale)):
        raise ValueError(f"scale = {scale}: above 0 and finite, or None for 1/√dim")
    _check(q, k, v, partition)
    if torch.is_autocast_enabled("cpu"):
        dtype = torch.get_autocast_dtype("cpu")
        q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    return _Attention.apply(q, k, v, partition, 0.0 if scale is None else float(scale), bool(deterministic))


def _check(q, k, v, partition):
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dim() != 3:
            raise ValueError(f"{name} has {x.dim()} dimensions: [own tokens, heads, dim]")
        if x.shape[0] != partition.tokens:
            raise ValueError(f"{name} has {x.shape[0]} tokens, rank {partition.rank} owns {partition.tokens}")
        if x.device.type != "cpu":
            raise NotImplementedError(f"{name} is on {x.device}: longca.parallel runs on the CPU so far")
        if x.dtype != q.dtype:
            raise ValueError(f"{name} has dtype {x.dtype}, q has {q.dtype}")
        if x.shape[2] > 1 and x.stride(-1) != 1:
            raise ValueError(f"{name} has stride {x.stride(-1)} in its last dimension: make it contiguous")
    if k.shape != v.shape:
        raise ValueError(f"k is {list(k.shape)} and v is {list(v.shape)}: of one shape")
    if q.shape[2] != k.shape[2]:
        raise ValueError(f"q has head dimension {q.shape[2]}, k has {k.shape[2]}")
    if k.shape[1] == 0 or q.shape[1] == 0 or q.shape[1] % k.shape[1] != 0:
        raise ValueError(f"q has {q.shape[1]} heads, k has {k.shape[1]}: the KV heads must divide the query heads")
    if q.dtype not in DTYPES:
        raise NotImplementedError(f"q has dtype {q.dtype}: longca has kernels for float32, bfloat16 and float16")


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, partition, scale, deterministic):
        backward = any(ctx.needs_input_grad)
        plan = partition._plan(q, k, scale, deterministic, backward)
        q, k, v = (_dense(x) for x in (q, k, v))
        o = torch.empty_like(q, memory_format=torch.contiguous_format)
        state = torch.empty(plan.state_bytes if backward else 0, dtype=torch.uint8)
        plan.forward((q, k, v, o), state if backward else None)
        ctx.save_for_backward(q, k, v, o, state)
        ctx.plan, ctx.partition = plan, partition
        return o

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dout):
        q, k, v, o, state = ctx.saved_tensors
        gradients = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in (q, k, v)]
        ctx.plan.backward((_dense(dout), q, k, v, o, *gradients), state)
        return (*gradients, None, None, None)


class _Unshard(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, partition):
        ctx.partition = partition
        most = max(ids.numel() for ids in partition._ids)
        mine = x.new_zeros((most, *x.shape[1:]))
        mine[:partition.tokens] = x
        parts = [torch.empty_like(mine) for _ in range(partition.ranks)]
        dist.all_gather(parts, mine, group=partition.group)
        whole = x.new_empty((partition.mask.tokens_q, *x.shape[1:]))
        for ids, part in zip(partition._ids, parts):
            whole[ids.to(x.device)] = part[:ids.numel()]
        return whole

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        total = gradient.contiguous().clone()
        dist.all_reduce(total, group=ctx.partition.group)
        return ctx.partition.shard(total), None


class _RankPlan:
    """A longca_rank_plan and what its callbacks need."""

    def __init__(self, partition, heads_q, heads_k, head_dim, dtype, scale, deterministic, backward):
        problem = Problem(ctypes.sizeof(Problem), heads_q, heads_k, head_dim, DTYPES[dtype], 0, backward,
                          deterministic, scale, None, None)
        self._messages = _Messages(partition.group)
        self._pointer = self._messages.run(
            lambda: made(lib.longca_rank_plan_create, partition._pointer, ctypes.byref(problem),
                         ctypes.byref(self._messages.functions)))
        weakref.finalize(self, lib.longca_rank_plan_release, self._pointer)
        self.state_bytes = lib.longca_rank_plan_state_bytes(self._pointer)

    def forward(self, tensors, state):
        members = [m for x in tensors for m in _tensor(x)]
        arguments = _FORWARD.pack(*members, 0, 0, 0, 0, 0, 0)
        self._messages.run(lambda: check(lib.longca_rank_forward(
            self._pointer, arguments, None if state is None else _address(state))))

    def backward(self, tensors, state):
        members = [m for x in tensors[:5] for m in _tensor(x)]
        gradients = [m for x in tensors[5:] for m in _tensor(x)]
        arguments = _BACKWARD.pack(*members, 0, 0, 0, 0, *gradients, 0, 0, 0)
        self._messages.run(lambda: check(lib.longca_rank_backward(self._pointer, arguments, _address(state))))


def _address(state):
    """Of its bytes; never NULL, also where it has none."""
    return state.data_ptr() or ctypes.addressof(ctypes.c_char())


class _Messages:
    """Messages of a plan as point-to-point operations of a group."""

    _lock = threading.Lock()  # a rank sends for one plan at a time

    def __init__(self, group):
        self._group = group
        self._works, self._buffers = {}, {}
        self._failure = None
        self._callbacks = StartMessages(self._start), FinishMessages(self._finish)
        self.functions = Transport(None, *self._callbacks)

    def run(self, call):
        """Calls the library; what a callback raised comes out of here."""
        with self._lock:
            self._failure = None
            try:
                return call()
            except Exception:
                if self._failure is not None:
                    raise self._failure from None
                raise

    def _guard(self, body):
        try:
            body()
            return 0
        except Exception as failure:  # must not reach C
            self._failure = failure
            return 1

    def _peers(self, messages, count):
        """(global rank, the message's bytes as a tensor) of each; they stay the same for a group of messages."""
        views = []
        for message in messages[:count]:
            memory = (ctypes.c_char * message.bytes).from_address(message.data)
            peer = message.peer if self._group is None else dist.get_global_rank(self._group, message.peer)
            views.append((peer, torch.frombuffer(memory, dtype=torch.uint8)))
        return views

    def _start(self, _, group, receives, receive_count, sends, send_count):
        def body():
            if group not in self._buffers:
                self._buffers[group] = self._peers(receives, receive_count), self._peers(sends, send_count)
            incoming, outgoing = self._buffers[group]
            works = [dist.irecv(view, src=peer, group=self._group) for peer, view in incoming]
            works += [dist.isend(view, dst=peer, group=self._group) for peer, view in outgoing]
            self._works[group] = works

        return self._guard(body)

    def _finish(self, _, group):
        def body():
            for work in self._works.pop(group):
                work.wait()

        return self._guard(body)


_counts = {}  # by group: how many partitions this process has made for it


def _agree(group, description):
    """Raises ValueError that names a rank whose Partition is another one, by the store that all ranks share.

    A collective would hang where the ranks' groups differ. Each rank posts what it makes, and waits for the members of its
    group; one that waits for this rank in another group will never come."""
    me = dist.get_rank()
    members = sorted(dist.get_process_group_ranks(group if group is not None else dist.group.WORLD))
    if len(members) == 1:
        return
    store = dist.distributed_c10d._get_default_store()
    name = "-".join(map(str, members))
    count = _counts[name] = _counts.get(name, 0) + 1

    def key(rank, which=count):
        return f"longca/{name}/{which}/{rank}"

    text = json.dumps(description)
    store.set(key(me), text)
    store.set(f"longca/latest/{me}", json.dumps([members, count]))

    def refuse(sentence):
        store.set(f"longca/{name}/{count}/failed", sentence)
        raise ValueError(sentence)

    deadline = time.monotonic() + TIMEOUT_S
    for rank in members:
        for attempt in itertools.count():
            if store.check([key(rank)]):
                break
            if store.check([f"longca/{name}/{count}/failed"]):
                raise ValueError(store.get(f"longca/{name}/{count}/failed").decode())
            other = _other_group(store, rank, me, members)
            if other is not None:
                refuse(f"rank {rank} makes a Partition over the ranks {other}, rank {me} over {members}")
            if time.monotonic() > deadline:
                refuse(f"rank {rank} did not make the Partition of rank {me} over the ranks {members} within {TIMEOUT_S:.0f} s")
            time.sleep(min(0.05, 0.0005 * 2**attempt))
        theirs = json.loads(store.get(key(rank)).decode())
        if theirs["mask"] != description["mask"]:
            refuse(f"rank {rank} makes its Partition of another mask than rank {me}")
        for what, mine in description.items():
            if theirs[what] != mine:
                refuse(f"rank {rank} makes its Partition with {what} = {theirs[what]!r}, rank {me} with {mine!r}")
    if count > 2:  # everybody has read it: they have come to the one after it
        store.delete_key(key(me, count - 2))


def _other_group(store, rank, me, members):
    """The members of another group that `rank` makes a partition for and waits for this rank in; None if it does not."""
    if not store.check([f"longca/latest/{rank}"]):
        return None
    others, count = json.loads(store.get(f"longca/latest/{rank}").decode())
    waits = others != members and me in others and _counts.get("-".join(map(str, others)), 0) < count
    return others if waits else None
