"""Block-Sparse-Attention on FlashAttention 2: bits of kept blocks of 128 tokens per query head."""

import gc
import importlib.metadata

import torch
from block_sparse_attn import block_sparse_attn_func
from longca_adapters import block_lists, torch_tools

BLOCK = 128


def version():
    return "block_sparse_attn " + importlib.metadata.version("block_sparse_attn")


def supports(problem, mask):
    return None


def plan(problem, mask):
    return Plan(problem, mask)


def _blocks_of_tiles(bounds):
    """The block of each tile of 128 tokens."""
    counts = [-(-(end - begin) // BLOCK) for begin, end in zip(bounds, bounds[1:])]
    return torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts)).cuda()


class Plan:
    def __init__(self, problem, mask):
        rows, columns = (_blocks_of_tiles(bounds) for bounds in mask.block_bounds)
        with torch_tools.on_stream():
            kept = block_lists.kept(mask)[:, rows][:, :, columns]
            self.kept = block_lists.per_head(kept, problem.heads_q).unsqueeze(0)
            ends = [(0, tokens) for tokens in (problem.tokens_q, problem.tokens_k)]
            self.bounds = [torch_tools.to_device(end) for end in ends]
            # All heads are block-sparse, none of them dense or streaming.
            self.head_kinds = torch.ones(problem.heads_q, dtype=torch.int32, device="cuda")
        self.longest = (problem.tokens_q, problem.tokens_k)
        self.options = {
            "softmax_scale": problem.scale,
            "is_causal": mask.slices[0][4] == "causal",
            "return_attn_probs": True,  # and with them the LSE
        }
        self.backward_wanted = problem.backward
        self.inputs = self.o = None  # of the autograd graph
        self.notes = {"conversion": "the package turns its block mask into lists in every call"}

    @property
    def workspace_bytes(self):
        return self.kept.numel()

    def _attend(self):
        o, lse, _ = block_sparse_attn_func(
            *self.inputs, *self.bounds, self.head_kinds, None, self.kept, *self.longest, 0.0,
            **self.options,
        )  # fmt: skip
        return o, lse.view(o.shape[1], -1)[:, : o.shape[0]]

    def forward(self, call):
        """Keeps the autograd graph if a backward pass follows."""
        views = torch_tools.views(call.q, call.k, call.v)
        self.inputs = [t.detach().requires_grad_(self.backward_wanted) for t in views]
        with torch_tools.on_stream(call.stream):
            results = torch_tools.into(
                (call.o, call.lse), self._attend, in_place=not self.backward_wanted
            )
        self.o = results[0]

    def backward(self, call):
        dout = torch_tools.view(call.dout)
        with torch_tools.on_stream(call.stream):
            torch_tools.into(
                (call.dq, call.dk, call.dv),
                lambda: torch.autograd.grad(self.o, self.inputs, dout, retain_graph=True),
            )

    def close(self):
        """Frees the autograd graph, whose tensors may hold each other in a cycle of references,
        before the next cell is measured."""
        self.inputs = self.o = None
        gc.collect()
