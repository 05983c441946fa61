"""Flex-Flash-Attention of MagiAttention: the slices of the mask are its arguments."""

import gc
import importlib.metadata

import torch
from longca_adapters import torch_tools
from magi_attention.functional import flex_flash_attn_func

# MagiAttention numbers the types as the program does.
_TYPES = {"full": 0, "causal": 1, "inverse_causal": 2, "bi_causal": 3}


def version():
    return importlib.metadata.version("magi_attention")


def supports(problem, mask):
    return None


def plan(problem, mask):
    return Plan(problem, mask)


class Plan:
    def __init__(self, problem, mask):
        self.scale = problem.scale
        self.backward_wanted = problem.backward
        slices = mask.slices
        with torch_tools.on_stream():
            self.q_ranges = torch_tools.to_device([s[0:2] for s in slices])
            self.k_ranges = torch_tools.to_device([s[2:4] for s in slices])
            self.types = torch_tools.to_device([_TYPES[s[4]] for s in slices])
        self.inputs = self.o = None

    def forward(self, call):
        """Keeps the autograd graph if a backward pass follows."""
        views = torch_tools.views(call.q, call.k, call.v)
        self.inputs = [t.detach().requires_grad_(self.backward_wanted) for t in views]
        with torch_tools.on_stream(call.stream):
            results = torch_tools.into(
                (call.o, call.lse), self._attend, in_place=not self.backward_wanted
            )
        self.o = results[0]

    def _attend(self):
        o, found = flex_flash_attn_func(
            *self.inputs, self.q_ranges, self.k_ranges,
            attn_type_map=self.types, softmax_scale=self.scale,
        )  # fmt: skip
        lse = getattr(found, "lse", found)  # newer versions return an object
        return o, lse.t().contiguous()  # theirs is [tokens, heads]

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
