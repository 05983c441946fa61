"""cudnn_bsa.py with a stand-in for the package, which attends to what its lists say."""

import sys
import types

import pytest
import torch
from conftest import attend, case, cells, expect_both_passes, gradients


def _seen(q, k, indices, counts, sizes, tile):
    """Bool [heads, tokens_q, tokens_k]."""
    _, tokens_q, heads, _ = q.shape
    tokens_k = k.shape[1]
    rows, columns = -(-tokens_q // tile), -(-tokens_k // tile)
    assert indices.shape[:3] == counts.shape == (1, heads, rows)
    assert (sizes is None) == (tokens_k % tile == 0)
    assert sizes is None or sizes.tolist() == [tile] * (columns - 1) + [tokens_k % tile]
    kept = torch.zeros(heads, rows, columns, dtype=torch.bool)
    for head in range(heads):
        for row in range(rows):
            kept[head, row, indices[0, head, row, : counts[0, head, row]].tolist()] = True
    spread = kept.repeat_interleave(tile, 1).repeat_interleave(tile, 2)
    return spread[:, :tokens_q, :tokens_k]


def _forward(
    q, k, v, q2k_block_index, q2k_block_nums, block_sizes, softmax_scale, sparse_block_size,
    layout, allow_empty_block_nums,
):  # fmt: skip
    assert layout == "bshd"
    assert allow_empty_block_nums == (q2k_block_nums.min() == 0).item()
    tile = sparse_block_size
    assert tile == 128 or q.shape[1] % tile == 0
    seen = _seen(q, k, q2k_block_index, q2k_block_nums, block_sizes, tile)
    o, lse = attend(q[0], k[0], v[0], seen, softmax_scale)
    return {"o_tensor": o.unsqueeze(0).float(), "lse_tensor": lse.unsqueeze(0).float()}


def _backward(
    dout, q, k, v, o, lse, q2k_block_index, q2k_block_nums, block_sizes, softmax_scale,
    sparse_block_size, layout, dq_tensor, dk_tensor, dv_tensor,
):  # fmt: skip
    assert layout == "bshd" and q.shape[2:] == k.shape[2:] and q.shape[3] == 128
    seen = _seen(q, k, q2k_block_index, q2k_block_nums, block_sizes, sparse_block_size)
    found = gradients(dout[0], q[0], k[0], v[0], seen, softmax_scale)
    for to, gradient in zip((dq_tensor, dk_tensor, dv_tensor), found):
        to[0] = gradient


@pytest.fixture(scope="module")
def cudnn_bsa():
    package = types.ModuleType("cudnn.block_sparse_attention")
    package._interface = None
    package.block_sparse_attention_forward = _forward
    package.block_sparse_attention_backward = _backward
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cudnn", types.ModuleType("cudnn"))
        patch.setitem(sys.modules, package.__name__, package)
        from longca_adapters import cudnn_bsa as found
    return found


def blocks(**axes):
    given = {"mask": "block_sparse", "block": 64, "density": 0.4, "head_dim": 128, "tokens": 640}
    return case(**{**given, **axes})


@pytest.mark.parametrize("block, tile", [(64, 64), (128, 128), (192, 64), (256, 128)])
def test_lists_say_the_blocks(cudnn_bsa, block, tile):
    with blocks(block=block, heads_k=4, **{"pass": "backward"}) as (problem, mask):
        assert cudnn_bsa.supports(problem, mask) is None
        seen = torch.stack([cells(mask, head) for head in range(mask.heads)])
        plan = expect_both_passes(cudnn_bsa, problem, mask, seen)
        assert plan.notes["tiles"] == f"{tile} x {tile}"


def test_a_last_block_that_is_shorter(cudnn_bsa):
    with blocks(block=128, tokens=700, heads_k=4) as (problem, mask):
        seen = torch.stack([cells(mask, head) for head in range(mask.heads)])
        expect_both_passes(cudnn_bsa, problem, mask, seen)


def test_heads_share_lists_forward(cudnn_bsa):
    with blocks(block_heads="kv", tokens=320, density=0.1) as (problem, mask):
        assert mask.heads == 2
        seen = torch.stack([cells(mask, head) for head in range(2)]).repeat_interleave(2, 0)
        expect_both_passes(cudnn_bsa, problem, mask, seen)


@pytest.mark.parametrize(
    "axes, sentence",
    [
        (
            {"tokens": 650},
            "takes multiples of 64 queries where its tiles are of 64 tokens, not 650",
        ),
        ({"pass": "backward"}, "needs as many KV heads as query heads, not 4:2"),
        ({"pass": "backward", "heads_k": 4, "head_dim": 64}, "has head dimension 128 only, not 64"),
    ],
)
def test_what_it_does_not_take(cudnn_bsa, axes, sentence):
    with blocks(**axes) as (problem, mask):
        assert sentence in cudnn_bsa.supports(problem, mask)
