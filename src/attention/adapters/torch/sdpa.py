"""PyTorch's scaled_dot_product_attention: the fused back end that PyTorch chooses, called by the
operators that the public function dispatches to, because that one does not return the LSE."""

import torch
from longca_adapters import torch_tools
from longca_adapters.torch_tools import version  # noqa: F401 (part of the interface)
from torch.nn.attention import SDPBackend

_aten = torch.ops.aten


def _choose(q, k, v, causal):
    gqa = q.shape[1] != k.shape[1]
    return SDPBackend(torch._fused_sdp_choice(q, k, v, None, 0.0, causal, enable_gqa=gqa))


def supports(problem, mask):
    shape = (1, problem.heads_q, 128, problem.head_dim)
    with torch_tools.on_stream():
        q = torch.empty(shape, dtype=getattr(torch, problem.dtype), device="cuda")
        k = q[:, : problem.heads_k]
        choice = _choose(q, k, k, mask.window[1] == 0)
    if choice not in BACK_ENDS:
        return f"PyTorch has no fused back end for it but chooses {choice.name.lower()}"
    if problem.tokens_q != problem.tokens_k and mask.window[1] == 0:
        return "is_causal aligns the diagonal to the first key, this mask to the last"
    return None


def plan(problem, mask):
    return Plan(problem, mask)


class Flash:
    name = "flash_attention"

    @staticmethod
    def forward(q, k, v, causal, scale):
        return _aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False, scale=scale)

    @staticmethod
    def backward(dout, q, k, v, o, lse, rest, causal, scale):
        return _aten._scaled_dot_product_flash_attention_backward(
            dout, q, k, v, o, lse, *rest[:4], 0.0, causal, *rest[4:6], scale=scale
        )


class Cudnn:
    name = "cudnn_attention"

    @staticmethod
    def forward(q, k, v, causal, scale):
        return _aten._scaled_dot_product_cudnn_attention(
            q, k, v, None, True, 0.0, causal, False, scale=scale
        )

    @staticmethod
    def backward(dout, q, k, v, o, lse, rest, causal, scale):
        cu_q, cu_k, max_q, max_k, seed, offset = rest[:6]
        return _aten._scaled_dot_product_cudnn_attention_backward(
            dout, q, k, v, o, lse.unsqueeze(-1), seed, offset, None,
            cu_q, cu_k, max_q, max_k, 0.0, causal, scale=scale,
        )  # fmt: skip


BACK_ENDS = {SDPBackend.FLASH_ATTENTION: Flash, SDPBackend.CUDNN_ATTENTION: Cudnn}


def _heads_first(*tensors):
    return [t.transpose(0, 1).unsqueeze(0) for t in torch_tools.views(*tensors)]


class Plan:
    def __init__(self, problem, mask):
        self.causal = mask.window[1] == 0
        self.scale = problem.scale
        self.back_end = None
        self.rest = None  # results of the forward pass other than O and LSE
        self.notes = {}

    def forward(self, call):
        q, k, v = _heads_first(call.q, call.k, call.v)
        if self.back_end is None:
            self.back_end = BACK_ENDS[_choose(q, k, v, self.causal)]
            self.notes["back_end"] = self.back_end.name
            if self.back_end is Cudnn:
                self.notes["cudnn"] = str(torch.backends.cudnn.version())
        with torch_tools.on_stream(call.stream):
            results = torch_tools.into((call.o, call.lse), lambda: self._forward(q, k, v))
        self.rest = results[2:]

    def _forward(self, q, k, v):
        o, lse, *rest = self.back_end.forward(q, k, v, self.causal, self.scale)
        return o[0].transpose(0, 1), lse, *rest

    def backward(self, call):
        dout, q, k, v, o = _heads_first(call.dout, call.q, call.k, call.v, call.o)
        lse = torch_tools.view(call.lse).unsqueeze(0)
        with torch_tools.on_stream(call.stream):
            torch_tools.into(
                (call.dq, call.dk, call.dv),
                lambda: [
                    gradient[0].transpose(0, 1)
                    for gradient in self.back_end.backward(
                        dout, q, k, v, o, lse, self.rest, self.causal, self.scale
                    )
                ],
            )
