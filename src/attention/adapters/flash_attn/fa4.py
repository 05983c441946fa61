"""FlashAttention 4, compiled by the CuTe DSL: full, causal, windows and documents by its own arguments;
every other static mask by a mask_mod over key intervals, with lists of tiles made from the
program's mask; blocks by lists of tiles alone.

It calls what flash_attn_func and flash_attn_varlen_func call, so that results are written where the
program wants them. Seen in flash-attn-4 4.0.0b36."""

import functools
import importlib.metadata
import time
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


def supports(problem, mask):
    blocks = mask.block_bounds is not None
    if not blocks and _has_arguments(mask):
        if problem.tokens_q != problem.tokens_k:
            return "fa4 is called for as many queries as keys here where it has an argument for the mask"
        return None
    if problem.head_dim not in MASK_MOD_DIMS:
        return f"fa4's lists of {TILE}-token tiles go with head dimensions of 64, 96 and 128, not {problem.head_dim}"
    if problem.deterministic and problem.backward:
        return "fa4's backward pass over lists of tiles wants an order of writes that is not made here"
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


def tile_tensors(partial, full):
    """BlockSparseTensorsTorch of lists of tiles, each as block_lists.ordered gives them."""
    parts = (part.unsqueeze(0) for part in (*partial, *full))
    return BlockSparseTensorsTorch(*parts, block_size=(TILE, TILE))


def tiles_of_blocks(mask):
    """Which tiles of TILE tokens are kept, bool [lists, query tiles, key tiles]."""
    found = block_lists.kept(mask)
    for axis, bounds in enumerate(mask.block_bounds, start=1):
        tiles = [-(-(end - begin) // TILE) for begin, end in zip(bounds, bounds[1:])]
        found = found.repeat_interleave(torch.tensor(tiles, device="cuda"), axis)
    return found


class Plan:
    def __init__(self, problem, mask):
        self.options = {"softmax_scale": problem.scale, "causal": False}
        self.deterministic = problem.deterministic
        self.tiles = self.tiles_backward = None
        self.varlen = False
        self.compile_ms = 0.0
        self.compiled = set()
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
        count = max(1, mask.max_row_intervals())
        ends = [
            torch.frombuffer(part, dtype=torch.int32).cuda().view(count, mask.tokens_q)
            for part in mask.row_intervals(max_intervals=count)
        ]
        aux = [ends[side][i].contiguous() for i in range(count) for side in (0, 1)]
        self.options.update(mask_mod=_mask_mod(count), aux_tensors=aux)
        shape = (-(-mask.tokens_q // TILE), -(-mask.tokens_k // TILE))
        classes = torch.frombuffer(mask.tiles(TILE, TILE), dtype=torch.uint8).cuda().view(1, *shape)
        self._use_tiles(problem, lambda by_key: [
            block_lists.ordered((classes.mT if by_key else classes) == kind)
            for kind in (PARTIAL, FULL)
        ])  # fmt: skip

    def _use_blocks(self, problem, mask):
        kept = tiles_of_blocks(mask)

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

    def _call(self, name, function):
        """Calls; the first time it compiles, which is timed apart."""
        if name not in self.compiled:
            begin = time.perf_counter()
            function()
            torch.cuda.current_stream().synchronize()
            self.compile_ms += (time.perf_counter() - begin) * 1e3
            self.compiled.add(name)
        function()

    def forward(self, call):
        q, k, v, o = self._shaped(call.q, call.k, call.v, call.o)
        lse = self._lse(call.lse)
        with torch_tools.on_stream(call.stream):
            self._call(
                "forward",
                lambda: interface._flash_attn_fwd(
                    q, k, v, **self.options, block_sparse_tensors=self.tiles, return_lse=True,
                    out=o, lse=lse,
                ),
            )  # fmt: skip

    def backward(self, call):
        dout, q, k, v, o = self._shaped(call.dout, call.q, call.k, call.v, call.o)
        dq, dk, dv = self._shaped(call.dq, call.dk, call.dv)
        lse = self._lse(call.lse)
        with torch_tools.on_stream(call.stream):
            self._call(
                "backward",
                lambda: interface._flash_attn_bwd(
                    q, k, v, o, dout, lse, **self.options, block_sparse_tensors=self.tiles_backward,
                    deterministic=self.deterministic, dq=dq, dk=dk, dv=dv,
                ),
            )  # fmt: skip
