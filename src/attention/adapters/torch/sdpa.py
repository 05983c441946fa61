"""PyTorch's scaled_dot_product_attention: the fused back end that PyTorch chooses, called by the
operators that the public function dispatches to, because that one does not return the LSE. Full and
causal masks here; sdpa_mask.py gives it any mask."""

import torch
from longca_adapters import torch_tools
from longca_adapters.torch_tools import version  # noqa: F401 (part of the interface)
from torch.nn.attention import SDPBackend

_aten = torch.ops.aten


def supports(problem, mask):
    causal = mask.window[1] == 0
    if problem.tokens_q != problem.tokens_k and causal:
        return "is_causal aligns the diagonal to the first key, this mask to the last"
    return refusal(problem, causal, masked=False)


def refusal(problem, causal, masked):
    """Why PyTorch runs no fused back end, with attn_mask or without; None if it does."""

    def empty(tokens, heads):
        shape = (1, heads, min(tokens, 128), problem.head_dim)
        return torch.empty(shape, dtype=getattr(torch, problem.dtype), device="cuda")

    with torch_tools.on_stream():
        q = empty(problem.tokens_q, problem.heads_q)
        k = empty(problem.tokens_k, problem.heads_k)
        attn_mask = q.new_empty(q.shape[2], k.shape[2]) if masked else None
        choice, _ = _choose(q, k, attn_mask, causal)
    if choice not in BACK_ENDS:
        return f"PyTorch has no fused back end for it but chooses {choice.name.lower()}"
    return None


def plan(problem, mask):
    return Plan(problem, causal=mask.window[1] == 0)


def _choose(q, k, attn_mask, causal):
    """PyTorch's choice, and whether it is one for KV heads that are repeated to the query heads,
    which some back ends need."""
    groups = q.shape[1] // k.shape[1]
    for repeats in (1, groups) if groups > 1 else (1,):
        keys = k.repeat_interleave(repeats, 1) if repeats > 1 else k
        choice = SDPBackend(
            torch._fused_sdp_choice(
                q, keys, keys, attn_mask, 0.0, causal, enable_gqa=repeats < groups
            )
        )
        if choice in BACK_ENDS:
            break
    return choice, repeats > 1


class Flash:
    name = "flash_attention"

    @staticmethod
    def forward(q, k, v, attn_mask, causal, scale):
        return _aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False, scale=scale)

    @staticmethod
    def backward(dout, q, k, v, o, lse, rest, attn_mask, causal, scale):
        return _aten._scaled_dot_product_flash_attention_backward(
            dout, q, k, v, o, lse, *rest[:4], 0.0, causal, *rest[4:6], scale=scale
        )


class Cudnn:
    name = "cudnn_attention"

    @staticmethod
    def forward(q, k, v, attn_mask, causal, scale):
        return _aten._scaled_dot_product_cudnn_attention(
            q, k, v, attn_mask, True, 0.0, causal, False, scale=scale
        )

    @staticmethod
    def backward(dout, q, k, v, o, lse, rest, attn_mask, causal, scale):
        cu_q, cu_k, max_q, max_k, seed, offset = rest[:6]
        return _aten._scaled_dot_product_cudnn_attention_backward(
            dout, q, k, v, o, lse.unsqueeze(-1), seed, offset, attn_mask,
            cu_q, cu_k, max_q, max_k, 0.0, causal, scale=scale,
        )  # fmt: skip


class Efficient:
    name = "efficient_attention"
    lse_rows = 32  # the LSE's rows are padded to a multiple

    @staticmethod
    def forward(q, k, v, attn_mask, causal, scale):
        shown = None if attn_mask is None else attn_mask.expand(-1, q.shape[1], -1, -1)
        o, lse, *rest = _aten._scaled_dot_product_efficient_attention(
            q, k, v, shown, True, 0.0, causal, scale=scale
        )
        return o, lse[..., : q.shape[2]], *rest

    @staticmethod
    def backward(dout, q, k, v, o, lse, rest, attn_mask, causal, scale):
        shown = None if attn_mask is None else attn_mask.expand(-1, q.shape[1], -1, -1)
        wanted = [True, True, True, False]
        return _aten._scaled_dot_product_efficient_attention_backward(
            dout, q, k, v, shown, o, lse, *rest[:2], 0.0, wanted, causal, scale=scale
        )[:3]


BACK_ENDS = {
    SDPBackend.FLASH_ATTENTION: Flash,
    SDPBackend.CUDNN_ATTENTION: Cudnn,
    SDPBackend.EFFICIENT_ATTENTION: Efficient,
}


def _heads_first(*tensors):
    return [t.transpose(0, 1).unsqueeze(0) for t in torch_tools.views(*tensors)]


class Plan:
    """`attn_mask`, [1, 1, tokens_q, tokens_k], and `empty_rows`, the queries without a key, are of
    sdpa_mask.py."""

    def __init__(self, problem, causal):
        self.causal = causal
        self.scale = problem.scale
        self.groups = problem.heads_q // problem.heads_k
        self.back_end = None
        self.repeats = False  # the KV heads, to as many as query heads
        self.attn_mask = self.empty_rows = None
        self.padded_lse = None  # as the backward pass takes it, where that is not as it lies
        self.rest = None  # results of the forward pass other than O and LSE
        self.notes = {}

    @property
    def workspace_bytes(self):
        parts = [part for part in (self.attn_mask, self.padded_lse) if part is not None]
        return sum(part.untyped_storage().nbytes() for part in parts)

    def _choose_back_end(self, q, k):
        choice, self.repeats = _choose(q, k, self.attn_mask, self.causal)
        self.back_end = BACK_ENDS[choice]
        self.notes["back_end"] = self.back_end.name
        if self.back_end is Cudnn:
            self.notes["cudnn"] = str(torch.backends.cudnn.version())
        if self.repeats:
            self.notes["kv_heads"] = "repeated to the query heads in the call's time"

    def _repeated(self, *tensors):
        """Before torch_tools.into, which would serve them from the outputs' memory."""
        if not self.repeats:
            return tensors
        return [tensor.repeat_interleave(self.groups, 1) for tensor in tensors]

    def forward(self, call):
        q, k, v = _heads_first(call.q, call.k, call.v)
        with torch_tools.on_stream(call.stream):
            if self.back_end is None:
                self._choose_back_end(q, k)
            k, v = self._repeated(k, v)
            results = torch_tools.into((call.o, call.lse), lambda: self._forward(q, k, v))
            if self.empty_rows is not None:
                torch_tools.view(call.o).index_fill_(0, self.empty_rows, 0)
                torch_tools.view(call.lse).index_fill_(1, self.empty_rows, float("-inf"))
        self.rest = results[2:]

    def _forward(self, q, k, v):
        o, lse, *rest = self.back_end.forward(q, k, v, self.attn_mask, self.causal, self.scale)
        return o[0].transpose(0, 1), lse, *rest

    def _lse(self, call):
        """[1, heads, tokens], padded as the back end wants it. Rows without keys get +inf, so that
        every exp(score - lse) of theirs is 0."""
        lse = torch_tools.view(call.lse).unsqueeze(0)
        tokens = lse.shape[2]
        rows = getattr(self.back_end, "lse_rows", 1)
        if tokens % rows == 0 and self.empty_rows is None:
            return lse
        if self.padded_lse is None:
            shape = (*lse.shape[:2], -(-tokens // rows) * rows)
            self.padded_lse = lse.new_full(shape, float("inf"))
        self.padded_lse[..., :tokens].copy_(lse)
        if self.empty_rows is not None:
            self.padded_lse.index_fill_(2, self.empty_rows, float("inf"))
        return self.padded_lse

    def _summed(self, gradient):
        """The gradient of each KV head as [tokens, heads, dim], which lies so where it is summed."""
        found = gradient[0].transpose(0, 1)
        return found.unflatten(1, (-1, self.groups)).sum(2) if self.repeats else found

    def _backward(self, dout, q, k, v, o, lse):
        dq, dk, dv = self.back_end.backward(
            dout, q, k, v, o, lse, self.rest, self.attn_mask, self.causal, self.scale
        )
        return dq[0].transpose(0, 1), self._summed(dk), self._summed(dv)

    def backward(self, call):
        dout, q, k, v, o = _heads_first(call.dout, call.q, call.k, call.v, call.o)
        with torch_tools.on_stream(call.stream):
            lse = self._lse(call)
            k, v = self._repeated(k, v)
            torch_tools.into(
                (call.dq, call.dk, call.dv), lambda: self._backward(dout, q, k, v, o, lse)
            )
