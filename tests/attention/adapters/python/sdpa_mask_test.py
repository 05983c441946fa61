"""sdpa.py and sdpa_mask.py with stand-ins for PyTorch's operators, which exist for GPUs only: of mem-efficient
attention and of cuDNN, with their shapes."""

import pytest
import torch
from conftest import STATIC, attend, case, cells, expect_both_passes, torch_tools
from longca_adapters import sdpa, sdpa_mask
from torch.nn.attention import SDPBackend

EFFICIENT, CUDNN, FLASH, MATH = (
    SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION,
    SDPBackend.MATH,
)  # fmt: skip


def _seen(attn_mask, causal, shape):
    """Bool [tokens_q, tokens_k] of the arguments; rows begin at multiples of 16 numbers."""
    if attn_mask is None:
        every = torch.ones(shape, dtype=torch.bool)
        return every.tril() if causal else every
    assert not causal and attn_mask.stride(2) % 16 == 0
    values = attn_mask[0, 0]
    assert ((values == 0) | (values == sdpa_mask.HIDDEN)).all()
    return values == 0


class Operators:
    """torch.ops.aten. A row without a key gets NaN, as of PyTorch's kernels."""

    def __init__(self, lse_rows):
        self.lse_rows = lse_rows

    def _forward(self, q, k, v, attn_mask, causal, scale):
        seen = _seen(attn_mask, causal, (q.shape[2], k.shape[2]))
        o, lse = attend(*(x[0].transpose(0, 1) for x in (q, k, v)), seen, scale)
        o[~seen.any(1)] = torch.nan
        padded = torch.full((1, q.shape[1], -(-q.shape[2] // self.lse_rows) * self.lse_rows), 7.0)
        padded[..., : q.shape[2]] = lse
        return o.transpose(0, 1).unsqueeze(0).to(q.dtype), padded

    def _backward(self, dout, q, k, v, o, lse, attn_mask, causal, scale):
        """By the o and the lse that are given."""
        assert lse.shape[2] % self.lse_rows == 0
        q, k, v, o, dout = (x[0].double() for x in (q, k, v, o, dout))
        groups = len(q) // len(k)
        k, v = (x.repeat_interleave(groups, 0) for x in (k, v))
        scores = q @ k.mT * scale
        if attn_mask is not None:
            scores = scores + attn_mask[0].double()
        seen = _seen(attn_mask, causal, scores.shape[1:])
        p = (scores - lse[0, :, : q.shape[1]].double().unsqueeze(-1)).exp()
        p = p if attn_mask is not None else p * seen
        ds = p * (dout @ v.mT - (o * dout).sum(-1, keepdim=True)) * scale
        key_gradients = (x.unflatten(0, (-1, groups)).sum(1) for x in (ds.mT @ q, p.mT @ dout))
        found = (ds @ k, *key_gradients)
        return [gradient.unsqueeze(0).float() for gradient in found]

    def _scaled_dot_product_efficient_attention(
        self, q, k, v, bias, compute_log_sumexp, dropout, causal, scale
    ):
        assert compute_log_sumexp and q.shape[1] == k.shape[1]
        assert bias is None or bias.shape[:2] == q.shape[:2]
        o, lse = self._forward(q, k, v, bias, causal, scale)
        return o, lse, "seed", "offset"

    def _scaled_dot_product_efficient_attention_backward(
        self, dout, q, k, v, bias, o, lse, seed, offset, dropout, wanted, causal, scale
    ):
        assert (seed, offset, wanted) == ("seed", "offset", [True, True, True, False])
        return (*self._backward(dout, q, k, v, o, lse, bias, causal, scale), None)

    def _scaled_dot_product_cudnn_attention(
        self, q, k, v, bias, compute_log_sumexp, dropout, causal, debug, scale
    ):
        o, lse = self._forward(q, k, v, bias, causal, scale)
        return o, lse.unsqueeze(-1), "cu_q", "cu_k", "max_q", "max_k", "seed", "offset", None

    def _scaled_dot_product_cudnn_attention_backward(
        self, dout, q, k, v, o, lse, seed, offset, bias, *rest, scale
    ):
        assert (seed, offset) == ("seed", "offset") and rest[:4] == (
            "cu_q",
            "cu_k",
            "max_q",
            "max_k",
        )
        return self._backward(dout, q, k, v, o, lse.squeeze(-1), bias, rest[-1], scale)


@pytest.fixture
def operators(monkeypatch):
    """Sets PyTorch's choice: of (query heads, KV heads, whether attn_mask is given)."""

    def use(choose, lse_rows):
        monkeypatch.setattr(sdpa, "_aten", Operators(lse_rows))
        monkeypatch.setattr(
            torch,
            "_fused_sdp_choice",
            lambda q, k, v, attn_mask, dropout, causal, enable_gqa: (
                choose(q.shape[1], k.shape[1], attn_mask is not None).value
            ),
        )
        monkeypatch.setattr(torch_tools.LIBRARY, "available_bytes", lambda device: 1 << 30)

    return use


def efficient_without_gqa(heads_q, heads_k, masked):
    return EFFICIENT if heads_q == heads_k else MATH


@pytest.mark.parametrize("name", STATIC)
@pytest.mark.parametrize("tokens", [65, 300])
@pytest.mark.parametrize("heads_k", [2, 4])
def test_mem_efficient_attention_takes_every_static_mask(operators, name, tokens, heads_k):
    operators(efficient_without_gqa, lse_rows=32)
    axes = {"tokens": tokens, "heads_k": heads_k, "pass": "backward", **STATIC[name]}
    with case(mask=name, **axes) as (problem, mask):
        assert sdpa_mask.supports(problem, mask) is None
        plan = expect_both_passes(sdpa_mask, problem, mask, cells(mask).unsqueeze(0))
        assert plan.notes["back_end"] == "efficient_attention"
        assert ("kv_heads" in plan.notes) == (heads_k == 2)
        assert plan.notes["attn_mask"] == "float32, made in the plan"
        assert plan.workspace_bytes >= 4 * tokens * tokens


@pytest.mark.parametrize("name", ["full", "causal"])
def test_full_and_causal_masks_have_arguments(operators, name):
    operators(lambda heads_q, heads_k, masked: MATH if masked else CUDNN, lse_rows=1)
    with case(mask=name, **{"pass": "backward"}) as (problem, mask):
        assert sdpa.supports(problem, mask) is None
        plan = expect_both_passes(sdpa, problem, mask, cells(mask).unsqueeze(0))
        assert plan.notes["back_end"] == "cudnn_attention" and plan.workspace_bytes == 0


@pytest.mark.parametrize("name", ["global_sliding_window", "prefix_lm_causal"])
def test_cudnn_takes_the_mask_and_gqa(operators, name):
    operators(lambda *_: CUDNN, lse_rows=1)
    with case(mask=name, **{"pass": "backward"}, **STATIC[name]) as (problem, mask):
        plan = expect_both_passes(sdpa_mask, problem, mask, cells(mask).unsqueeze(0))
        assert plan.notes["back_end"] == "cudnn_attention" and "kv_heads" not in plan.notes


class WithEmptyRows:
    """A mask whose queries 5 to 8 attend to nothing."""

    def __init__(self, mask):
        self.mask = mask
        self.window = None

    def __getattr__(self, name):
        return getattr(self.mask, name)

    def row_intervals(self, head=0, max_intervals=2):
        begins, ends = self.mask.row_intervals(head, max_intervals)
        for row in range(5, 9):
            for i in range(max_intervals):
                begins[i * self.tokens_q + row] = ends[i * self.tokens_q + row] = 0
        return begins, ends


@pytest.mark.parametrize("choice", [EFFICIENT, CUDNN])
def test_queries_without_keys_get_zero(operators, choice):
    operators(lambda *_: choice, lse_rows=32 if choice == EFFICIENT else 1)
    with case(tokens=70, heads_k=4, **{"pass": "backward"}) as (problem, mask):
        seen = cells(mask).clone()
        seen[5:9] = False
        expect_both_passes(sdpa_mask, problem, WithEmptyRows(mask), seen.unsqueeze(0))


def test_more_than_two_intervals_are_taken(operators):
    operators(lambda *_: CUDNN, lse_rows=1)
    with case(mask="sliding_window", window=37) as (problem, mask):

        class Striped(WithEmptyRows):
            def max_row_intervals(self, head=0):
                return 3

            def row_intervals(self, head=0, max_intervals=2):
                rows = torch.arange(self.tokens_q, dtype=torch.int32)
                begins = torch.stack([0 * rows, 0 * rows + 50, rows // 2 + 100])
                return [part.flatten().numpy() for part in (begins, begins + 7)]

        key = torch.arange(300)
        third = torch.arange(300)[:, None] // 2 + 100
        seen = (key < 7) | (key >= 50) & (key < 57) | (key >= third) & (key < third + 7)
        expect_both_passes(sdpa_mask, problem, Striped(mask), seen.unsqueeze(0))


def test_a_mask_that_has_no_room_is_refused_by_its_size(operators, monkeypatch):
    operators(lambda *_: CUDNN, lse_rows=1)
    monkeypatch.setattr(torch_tools.LIBRARY, "available_bytes", lambda device: 100_000_000)
    axes = {"mask": "global_sliding_window", "window": 37, "tokens": 10000}
    with case(**axes) as (problem, mask), pytest.raises(MemoryError) as refusal:
        sdpa_mask.plan(problem, mask)
    assert str(refusal.value) == (
        "attn_mask of 10000 x 10000 numbers takes 0.4 GB, and 0.1 GB of device memory are free"
    )


def test_no_fused_back_end_is_a_sentence(operators):
    operators(lambda *_: MATH, lse_rows=1)
    with case() as (problem, mask):
        assert sdpa_mask.supports(problem, mask) == (
            "PyTorch has no fused back end for it but chooses math"
        )
