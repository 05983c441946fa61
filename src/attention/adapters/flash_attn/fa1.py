"""FlashAttention 1: the extension of the flash-attn 1 package, always called with cu_seqlens."""

import importlib.metadata

import torch
from longca_adapters import torch_tools

# After PyTorch, whose libraries it needs.
import flash_attn_cuda  # isort: skip


def version():
    try:
        return importlib.metadata.version("flash-attn")
    except importlib.metadata.PackageNotFoundError:
        return ""


def supports(problem, mask):
    if problem.tokens_q != problem.tokens_k:
        return "fa1 is called for as many queries as keys here"
    return None


def plan(problem, mask):
    return Plan(problem, mask)


class Plan:
    def __init__(self, problem, mask):
        self.scale = problem.scale
        bounds, self.causal = mask.documents
        self.lengths = [end - begin for begin, end in zip(bounds, bounds[1:])]
        with torch_tools.on_stream():
            self.cu_seqlens = torch_tools.to_device(bounds)
            # Indices in [documents, heads, longest] of the values of [heads, tokens].
            document = torch.repeat_interleave(
                torch.arange(len(self.lengths)), torch.tensor(self.lengths)
            )
            place = torch.arange(bounds[-1]) - torch.tensor(bounds)[document]
            self.document, self.place = document.cuda(), place.cuda()
        self.lse = None  # as the package wants it back

    def _bounds(self):
        longest = max(self.lengths)
        return (
            self.cu_seqlens,
            self.cu_seqlens,
            longest,
            longest,
            0.0,
            self.scale,
            False,
            self.causal,
        )

    def forward(self, call):
        q, k, v, o, lse = torch_tools.views(call.q, call.k, call.v, call.o, call.lse)
        with torch_tools.on_stream(call.stream):
            self.lse = flash_attn_cuda.fwd(q, k, v, o, *self._bounds(), False, 0, None)[0]
            if len(self.lengths) == 1:
                lse.copy_(self.lse[0, :, : self.lengths[0]])
            else:
                lse.copy_(self.lse[self.document, :, self.place].t())

    def backward(self, call):
        dout, q, k, v, o = torch_tools.views(call.dout, call.q, call.k, call.v, call.o)
        gradients = torch_tools.views(call.dq, call.dk, call.dv)
        with torch_tools.on_stream(call.stream):
            flash_attn_cuda.bwd(
                dout, q, k, v, o, self.lse, *gradients, *self._bounds(), 0, None, None
            )
