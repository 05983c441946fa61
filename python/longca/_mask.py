"""Masks: which queries may see which keys."""

import ctypes
import hashlib
import numbers
import os
import struct
import threading
import weakref
from typing import Iterable, Literal, Optional, Sequence, Union

import torch
from torch._subclasses import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from ._library import Blocks, MaskOptions, Slice, check, head_counts, lib, made, released_with, text, whole

SLICE_TYPES = ("full", "causal", "inverse_causal", "bi_causal")
MAX_TOKENS = 1 << 30
MAX_DENSE_CELLS = 1 << 28
# From here on a window is none, in the library too.
NO_LIMIT = 1 << 40


def _window_ends(window):
    """How far a query sees to the left and to the right; −1 is no limit."""
    if window is None:
        return -1, -1
    has_ends = isinstance(window, (tuple, list))
    ends = window if has_ends else (window, window)
    if len(ends) != 2 or not all(hasattr(end, "__index__") for end in ends):
        raise ValueError(f"window = {window!r}: one whole number, or (left, right), is meant")
    ends = (whole(end, "window", -1 if has_ends else 0, 1 << 62) for end in ends)
    return tuple(min(end, NO_LIMIT) for end in ends)


class Core:
    """A mask of the library. Masks that are equal share one, and with it their plans."""

    _by_bytes = weakref.WeakValueDictionary()
    _by_id = weakref.WeakValueDictionary()
    _lock = threading.Lock()

    def __init__(self, pointer, written):
        self.pointer = pointer
        self.bytes = written
        # Of the content: in a graph that another process loads, it stands for this mask or for none.
        self.id = int.from_bytes(hashlib.blake2b(written, digest_size=8).digest(), "little", signed=True)
        self._handles = weakref.WeakValueDictionary()
        released_with(self, lib.longca_mask_release, pointer)

    @classmethod
    def of(cls, pointer):
        """The core of a mask that has just been made; takes the pointer over."""
        size = ctypes.c_size_t()
        check(lib.longca_mask_write(pointer, None, 0, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        check(lib.longca_mask_write(pointer, buffer, size.value, ctypes.byref(size)))
        written = buffer.raw
        with cls._lock:
            core = cls._by_bytes.get(written)
            if core is not None:
                lib.longca_mask_release(pointer)
                return core
            core = cls(pointer, written)
            cls._by_bytes[written] = core
            cls._by_id[core.id] = core
            return core

    @classmethod
    def find(cls, handle):
        """The core that a handle (Mask._handle or a copy of it) stands for."""
        core = cls._by_id.get(handle.item())
        if core is None:
            raise RuntimeError("the mask of this attention is not there: keep it until the backward pass and, to run an "
                               "exported graph, make the same mask first")
        return core

    def handle(self):
        """A tensor that stands for this mask in operators, and keeps it alive as long as its storage."""
        buffer = _Buffer(struct.pack("q", self.id))
        buffer.core = self
        self._handles[id(buffer)] = buffer
        with torch.inference_mode(False):  # no backward pass keeps a tensor of inference mode
            return torch.frombuffer(buffer, dtype=torch.int64)

    def is_held(self):
        """Whether a Mask, or what has saved its handle for a backward pass, may use it again."""
        return len(self._handles) > 0

    @classmethod
    def _after_fork(cls):
        """Another thread may have held the lock, and will not release it here."""
        cls._lock = threading.Lock()


os.register_at_fork(after_in_child=Core._after_fork)


class _Buffer(bytearray):
    """Memory of a tensor, with attributes."""


def _refuse_unreadable(x, name):
    """Raises ValueError for a tensor whose values cannot be read as those of a dense one."""
    if isinstance(x, FakeTensor):
        raise ValueError(f"{name} is a FakeTensor, which has no values")
    if isinstance(x, torch.Tensor):
        if x.layout is not torch.strided or x.is_nested:
            raise ValueError(f"{name} is {'nested' if x.is_nested else x.layout}: a dense tensor is meant")
        if x.is_meta:
            raise ValueError(f"{name} is on meta, where tensors have no values")


def _int64s(values, name):
    """A contiguous int64 tensor on the CPU, with values, whatever mode PyTorch is in. An iterator is read to its end."""
    _refuse_unreadable(values, name)
    if isinstance(values, (set, frozenset)):
        raise TypeError(f"{name} is a {type(values).__name__}, which has no order: a list or a tensor of whole numbers is meant")
    if _is_nested(values, 0) and not hasattr(values, "__getitem__"):
        values = list(values)
    with _disable_current_modes():
        return _real_int64s(values, name)


def _real_int64s(values, name):
    if isinstance(values, torch.Tensor):
        tensor = values
    else:
        try:
            tensor = torch.as_tensor(values, device="cpu")
        except (OverflowError, RuntimeError, TypeError, ValueError):
            for i, value in enumerate(values if isinstance(values, (list, tuple)) else ()):
                whole(value, f"{name}[{i}]", -2**63, 2**63 - 1)
            raise TypeError(f"{name} is a {type(values).__name__}: a list or a tensor of whole numbers is meant") from None
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        if tensor.numel() > 0:
            raise ValueError(f"{name} has dtype {tensor.dtype}: whole numbers are meant")
    if tensor.dim() != 1:
        raise ValueError(f"{name} has {tensor.dim()} dimensions: one is meant")
    numbers = tensor.to(device="cpu", dtype=torch.int64).contiguous()
    if tensor.dtype == torch.uint64 and (numbers < 0).any():
        raise ValueError(f"{name} has a number above {2**63 - 1}, the limit")
    return numbers


def _is_nested(value, depth):
    """Whether `value` is a list or tuple of such, so deep, of lists, tuples or, innermost, anything iterable."""
    if depth == 0:
        return hasattr(value, "__iter__") and not isinstance(value, str)
    return isinstance(value, (list, tuple)) and all(_is_nested(inner, depth - 1) for inner in value)


def short(value):
    shown = repr(value)
    return shown if len(shown) <= 60 and "\n" not in shown else f"a {type(value).__name__}"


def _bounds_of(slice_):
    """The numbers of a slice (q_begin, q_end, k_begin, k_end, type)."""
    try:
        return [whole(value, name, 0, MAX_TOKENS) for value, (name, _) in zip(slice_, Slice._fields_[:4])]
    except (TypeError, ValueError) as error:
        raise type(error)(f"slice {slice_}: {error}") from None


def flag(x, name):
    try:
        if isinstance(x, bool) or x in (0, 1):
            return bool(x)
    except (RuntimeError, ValueError):  # of an array that has not one number
        pass
    raise ValueError(f"{name} = {short(x)}: True or False")


class Mask:
    """Which queries may see which keys. Immutable; equal masks share their plans; can be pickled.

    `Mask(name, tokens)` is one of the fourteen masks: full, causal, sliding_window, sliding_window_causal,
    document, causal_document, shared_question, global_sliding_window, causal_blockwise, prefix_lm_causal,
    prefix_lm_document, block_causal_document, block_sparse, block_sparse_variable. Of the parameters, those
    that the mask has:

    lengths       the documents: a list of their lengths, of `tokens` together, or a distribution's name to draw
                  them from (pile, prolong64k, …)
    window        |q − k| ≤ window
    block_tokens  tokens of a block of block_causal_document
    block, density, block_causal
                  block-sparse masks: tokens of a block, share of the key blocks kept, no query sees a later key
    heads, block_heads
                  block-sparse masks: (query heads, KV heads) of the attention, and whether each "kv" or each
                  "query" head has its own blocks; ignored by the other masks, which are the same for all heads

    Raises ValueError that names the parameter, its value and the limit.
    """

    # Dynamo cannot trace what makes masks: a mask made in a compiled function breaks its graph.
    @torch._disable_dynamo
    def __init__(self, name: str, tokens: int, *, lengths: "Union[str, Iterable[int], None]" = None, seed: int = 42,
                 window: Optional[int] = None, block_tokens: Optional[int] = None, block: Optional[int] = None,
                 density: Optional[float] = None, block_causal: bool = False, heads: "tuple[int, int]" = (1, 1),
                 block_heads: Literal["kv", "query"] = "kv") -> None:
        if block_heads not in ("kv", "query"):
            raise ValueError(f"block_heads = {block_heads!r}: 'kv' or 'query'")
        if density is not None and not (isinstance(density, numbers.Real) and 0 < density <= 1):
            raise ValueError(f"density = {density!r}: above 0 and at most 1")
        options = MaskOptions(ctypes.sizeof(MaskOptions), None, None, 0, whole(seed, "seed", 0, 2**64 - 1),
                              -1 if window is None else whole(window, "window", 0, MAX_TOKENS),
                              0 if block_tokens is None else whole(block_tokens, "block_tokens", 1, MAX_TOKENS),
                              0 if block is None else whole(block, "block", 1, MAX_TOKENS), density or 0.0,
                              *head_counts(heads), block_heads == "query", flag(block_causal, "block_causal"))
        if isinstance(lengths, str):
            options.lengths = text(lengths, "lengths")
        elif lengths is not None:
            documents = _int64s(lengths, "lengths")
            options.document_lengths, options.document_count = documents.data_ptr(), documents.numel()
            if documents.numel() == 0:
                raise ValueError("lengths is empty: at least one document")
        tokens = whole(tokens, "tokens", 1, MAX_TOKENS)
        self._set(name, Core.of(made(lib.longca_mask_named, text(name, "name"), tokens, ctypes.byref(options))))

    @classmethod
    def _make(cls, name, core):
        mask = cls.__new__(cls)
        mask._set(name, core)
        return mask

    def _set(self, name, core):
        self._name = name
        self._tokens_q = lib.longca_mask_tokens_q(core.pointer)
        self._tokens_k = lib.longca_mask_tokens_k(core.pointer)
        self._core = core
        self._handle = core.handle()

    @classmethod
    @torch._disable_dynamo
    def from_cu_seqlens(cls, cu_seqlens: "Iterable[int]", causal: bool = True,
                        window: "Union[int, tuple[int, int], None]" = None) -> "Mask":
        """Packed documents: document i has the tokens [cu_seqlens[i], cu_seqlens[i + 1]) and sees itself only.

        cu_seqlens begins with 0, does not fall and ends with the number of tokens: a list or a tensor of whole
        numbers (one on a GPU is copied to the host, which waits for the GPU). `window` limits how far a query
        sees: w, or (left, right) where −1 is no limit; `causal` excludes later keys.
        """
        left, right = _window_ends(window)
        bounds = _int64s(cu_seqlens, "cu_seqlens")
        if bounds.numel() == 0:
            raise ValueError("cu_seqlens is empty: it begins with 0 and ends with the number of tokens")
        pointer = made(lib.longca_mask_from_cu_seqlens, bounds.data_ptr(), bounds.numel(), flag(causal, "causal"), left, right)
        return cls._make("causal_document" if causal else "document", Core.of(pointer))

    @classmethod
    @torch._disable_dynamo
    def from_slices(cls, slices: "Iterable[tuple[int, int, int, int, str]]", tokens: Optional[int] = None,
                    tokens_k: Optional[int] = None) -> "Mask":
        """The cells of a list of slices (q_begin, q_end, k_begin, k_end, type), no cell in two of them.

        `type` is "full", "causal" (aligned to the bottom right corner), "inverse_causal" (to the top left one) or
        "bi_causal" (both). `tokens` is the number of queries and, without `tokens_k`, of keys; by default where
        the last slice ends, with `tokens_k` where its queries do.
        """
        slices = list(slices) if _is_nested(slices, 0) else slices
        if not _is_nested(slices, 1):
            raise TypeError(f"slices is {short(slices)}: a list of (q_begin, q_end, k_begin, k_end, type) is meant")
        slices = [tuple(s) for s in slices]
        for s in slices:
            if len(s) != 5:
                raise ValueError(f"slice {s} has {len(s)} members: (q_begin, q_end, k_begin, k_end, type) is meant")
            if s[4] not in SLICE_TYPES:
                raise ValueError(f"slice {s} has type {s[4]!r}: {', '.join(SLICE_TYPES)}")
        array = (Slice * len(slices))(*(Slice(*_bounds_of(s), SLICE_TYPES.index(s[4]), 0) for s in slices))
        if tokens is None:
            tokens = max((s.q_end if tokens_k is not None else max(s.q_end, s.k_end) for s in array), default=0)
        tokens = whole(tokens, "tokens", 1, MAX_TOKENS)
        tokens_k = tokens if tokens_k is None else whole(tokens_k, "tokens_k", 1, MAX_TOKENS)
        pointer = made(lib.longca_mask_from_slices, tokens, tokens_k, array, len(slices))
        return cls._make("slices", Core.of(pointer))

    @classmethod
    @torch._disable_dynamo
    @_disable_current_modes()
    def from_blocks(cls, kept: "Union[torch.Tensor, Sequence[Sequence[Iterable[int]]]]", block: int = 128,
                    tokens: Optional[int] = None, q_bounds: "Optional[Iterable[int]]" = None,
                    k_bounds: "Optional[Iterable[int]]" = None, causal: bool = False) -> "Mask":
        """Block-sparse: which blocks of keys each block of queries sees.

        `kept` is a tensor of bool [heads, query blocks, key blocks] (copied to the host) or, per head and query
        block, a list of key blocks. heads is 1, the number of KV heads or that of query heads. Blocks have
        `block` tokens, the last one what remains of `tokens` (by default it is whole), or the bounds that are
        given, from 0 to the number of queries or keys; beside bounds of one, `tokens` is the number of the other.
        `causal` also excludes keys behind the query.
        """
        block = whole(block, "block", 1, MAX_TOKENS)
        tokens = None if tokens is None else whole(tokens, "tokens", 1, MAX_TOKENS)
        columns = None  # of lists: as many as they or their bounds have
        _refuse_unreadable(kept, "kept")
        if isinstance(kept, torch.Tensor):
            if kept.dtype != torch.bool or kept.dim() != 3:
                raise ValueError(f"kept is {kept.dtype} of {kept.dim()} dimensions: bool [heads, query blocks, key blocks]")
            rows, columns = kept.shape[1], kept.shape[2]
            kept = [[row.nonzero().flatten().tolist() for row in head] for head in kept.cpu()]
        else:
            if not _is_nested(kept, 2):
                raise TypeError(f"kept is {short(kept)}: a torch.Tensor of bool [heads, query blocks, key blocks] is "
                                "meant, or per head and query block a list of key blocks")
            kept = [[list(row) for row in head] for head in kept]  # a row may be an iterator
            rows = len(kept[0]) if len(kept) > 0 else 0
        if rows == 0:
            raise ValueError("kept has no query blocks: at least 1 in each head")
        for head in kept:
            if len(head) != rows:
                raise ValueError(f"a head has {len(head)} query blocks, the first one {rows}")
        indices = _int64s([key for head in kept for row in head for key in row], "kept")
        if indices.numel() > 0:
            whole(indices.min(), "a key block in kept", 0, MAX_TOKENS - 1)
            whole(indices.max(), "a key block in kept", 0, MAX_TOKENS - 1)
        indices = indices.to(torch.int32)

        def bounds(given, count, which):
            if given is None:
                end = whole(count * block, "tokens", 0, MAX_TOKENS) if tokens is None else tokens
                found = -(-end // block)
            else:
                given = _int64s(given, f"{which[0]}_bounds")
                found = given.numel() - 1
            if given is not None and found < 1:
                raise ValueError(f"{which[0]}_bounds has {found + 1} numbers: from 0 to the number of tokens are meant")
            if count is not None and found != count:
                raise ValueError(f"kept has {count} {which} blocks, their bounds {found}")
            return torch.tensor([*range(0, end, block), end], device="cpu") if given is None else given

        if columns is None and k_bounds is None and tokens is None:
            columns = 1 + max(indices.tolist(), default=-1)
        if columns == 0:
            raise ValueError("kept has no key blocks: at least 1; lists without any need tokens or k_bounds")
        both = q_bounds is not None and k_bounds is not None
        q_bounds, k_bounds = bounds(q_bounds, rows, "query"), bounds(k_bounds, columns, "key")
        ends = q_bounds[-1].item(), k_bounds[-1].item()
        if both and tokens is not None and tokens not in ends:
            raise ValueError(f"tokens = {tokens}, but q_bounds ends with {ends[0]} and k_bounds with {ends[1]}")
        counts = torch.tensor([0] + [len(row) for head in kept for row in head], dtype=torch.int64, device="cpu")
        offsets = counts.cumsum(0)
        blocks = Blocks(ctypes.sizeof(Blocks), q_bounds.data_ptr(), q_bounds.numel(), k_bounds.data_ptr(),
                        k_bounds.numel(), len(kept), flag(causal, "causal"), offsets.data_ptr(), indices.data_ptr())
        return cls._make("blocks", Core.of(made(lib.longca_mask_from_blocks, ctypes.byref(blocks))))

    @property
    def name(self) -> str:
        """The name that it was made by, or "causal_document", "document", "slices" or "blocks"."""
        return self._name

    @property
    def tokens_q(self) -> int:
        """The number of queries."""
        return self._tokens_q

    @property
    def tokens_k(self) -> int:
        """The number of keys."""
        return self._tokens_k

    @property
    def heads(self) -> int:
        """How many heads have blocks of their own; 1 for other masks."""
        return lib.longca_mask_heads(self._core.pointer)

    @property
    def area(self) -> float:
        """Allowed (query, key) cells of a head, the mean over heads."""
        return lib.longca_mask_area(self._core.pointer)

    @property
    def slices(self) -> "list[tuple[int, int, int, int, str]]":
        """[(q_begin, q_end, k_begin, k_end, type), …]; of block-sparse masks the whole rectangle, without its blocks"""
        count = lib.longca_mask_slices(self._core.pointer, None, 0)
        array = (Slice * count)()
        lib.longca_mask_slices(self._core.pointer, array, count)
        return [(s.q_begin, s.q_end, s.k_begin, s.k_end, SLICE_TYPES[s.type]) for s in array]

    @property
    def lengths(self) -> "list[int]":
        """Lengths of the documents; empty for masks without."""
        count = lib.longca_mask_documents(self._core.pointer, None, 0)
        array = (ctypes.c_int64 * count)()
        lib.longca_mask_documents(self._core.pointer, array, count)
        return list(array)

    @property
    def position_ids(self) -> torch.Tensor:
        """Each token's number in its document, int64 [tokens_q]: positions for RoPE."""
        lengths = self.lengths or [self.tokens_q]
        return torch.cat([torch.arange(length, device="cpu") for length in lengths])

    @_disable_current_modes()
    def dense(self, head: int = 0) -> torch.Tensor:
        """The mask of a head as a tensor of bool [tokens_q, tokens_k]; at most 2^28 cells."""
        head = whole(head, "head", 0, self.heads - 1)
        if self.tokens_q * self.tokens_k > MAX_DENSE_CELLS:
            raise ValueError(f"a dense mask of {self.tokens_q} queries × {self.tokens_k} keys has "
                             f"{self.tokens_q * self.tokens_k} cells: the limit is {MAX_DENSE_CELLS}")
        cells = torch.empty(self.tokens_q, self.tokens_k, dtype=torch.bool, device="cpu")
        check(lib.longca_mask_dense(self._core.pointer, head, cells.data_ptr()))
        return cells

    # Dynamo guards nothing of a mask's content: traced, all masks would get the answer that the first ones got.
    @torch._disable_dynamo
    def __eq__(self, other):
        return isinstance(other, Mask) and self._core is other._core

    @torch._disable_dynamo
    def __hash__(self):
        return hash(self._core.bytes)

    def __reduce__(self):
        return _unpickled, (self.name, self._core.bytes)

    def __repr__(self):
        return f"<longca.Mask {self.name}, {self.tokens_q} × {self.tokens_k} tokens, area {self.area:.0f}>"


def _unpickled(name, written):
    return Mask._make(name, Core.of(made(lib.longca_mask_read, written, len(written))))
