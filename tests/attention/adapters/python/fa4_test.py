"""fa4.py with a stand-in for flash-attn-4, which attends to what its lists of tiles and the mask_mod
say."""

import sys
import types

import pytest
import torch
from conftest import STATIC, attend, case, cells, expect_both_passes, gradients

TILE = 128
HANDED_ON = ("softcap", "learnable_sink", "deterministic")


def _tiles(counts, indices, columns):
    """Which tiles are listed: bool [heads, rows, columns]."""
    _, heads, rows, width = indices.shape
    found = torch.zeros(heads, rows, columns, dtype=torch.bool)
    for head in range(heads):
        for row in range(rows):
            listed = indices[0, head, row, : counts[0, head, row]].tolist()
            assert listed == sorted(set(listed))
            found[head, row, listed] = True
    return found


def _cells_of(tiles, shape):
    """Cells [heads, tokens_q, tokens_k] of tiles."""
    spread = tiles.repeat_interleave(TILE, 1).repeat_interleave(TILE, 2)
    return spread[:, : shape[0], : shape[1]]


def _seen(shape, lists, by_key, mask_mod, aux_tensors):
    assert lists.block_size == (TILE, TILE)
    extents = [-(-n // TILE) for n in shape]
    rows, columns = reversed(extents) if by_key else extents
    partial, full = (
        _tiles(counts, indices, columns)
        for counts, indices in (lists[:2], (lists.full_block_cnt, lists.full_block_idx))
    )
    assert partial.shape[1] == rows and not (partial & full).any()
    partial, full = (_cells_of(t.mT if by_key else t, shape) for t in (partial, full))
    if mask_mod is None:
        return partial | full
    q, key = torch.meshgrid(*(torch.arange(n) for n in shape), indexing="ij")
    return full | partial & mask_mod(0, 0, q, key, None, aux_tensors)


class Interface(types.ModuleType):
    """flash_attn.cute.interface. `handed` are options of its last call by name."""

    def _note(self, options):
        self.handed = {name: options.get(name) for name in HANDED_ON}

    def _flash_attn_fwd(
        self, q, k, v, softmax_scale, causal, return_lse, out, lse, block_sparse_tensors,
        learnable_sink=None, softcap=None, mask_mod=None, aux_tensors=None,
    ):  # fmt: skip
        self._note({"softcap": softcap, "learnable_sink": learnable_sink})
        assert return_lse and not causal
        shape = (q.shape[1], k.shape[1])
        seen = _seen(shape, block_sparse_tensors, False, mask_mod, aux_tensors)
        o, rows = attend(q[0], k[0], v[0], seen, softmax_scale, softcap or 0.0, learnable_sink)
        out[0], lse[0] = o, rows

    def _flash_attn_bwd(
        self, q, k, v, out, dout, lse, softmax_scale, causal, block_sparse_tensors, deterministic,
        dq, dk, dv, learnable_sink=None, softcap=0.0, mask_mod=None, aux_tensors=None,
    ):  # fmt: skip
        options = {"softcap": softcap, "learnable_sink": learnable_sink}
        self._note({**options, "deterministic": deterministic})
        shape = (q.shape[1], k.shape[1])
        seen = _seen(shape, block_sparse_tensors, True, mask_mod, aux_tensors)
        terms = (seen, softmax_scale, softcap, learnable_sink)
        found = gradients(dout[0], q[0], k[0], v[0], *terms)
        for to, gradient in zip((dq, dk, dv), found):
            to[0] = gradient
        return (dq, dk, dv, *found[3:])


@pytest.fixture(scope="module")
def fa4():
    import typing

    class BlockSparseTensorsTorch(typing.NamedTuple):  # as in the package
        mask_block_cnt: torch.Tensor
        mask_block_idx: torch.Tensor
        full_block_cnt: torch.Tensor
        full_block_idx: torch.Tensor
        block_size: tuple

    def module(name, **members):
        found = types.ModuleType(name)
        found.__dict__.update(members)
        return found

    interface = Interface("flash_attn.cute.interface")
    utils = module(
        "flash_attn.cute.utils", scalar_to_ssa=lambda x, kind: x, ssa_to_scalar=lambda x: x
    )
    cute = module("cutlass.cute", jit=lambda function: function)
    members = {"interface": interface, "utils": utils}
    stand_ins = {
        "cutlass": module("cutlass", Int32=None, cute=cute),
        "cutlass.cute": cute,
        "flash_attn": module("flash_attn"),
        "flash_attn.cute": module("flash_attn.cute", **members),
        "flash_attn.cute.block_sparsity": module(
            "flash_attn.cute.block_sparsity", BlockSparseTensorsTorch=BlockSparseTensorsTorch
        ),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, stand_in in stand_ins.items():
            patch.setitem(sys.modules, name, stand_in)
        from longca_adapters import fa4 as found
    return found


LISTED = [
    "shared_question", "global_sliding_window", "causal_blockwise", "prefix_lm_causal",
    "prefix_lm_document", "block_causal_document",
]  # fmt: skip


@pytest.mark.parametrize("name", LISTED)
@pytest.mark.parametrize("tokens", [300, 700])
def test_lists_of_tiles_and_the_mask_mod_say_the_mask(fa4, name, tokens):
    with case(
        mask=name, tokens=tokens, head_dim=64, **{"pass": "backward"}, **STATIC[name]
    ) as given:
        problem, mask = given
        assert mask.window is None and mask.documents is None  # else it has arguments
        assert fa4.supports(problem, mask) is None
        expect_both_passes(fa4, problem, mask, cells(mask).unsqueeze(0))


@pytest.mark.parametrize("block", [128, 256])
def test_lists_of_tiles_say_the_blocks(fa4, block):
    axes = {"mask": "block_sparse", "block": block, "density": 0.4, "block_heads": "kv"}
    with case(tokens=800, head_dim=64, **{"pass": "backward"}, **axes) as (problem, mask):
        seen = torch.stack([cells(mask, head) for head in range(mask.heads)])
        expect_both_passes(fa4, problem, mask, seen.repeat_interleave(4 // mask.heads, 0))


def test_sinks_and_softcap_reach_both_passes(fa4):
    axes = {"mask": "global_sliding_window", "window": 37, "sink": 1, "softcap": 2.5}
    with case(head_dim=64, **{"pass": "backward"}, **axes) as (problem, mask):
        sink = torch.tensor([0.5, -1.0, 2.0, 0.0])
        expect_both_passes(fa4, problem, mask, cells(mask).unsqueeze(0), sink)
        handed = fa4.interface.handed
        assert handed["softcap"] == 2.5 and torch.equal(handed["learnable_sink"], sink)


def test_a_version_without_an_argument_is_named(fa4, monkeypatch):
    def older(q, k, v, softcap=None):
        pass

    older.__name__ = "_flash_attn_bwd"
    monkeypatch.setattr(fa4.interface, "_flash_attn_bwd", older)
    monkeypatch.setattr(fa4, "version", lambda: "flash-attn-4 4.0.0b1")
    with case(head_dim=64, sink=1, **{"pass": "backward"}) as (problem, mask):
        sentence = "_flash_attn_bwd of flash-attn-4 4.0.0b1 has no argument learnable_sink"
        assert fa4.supports(problem, mask) == sentence
    with case(head_dim=64, sink=1) as (problem, mask):
        assert fa4.supports(problem, mask) is None


def test_planning_waits_for_no_number_of_the_gpu(fa4, monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("planning waits for the GPU")

    with case(mask="global_sliding_window", window=37, **{"pass": "backward"}) as (problem, mask):
        for name in ("item", "tolist", "__int__", "nonzero"):
            monkeypatch.setattr(torch.Tensor, name, refuse)
        fa4.plan(problem, mask)


def test_a_fixed_order_of_sums_is_refused_over_lists_only(fa4):
    axes = {"pass": "backward", "deterministic": 1, "head_dim": 64}
    with case(mask="global_sliding_window", window=37, **axes) as (problem, mask):
        assert "adds to dQ in any order on Hopper" in fa4.supports(problem, mask)
    with case(mask="causal", **axes) as (problem, mask):
        assert fa4.supports(problem, mask) is None


def test_a_v_of_its_own_dimension_needs_as_many_kv_heads_backward(fa4):
    dims = {"mask": "causal", "head_dim": 192, "head_dim_v": 128}
    with case(heads_q=4, heads_k=2, **{"pass": "backward"}, **dims) as (problem, mask):
        assert "needs as many KV heads as query heads, not 4:2" in fa4.supports(problem, mask)
    with case(heads_q=4, heads_k=4, **{"pass": "backward"}, **dims) as (problem, mask):
        assert fa4.supports(problem, mask) is None
    with case(heads_q=4, heads_k=2, **dims) as (problem, mask):
        assert fa4.supports(problem, mask) is None


def test_what_a_process_needs_once_is_no_part_of_planning(fa4, monkeypatch):
    from longca_adapters import block_lists, torch_tools

    prepared = []
    monkeypatch.setattr(
        torch_tools.FirstCalls, "prepare", lambda self, function: prepared.append(function)
    )
    with case(head_dim=64, mask="shared_question", **{"pass": "backward"}) as (problem, mask):
        fa4.plan(problem, mask)
    assert block_lists.load in prepared
    assert len(prepared) == 2  # and the mask_mod, whose source the DSL reads
