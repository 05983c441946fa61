"""Masks: which queries may see which keys."""

import ctypes
import itertools
import operator
import struct
import threading
import weakref

import torch

from ._library import Blocks, MaskOptions, Slice, check, lib, made

SLICE_TYPES = ("full", "causal", "inverse_causal", "bi_causal")


def _window_ends(window):
    """How far a query sees to the left and to the right; −1 is no limit."""
    if window is None:
        return -1, -1
    has_ends = isinstance(window, (tuple, list))
    ends = tuple(window) if has_ends else (window, window)
    try:
        ends = tuple(operator.index(end) for end in ends)
    except TypeError:
        ends = ()
    if len(ends) != 2:
        raise ValueError(f"window = {window!r}: one whole number, or (left, right), is meant")
    least = -1 if has_ends else 0
    if min(ends) < least:
        raise ValueError(f"window = {window!r}: at least {least}")
    return ends


class Core:
    """A mask of the library. Masks that are equal share one, and with it their plans."""

    _next_id = itertools.count(1)
    _by_bytes = weakref.WeakValueDictionary()
    _by_id = weakref.WeakValueDictionary()
    _lock = threading.Lock()

    def __init__(self, pointer, written):
        self.pointer = pointer
        self.bytes = written
        self.id = next(self._next_id)
        self._release = weakref.finalize(self, lib.longca_mask_release, pointer)

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
            raise RuntimeError("the mask of this attention is no longer there: keep it until the backward pass")
        return core

    def handle(self):
        """A tensor that stands for this mask in operators, and keeps it alive as long as its storage."""
        buffer = _Buffer(struct.pack("q", self.id))
        buffer.core = self
        return torch.frombuffer(buffer, dtype=torch.int64)


class _Buffer(bytearray):
    """Memory of a tensor, with attributes."""


def _int64s(values, name):
    """A contiguous int64 tensor on the CPU."""
    tensor = values if isinstance(values, torch.Tensor) else torch.as_tensor(values)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        if tensor.numel() > 0:
            raise ValueError(f"{name} has dtype {tensor.dtype}: whole numbers are meant")
    if tensor.dim() != 1:
        raise ValueError(f"{name} has {tensor.dim()} dimensions: one is meant")
    return tensor.to(device="cpu", dtype=torch.int64).contiguous()


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
                  "query" head has its own blocks

    Raises ValueError that names the parameter, its value and the limit.
    """

    def __init__(self, name, tokens, *, lengths=None, seed=42, window=None, block_tokens=None, block=None,
                 density=None, block_causal=False, heads=(1, 1), block_heads="kv"):
        if block_heads not in ("kv", "query"):
            raise ValueError(f"block_heads = {block_heads!r}: 'kv' or 'query'")
        for what, value, least in (("window", window, 0), ("block_tokens", block_tokens, 1), ("block", block, 1)):
            if value is not None and value < least:
                raise ValueError(f"{what} = {value}: at least {least}")
        if density is not None and not 0 < density <= 1:
            raise ValueError(f"density = {density}: above 0 and at most 1")
        options = MaskOptions(ctypes.sizeof(MaskOptions), None, None, 0, seed, -1 if window is None else window,
                              block_tokens or 0, block or 0, density or 0.0, heads[0], heads[1],
                              block_heads == "query", block_causal)
        if isinstance(lengths, str):
            options.lengths = lengths.encode()
        elif lengths is not None:
            documents = _int64s(lengths, "lengths")
            options.document_lengths, options.document_count = documents.data_ptr(), documents.numel()
            if documents.numel() == 0:
                raise ValueError("lengths is empty: at least one document")
        self._set(name, Core.of(made(lib.longca_mask_named, name.encode(), tokens, ctypes.byref(options))))

    @classmethod
    def _make(cls, name, core):
        mask = cls.__new__(cls)
        mask._set(name, core)
        return mask

    def _set(self, name, core):
        self.name = name
        self.tokens_q = lib.longca_mask_tokens_q(core.pointer)
        self.tokens_k = lib.longca_mask_tokens_k(core.pointer)
        self._core = core
        self._handle = core.handle()

    @classmethod
    def from_cu_seqlens(cls, cu_seqlens, causal=True, window=None):
        """Packed documents: document i has the tokens [cu_seqlens[i], cu_seqlens[i + 1]) and sees itself only.

        cu_seqlens begins with 0, does not fall and ends with the number of tokens: a list or a tensor of whole
        numbers (one on a GPU is copied to the host, which waits for the GPU). `window` limits how far a query
        sees: w, or (left, right) where −1 is no limit; `causal` excludes later keys.
        """
        left, right = _window_ends(window)
        bounds = _int64s(cu_seqlens, "cu_seqlens")
        pointer = made(lib.longca_mask_from_cu_seqlens, bounds.data_ptr() or None, bounds.numel(), causal, left, right)
        return cls._make("causal_document" if causal else "document", Core.of(pointer))

    @classmethod
    def from_slices(cls, slices, tokens=None, tokens_k=None):
        """The cells of a list of slices (q_begin, q_end, k_begin, k_end, type), no cell in two of them.

        `type` is "full", "causal" (aligned to the bottom right corner), "inverse_causal" (to the top left one) or
        "bi_causal" (both). `tokens` is the number of queries and, without `tokens_k`, of keys; by default where
        the last slice ends.
        """
        slices = [tuple(s) for s in slices]
        for s in slices:
            if len(s) != 5:
                raise ValueError(f"slice {s} has {len(s)} members: (q_begin, q_end, k_begin, k_end, type) is meant")
            if s[4] not in SLICE_TYPES:
                raise ValueError(f"slice {s} has type {s[4]!r}: {', '.join(SLICE_TYPES)}")
        if tokens is None:
            tokens = max((max(s[1], s[3]) for s in slices), default=0)
        array = (Slice * len(slices))(*(Slice(*s[:4], SLICE_TYPES.index(s[4]), 0) for s in slices))
        pointer = made(lib.longca_mask_from_slices, tokens, tokens if tokens_k is None else tokens_k, array, len(slices))
        return cls._make("slices", Core.of(pointer))

    @classmethod
    def from_blocks(cls, kept, block=128, tokens=None, q_bounds=None, k_bounds=None, causal=False):
        """Block-sparse: which blocks of keys each block of queries sees.

        `kept` is a tensor of bool [heads, query blocks, key blocks] (copied to the host) or, per head and query
        block, a list of key blocks. heads is 1, the number of KV heads or that of query heads. Blocks have
        `block` tokens, the last one what remains of `tokens` (by default it is whole), or the bounds that are
        given, from 0 to the number of tokens. `causal` also excludes keys behind the query.
        """
        if isinstance(kept, torch.Tensor):
            if kept.dtype != torch.bool or kept.dim() != 3:
                raise ValueError(f"kept is {kept.dtype} of {kept.dim()} dimensions: bool [heads, query blocks, key blocks]")
            rows, columns = kept.shape[1], kept.shape[2]
            kept = [[row.nonzero().flatten().tolist() for row in head] for head in kept.cpu()]
        else:
            rows = len(kept[0]) if kept else 0
            columns = 1 + max((key for head in kept for row in head for key in row), default=-1)
        for head in kept:
            if len(head) != rows:
                raise ValueError(f"a head has {len(head)} query blocks, the first one {rows}")

        def bounds(given, count, name):
            if given is None:
                end = count * block if tokens is None else tokens
                given = [*range(0, end, block), end]
            return _int64s(given, name)

        q_bounds, k_bounds = bounds(q_bounds, rows, "q_bounds"), bounds(k_bounds, columns, "k_bounds")
        if q_bounds.numel() != rows + 1:
            raise ValueError(f"kept has {rows} query blocks, their bounds {q_bounds.numel() - 1}")
        indices = torch.tensor([key for head in kept for row in head for key in row], dtype=torch.int32)
        counts = torch.tensor([0] + [len(row) for head in kept for row in head], dtype=torch.int64)
        offsets = counts.cumsum(0)
        blocks = Blocks(ctypes.sizeof(Blocks), q_bounds.data_ptr(), q_bounds.numel(), k_bounds.data_ptr(),
                        k_bounds.numel(), len(kept), causal, offsets.data_ptr(), indices.data_ptr())
        return cls._make("blocks", Core.of(made(lib.longca_mask_from_blocks, ctypes.byref(blocks))))

    @property
    def heads(self):
        """How many heads have blocks of their own; 1 for other masks."""
        return lib.longca_mask_heads(self._core.pointer)

    @property
    def area(self):
        """Allowed (query, key) cells of a head, the mean over heads."""
        return lib.longca_mask_area(self._core.pointer)

    @property
    def slices(self):
        """[(q_begin, q_end, k_begin, k_end, type), …]"""
        count = lib.longca_mask_slices(self._core.pointer, None, 0)
        array = (Slice * count)()
        lib.longca_mask_slices(self._core.pointer, array, count)
        return [(s.q_begin, s.q_end, s.k_begin, s.k_end, SLICE_TYPES[s.type]) for s in array]

    @property
    def lengths(self):
        """Lengths of the documents; empty for masks without."""
        count = lib.longca_mask_documents(self._core.pointer, None, 0)
        array = (ctypes.c_int64 * count)()
        lib.longca_mask_documents(self._core.pointer, array, count)
        return list(array)

    @property
    def position_ids(self):
        """Each token's number in its document, int64 [tokens_q]: positions for RoPE."""
        lengths = self.lengths or [self.tokens_q]
        return torch.cat([torch.arange(length) for length in lengths])

    def dense(self, head=0):
        """The mask of a head as a tensor of bool [tokens_q, tokens_k]; at most 2^28 cells."""
        cells = torch.empty(self.tokens_q, self.tokens_k, dtype=torch.bool)
        check(lib.longca_mask_dense(self._core.pointer, head, cells.data_ptr()))
        return cells

    def __eq__(self, other):
        return isinstance(other, Mask) and self._core is other._core

    def __hash__(self):
        return hash(self._core.bytes)

    def __reduce__(self):
        return _unpickled, (self.name, self._core.bytes)

    def __repr__(self):
        return f"<longca.Mask {self.name}, {self.tokens_q} × {self.tokens_k} tokens, area {self.area:.0f}>"


def _unpickled(name, written):
    return Mask._make(name, Core.of(made(lib.longca_mask_read, written, len(written))))
