"""FlashAttention 4, compiled by the CuTe DSL: full, causal, windows and documents by its own arguments;
every other static mask by a mask_mod over key intervals, with lists of tiles made from the
program's mask; blocks by lists of tiles alone.

It calls what flash_attn_func and flash_attn_varlen_func call, so that results are written where the
program wants them. Seen in flash-attn-4 4.0.0b36."""

import functools
import importlib.metadata
import inspect
import warnings

from longca_adapters import block_lists, torch_tools  # before flash_attn.cute, whose import initialises CUDA

import cutlass
import cutlass.cute as cute
import torch
from flash_attn.cute import interface, utils
from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch
from longca_host.masks import FULL, PARTIAL

# The DSL warns, for each shape with auxiliary tensors, that it hands them on as they are.
warnings.filterwarnings("ignore", message="Argument aux_data", category=UserWarning)

TILE = 128  # what its lists of tiles count in, rows and columns
MAX_INTERVALS = 2  # of keys that a row of a mask_mod attends to
MASK_MOD_DIMS = (64, 96, 128)  # whose tiles divide TILE, forward and backward


def version():
    return f"flash-attn-4 {importlib.metadata.version('flash-attn-4')}"


def _missing(problem):
    """The first argument that the problem needs and this version's functions do not have, or None."""
    functions = [interface._flash_attn_fwd] + [interface._flash_attn_bwd] * problem.backward
    wanted = {"learnable_sink": problem.sink, "softcap": problem.softcap > 0}
    for name in (name for name, is_wanted in wanted.items() if is_wanted):
        for function in functions:
            if name not in inspect.signature(function).parameters:
                return f"{function.__name__} of {version()} has no argument {name}"
    return None


def supports(problem, mask):
    if missing := _missing(problem):
        return missing
    if problem.backward and problem.value_dim != problem.head_dim and problem.heads_q != problem.heads_k:
        return (
            f"fa4's backward pass with head dimensions {problem.head_dim}:{problem.value_dim} needs as "
            f"many KV heads as query heads, not {problem.heads_q}:{problem.heads_k}"
        )
    blocks = mask.block_bounds is not None
    if not blocks and _has_arguments(mask):
        if problem.tokens_q != problem.tokens_k:
            return "fa4 is called for as many queries as keys here where it has an argument for the mask"
        return None
    if problem.head_dim not in MASK_MOD_DIMS:
        return f"fa4's lists of {TILE}-token tiles go with head dimensions of 64, 96 and 128, not {problem.head_dim}"
    if problem.deterministic and problem.backward:
        return (
            "fa4's backward pass over lists of tiles adds to dQ in any order on Hopper "
            "(flash-attn-4 4.0.0b36 has a fixed order there for its own arguments only)"
        )
    if blocks:
        return None
    intervals = mask.max_row_intervals()
    if intervals > MAX_INTERVALS:
        return f"fa4's mask_mod here takes {MAX_INTERVALS} intervals of keys per query, not {intervals}"
    return None


def plan(problem, mask):
    return Plan(problem, mask)


def _has_arguments(mask):
    return mask.window is not None or mask.documents is not None


@functools.lru_cache(maxsize=None)
def _mask_mod(intervals):
    """Whether a key is in one of the row's intervals, whose ends are the auxiliary tensors
    begin 0, end 0, begin 1, end 1, each [tokens_q]."""

    def inside(aux_tensors, i, row, key):
        begin = utils.scalar_to_ssa(aux_tensors[2 * i][row], cutlass.Int32)
        end = utils.scalar_to_ssa(aux_tensors[2 * i + 1][row], cutlass.Int32)
        return (key >= begin) & (key < end)

    if intervals == 1:

        @cute.jit
        def sees(batch, head, q, key, seqlen_info, aux_tensors):
            return inside(aux_tensors, 0, utils.ssa_to_scalar(q), key)

    else:

        @cute.jit
        def sees(batch, head, q, key, seqlen_info, aux_tensors):
            row = utils.ssa_to_scalar(q)
            return inside(aux_tensors, 0, row, key) | inside(aux_tensors, 1, row, key)

    return sees


def interval_ends(mask):
    """How many intervals of keys the rows have at most, at least one, and the auxiliary tensors of
    a mask_mod for as many. All on the GPU: the first long operation on the CPU starts PyTorch's
    threads, which takes tens of ms."""
    count, *found = mask.counted_row_intervals(max_intervals=MAX_INTERVALS)
    count = max(1, count)
    begins, ends = (
        torch.frombuffer(part, dtype=torch.int32, count=count * mask.tokens_q).cuda().view(count, mask.tokens_q)
        for part in found
    )
    return count, [part[i] for i in range(count) for part in (begins, ends)]


def tile_tensors(partial, full):
    """BlockSparseTensorsTorch of lists of tiles, each as block_lists.ordered gives them."""
    parts = (part.unsqueeze(0) for part in (*partial, *full))
    return BlockSparseTensorsTorch(*parts, block_size=(TILE, TILE))


class Plan:
    def __init__(self, problem, mask):
        self.options = {"softmax_scale": problem.scale, "causal": False}
        if problem.softcap:
            self.options["softcap"] = problem.softcap
        self.deterministic = problem.deterministic
        self.tiles = self.tiles_backward = None
        self.varlen = False
        self.calls = torch_tools.FirstCalls()
        with torch_tools.on_stream():
            if mask.block_bounds is not None:
                self._use_blocks(problem, mask)
            elif mask.window is not None:
                self._use_window(mask.window)
            elif mask.documents is not None:
                self._use_documents(*mask.documents)
            else:
                self._use_intervals(problem, mask)

    def _use_window(self, window):
        self.options["causal"] = window == (-1, 0)
        if not self.options["causal"] and window != (-1, -1):
            left, right = (None if size == -1 else size for size in window)
            self.options.update(window_size_left=left, window_size_right=right)

    def _use_documents(self, bounds, causal):
        longest = max(end - begin for begin, end in zip(bounds, bounds[1:]))
        cu_seqlens = torch_tools.to_device(bounds)
        self.varlen = True
        self.options.update(
            causal=causal,
            cu_seqlens_q=cu_seqlens,
            cu_seqlens_k=cu_seqlens,
            max_seqlen_q=longest,
            max_seqlen_k=longest,
        )

    def _use_intervals(self, problem, mask):
        self.calls.prepare(block_lists.load)
        count, aux = interval_ends(mask)
        self.calls.prepare(lambda: _mask_mod(count))  # the DSL reads its source, once per process
        self.options.update(mask_mod=_mask_mod(count), aux_tensors=aux)
        shape = (-(-mask.tokens_q // TILE), -(-mask.tokens_k // TILE))
        classes = torch.frombuffer(mask.tiles(TILE, TILE), dtype=torch.uint8).cuda().view(1, *shape)

        def lists(by_key):
            tiles = classes.mT if by_key else classes
            # As wide as can be: the longest row is not known before the GPU has counted.
            return [block_lists.ordered(tiles == kind, tiles.shape[2]) for kind in (PARTIAL, FULL)]

        self._use_tiles(problem, lists)

    def _use_blocks(self, problem, mask):
        self.calls.prepare(block_lists.load)
        kept = block_lists.tiles(mask, TILE)

        def lists(by_key):
            full = [
                block_lists.per_head(part, problem.heads_q)
                for part in block_lists.ordered(kept.mT if by_key else kept)
            ]
            partial = [torch.zeros_like(full[0]), torch.zeros_like(full[1][..., :1])]
            return partial, full

        self._use_tiles(problem, lists)

    def _use_tiles(self, problem, lists):
        """`lists(by_key)` gives the partial and the full tiles of each row, or of each column."""
        self.tiles = tile_tensors(*lists(False))
        if problem.backward:
            self.tiles_backward = tile_tensors(*lists(True))

    def _shaped(self, *tensors):
        """[tokens, heads, dim] with cu_seqlens, else [1, tokens, heads, dim]."""
        found = torch_tools.views(*tensors)
        return found if self.varlen else [tensor.unsqueeze(0) for tensor in found]

    def _lse(self, tensor):
        """[heads, tokens] with cu_seqlens, else [1, heads, tokens]."""
        lse = torch_tools.view(tensor)
        return lse if self.varlen else lse.unsqueeze(0)

    @property
    def compile_ms(self):
        return self.calls.ms

    @staticmethod
    def _sink(call):
        """[heads_q] float32, or None."""
        return None if call.sink is None else torch_tools.view(call.sink)

    def forward(self, call):
        q, k, v, o = self._shaped(call.q, call.k, call.v, call.o)
        lse = self._lse(call.lse)
        with torch_tools.on_stream(call.stream):
            self.calls.call(
                "forward",
                lambda: interface._flash_attn_fwd(
                    q, k, v, **self.options, block_sparse_tensors=self.tiles, return_lse=True,
                    out=o, lse=lse, learnable_sink=self._sink(call),
                ),
            )  # fmt: skip

    def backward(self, call):
        dout, q, k, v, o = self._shaped(call.dout, call.q, call.k, call.v, call.o)
        dq, dk, dv = self._shaped(call.dq, call.dk, call.dv)
        lse = self._lse(call.lse)
        with torch_tools.on_stream(call.stream):
            gradients = self.calls.call(
                "backward",
                lambda: interface._flash_attn_bwd(
                    q, k, v, o, dout, lse, **self.options, block_sparse_tensors=self.tiles_backward,
                    deterministic=self.deterministic, dq=dq, dk=dk, dv=dv,
                    learnable_sink=self._sink(call),
                ),
            )  # fmt: skip
            if call.sink is not None:  # the fourth, which the package allocates
                torch_tools.view(call.dsink).copy_(gradients[3])
