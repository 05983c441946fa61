"""FlashAttention 2 as PyTorch carries it: its operators, with cu_seqlens and window sizes."""

import torch
from longca_adapters import torch_tools
from longca_adapters.torch_tools import version  # noqa: F401 (part of the interface)

_forward = torch.ops.aten._flash_attention_forward
_backward = torch.ops.aten._flash_attention_backward


def supports(problem, mask):
    if problem.tokens_q != problem.tokens_k:
        return "fa2 is called for as many queries as keys here"
    return None


def plan(problem, mask):
    return Plan(problem, mask)


class Plan:
    def __init__(self, problem, mask):
        self.scale = problem.scale
        self.deterministic = problem.deterministic
        self.cu_seqlens, self.longest = None, problem.tokens_q
        if mask.window is not None:
            left, right = mask.window
            self.causal = right == 0
            limits = (None if size == -1 else size for size in mask.window)
            self.left, self.right = (None, None) if (left, right) in ((-1, -1), (-1, 0)) else limits
        else:
            bounds, self.causal = mask.documents
            self.left = self.right = None
            self.longest = max(end - begin for begin, end in zip(bounds, bounds[1:]))
            with torch_tools.on_stream():
                self.cu_seqlens = torch_tools.to_device(bounds)
        self.random_state = None

    def _shaped(self, *tensors):
        """[tokens, heads, dim] with cu_seqlens, else [1, tokens, heads, dim]."""
        found = torch_tools.views(*tensors)
        return found if self.cu_seqlens is not None else [t.unsqueeze(0) for t in found]

    def _bounds(self):
        return (self.cu_seqlens, self.cu_seqlens, self.longest, self.longest, 0.0, self.causal)

    def _options(self):
        return {"scale": self.scale, "window_size_left": self.left, "window_size_right": self.right}

    def forward(self, call):
        q, k, v = self._shaped(call.q, call.k, call.v)
        with torch_tools.on_stream(call.stream):
            results = torch_tools.into(
                (call.o, call.lse),
                lambda: _forward(q, k, v, *self._bounds(), False, **self._options()),
            )
        self.random_state = results[2:4]  # the backward pass takes it even without dropout

    def backward(self, call):
        dout, q, k, v, o = self._shaped(call.dout, call.q, call.k, call.v, call.o)
        lse = torch_tools.view(call.lse)
        lse = lse if self.cu_seqlens is not None else lse.unsqueeze(0)
        with torch_tools.on_stream(call.stream), torch_tools.deterministic(self.deterministic):
            torch_tools.into(
                (call.dq, call.dk, call.dv),
                lambda: _backward(
                    dout, q, k, v, o, lse, *self._bounds(), *self.random_state, **self._options()
                ),
            )
