"""The block-sparse attention of cudnn-frontend's Python package, compiled by the CuTe DSL: for each
query head and tile of 128 or 64 queries, a list of tiles of as many keys."""

import importlib.metadata

from longca_adapters import block_lists, torch_tools  # before the package, whose import initialises CUDA

from cudnn.block_sparse_attention import _interface  # noqa: F401 (fails here without the CuTe DSL)
from cudnn.block_sparse_attention import (
    block_sparse_attention_backward,
    block_sparse_attention_forward,
)

BACKWARD_DIM = 128


def version():
    return f"nvidia-cudnn-frontend {importlib.metadata.version('nvidia-cudnn-frontend')}"


def supports(problem, mask):
    if tile_of(mask) == 64 and problem.tokens_q % 64 != 0:
        return (
            "cudnn_bsa takes multiples of 64 queries where its tiles are of 64 tokens, not "
            f"{problem.tokens_q}"
        )
    if not problem.backward:
        return None
    if problem.heads_q != problem.heads_k:
        return (
            "cudnn_bsa's backward pass needs as many KV heads as query heads, not "
            f"{problem.heads_q}:{problem.heads_k}"
        )
    if problem.head_dim != BACKWARD_DIM:
        return (
            f"cudnn_bsa's backward pass has head dimension {BACKWARD_DIM} only, not "
            f"{problem.head_dim}"
        )
    return None


def plan(problem, mask):
    return Plan(problem, mask)


def tile_of(mask):
    """128 where all blocks begin at multiples of it, else 64."""
    starts = [bound for bounds in mask.block_bounds for bound in bounds[:-1]]
    return 64 if any(start % 128 for start in starts) else 128


class Plan:
    def __init__(self, problem, mask):
        self.tile = tile_of(mask)
        self.calls = torch_tools.FirstCalls()
        self.options = {
            "softmax_scale": problem.scale,
            "sparse_block_size": self.tile,
            "layout": "bshd",
        }
        with torch_tools.on_stream():
            kept = block_lists.tiles(mask, self.tile)
            counts, indices = block_lists.ordered(kept)
            self.some_empty = int(counts.min()) == 0 if counts.numel() else False
            self.lists = [
                block_lists.per_head(part, problem.heads_q).unsqueeze(0)
                for part in (indices, counts)
            ]
            self.sizes = self._sizes(mask.tokens_k)
        self.notes = {"tiles": f"{self.tile} x {self.tile}"}
        if problem.backward:
            self.notes["conversion"] = "lists by key tile, made by the package in every backward call"

    def _sizes(self, tokens):
        """Keys of each tile; None where all are whole."""
        if tokens % self.tile == 0:
            return None
        sizes = [min(self.tile, tokens - begin) for begin in range(0, tokens, self.tile)]
        return torch_tools.to_device(sizes)

    @property
    def compile_ms(self):
        return self.calls.ms

    @property
    def workspace_bytes(self):
        return sum(part.numel() * part.element_size() for part in self.lists)

    def _arguments(self):
        indices, counts = self.lists
        return {
            "q2k_block_index": indices, "q2k_block_nums": counts, "block_sizes": self.sizes,
            **self.options,
        }  # fmt: skip

    @staticmethod
    def _shaped(*tensors):
        """[1, tokens, heads, dim]."""
        return [tensor.unsqueeze(0) for tensor in torch_tools.views(*tensors)]

    def _attend(self, q, k, v):
        found = block_sparse_attention_forward(
            q, k, v, **self._arguments(), allow_empty_block_nums=self.some_empty
        )
        return found["o_tensor"], found["lse_tensor"]

    def forward(self, call):
        q, k, v = self._shaped(call.q, call.k, call.v)
        with torch_tools.on_stream(call.stream):
            self.calls.call(
                "forward",
                lambda: torch_tools.into((call.o, call.lse), lambda: self._attend(q, k, v)),
            )

    def backward(self, call):
        dout, q, k, v, o = self._shaped(call.dout, call.q, call.k, call.v, call.o)
        dq, dk, dv = self._shaped(call.dq, call.dk, call.dv)
        lse = torch_tools.view(call.lse).unsqueeze(0)
        with torch_tools.on_stream(call.stream):
            self.calls.call(
                "backward",
                lambda: block_sparse_attention_backward(
                    dout, q, k, v, o, lse, **self._arguments(),
                    dq_tensor=dq, dk_tensor=dk, dv_tensor=dv,
                ),
            )  # fmt: skip
