"""longca.Mask."""

import multiprocessing
import pickle

import pytest
import torch
from conftest import DOCUMENTS, TOKENS, make_inputs, make_mask

import longca


def dense_documents(bounds, causal, left=None, right=None):
    tokens = bounds[-1]
    q, k = torch.arange(tokens)[:, None], torch.arange(tokens)[None]
    allowed = torch.zeros(tokens, tokens, dtype=torch.bool)
    for begin, end in zip(bounds, bounds[1:]):
        allowed |= (q >= begin) & (q < end) & (k >= begin) & (k < end)
    if causal:
        allowed &= k <= q
    if left is not None:
        allowed &= q - k <= left
    if right is not None:
        allowed &= k - q <= right
    return allowed


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window, left, right", [(None, None, None), (3, 3, 3), ((2, -1), 2, None), ([-1, 4], None, 4)])
@pytest.mark.parametrize("as_tensor", [True, False])
def test_from_cu_seqlens(causal, window, left, right, as_tensor):
    bounds = [0, 7, 7, 20, 21]
    given = torch.tensor(bounds, dtype=torch.int32) if as_tensor else bounds
    mask = longca.Mask.from_cu_seqlens(given, causal=causal, window=window)
    assert torch.equal(mask.dense(), dense_documents(bounds, causal, left, right))
    assert mask.lengths == [7, 0, 13, 1]
    assert mask.position_ids.tolist() == [*range(7), *range(13), 0]
    assert mask.area == mask.dense().sum()


def test_documents_of_a_named_mask():
    bounds = torch.tensor([0, *DOCUMENTS]).cumsum(0).tolist()
    assert torch.equal(make_mask("causal_document").dense(), dense_documents(bounds, True))
    assert longca.Mask("causal_document", 8192).lengths[:4] == [545, 719, 166, 581]  # prolong64k, seed 42


def test_numbers_may_come_by_an_iterator():
    documents = longca.Mask("document", 8, lengths=[3, 5])
    assert longca.Mask("document", 8, lengths=(x for x in (3, 5))) == documents
    assert longca.Mask("document", 8, lengths={"a": 3, "b": 5}.values()) == documents
    assert longca.Mask.from_cu_seqlens(iter([0, 3, 8]), causal=False) == documents
    bounds = {"q_bounds": [0, 3, 8], "k_bounds": [0, 4, 8]}
    blocks = longca.Mask.from_blocks([[[0], [1]]], **bounds)
    assert longca.Mask.from_blocks([[[0], [1]]], **{name: iter(values) for name, values in bounds.items()}) == blocks


def test_from_slices():
    mask = longca.Mask.from_slices([(0, 4, 0, 4, "full"), (4, 10, 2, 10, "causal")])
    assert (mask.tokens_q, mask.tokens_k) == (10, 10)
    assert mask.slices == [(0, 4, 0, 4, "full"), (4, 10, 2, 10, "causal")]
    again = longca.Mask.from_slices(mask.slices)
    assert again == mask and hash(again) == hash(mask)


def test_from_slices_ends_where_the_last_slice_does():
    wide = [(0, 4, 0, 10, "full")]
    for options, shape in (({}, (10, 10)), ({"tokens_k": 12}, (4, 12)), ({"tokens": 5, "tokens_k": 12}, (5, 12))):
        mask = longca.Mask.from_slices(wide, **options)
        assert (mask.tokens_q, mask.tokens_k) == shape


@pytest.mark.parametrize("causal", [True, False])
def test_from_blocks(causal):
    kept = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(1)) < 0.5
    bounds = {"q_bounds": [0, 3, 10, 11, 16], "k_bounds": [0, 1, 4, 9, 12, 16]}
    mask = longca.Mask.from_blocks(kept, causal=causal, **bounds)
    for head in range(3):
        cells = kept[head].repeat_interleave(torch.tensor(bounds["q_bounds"]).diff(), 0)
        cells = cells.repeat_interleave(torch.tensor(bounds["k_bounds"]).diff(), 1)
        assert torch.equal(mask.dense(head), cells.tril() if causal else cells)
    lists = [[row.nonzero().flatten().tolist() for row in head] for head in kept]
    assert longca.Mask.from_blocks(lists, causal=causal, tokens=16, **bounds) == mask
    assert longca.Mask.from_blocks([[iter(row) for row in head] for head in lists], causal=causal, **bounds) == mask


def test_from_blocks_of_one_size():
    kept = torch.eye(3, dtype=torch.bool)[None]
    mask = longca.Mask.from_blocks(kept, block=4, tokens=10)
    assert torch.equal(mask.dense(), dense_documents([0, 4, 8, 10], causal=False))


def test_pickles_are_equal(mask):
    copy = pickle.loads(pickle.dumps(mask))
    assert copy == mask and copy.name == mask.name
    assert all(torch.equal(copy.dense(h), mask.dense(h)) for h in range(mask.heads))


def _made_elsewhere(seed):
    mask = longca.Mask("block_sparse", 512, seed=seed)
    longca.attention(*make_inputs(512)[:3], mask)
    return mask


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_masks_of_a_data_loaders_workers(start):
    _made_elsewhere(0)  # the library's threads run before the fork
    with multiprocessing.get_context(start).Pool(2) as pool:
        masks = pool.map_async(_made_elsewhere, range(4)).get(timeout=120)
    assert masks == [longca.Mask("block_sparse", 512, seed=seed) for seed in range(4)]


def test_what_is_wrong_is_named():
    def refused(sentence, make):
        with pytest.raises(ValueError) as raised:
            make()
        assert sentence in str(raised.value)

    refused("unknown mask 'casual'", lambda: longca.Mask("casual", 8))
    refused("tokens = 0", lambda: longca.Mask("causal", 0))
    refused("the mask causal has no window", lambda: longca.Mask("causal", 8, window=3))
    refused("window = -2", lambda: longca.Mask("sliding_window", 8, window=-2))
    refused("window = -1: at least 0", lambda: longca.Mask.from_cu_seqlens([0, 8], window=-1))
    refused("window = -2: at least -1", lambda: longca.Mask.from_cu_seqlens([0, 8], window=(0, -2)))
    for window in ((1, 2, 3), [], 1.5, "4"):
        refused(f"window = {window!r}: one whole number, or (left, right)",
                lambda window=window: longca.Mask.from_cu_seqlens([0, 8], window=window))
    refused("density = 0", lambda: longca.Mask("block_sparse", 8, density=0))
    refused("2 documents have 9 tokens together, the sequence has 8", lambda: longca.Mask("document", 8, lengths=[4, 5]))
    refused("a document's length = 0", lambda: longca.Mask("document", 8, lengths=[8, 0]))
    refused("falls from 5 to 3 at entry 2", lambda: longca.Mask.from_cu_seqlens([0, 5, 3]))
    refused("begins with 1", lambda: longca.Mask.from_cu_seqlens([1, 5]))
    refused("tokens = 0", lambda: longca.Mask.from_cu_seqlens([0, 0]))
    refused("has 1 entries: at least 2", lambda: longca.Mask.from_cu_seqlens([0]))
    refused("whole numbers", lambda: longca.Mask.from_cu_seqlens([0.0, 5.5]))
    refused("type 'diagonal'", lambda: longca.Mask.from_slices([(0, 4, 0, 4, "diagonal")]))
    refused("reaches outside the mask of 8 queries", lambda: longca.Mask.from_slices([(0, 9, 0, 4, "full")], tokens=8))
    refused("query blocks", lambda: longca.Mask.from_blocks([[[0]], [[0], [0]]]))
    refused("kept is", lambda: longca.Mask.from_blocks(torch.ones(1, 2, 2)))


LIMIT = 1 << 30


@pytest.mark.parametrize("error, sentence, make", [
    (ValueError, f"tokens = {2**64 + 8}: at least 1, at most {LIMIT}", lambda m: m("causal", 2**64 + 8)),
    (TypeError, "tokens = 8.0: a whole number", lambda m: m("causal", 8.0)),
    (ValueError, f"window = {2**63}: at least 0, at most {LIMIT}", lambda m: m("sliding_window", 8, window=2**63)),
    (ValueError, f"window = {2**64 + 5}", lambda m: m("sliding_window", 8, window=2**64 + 5)),
    (TypeError, "window = '5'", lambda m: m("sliding_window", 8, window="5")),
    (ValueError, f"window = {2**70}: at least 0, at most {2**62}", lambda m: m.from_cu_seqlens([0, 8], window=2**70)),
    (ValueError, f"block = {2**70}", lambda m: m("block_sparse", 8, block=2**70)),
    (ValueError, f"block_tokens = {2**70}", lambda m: m("block_causal_document", 8, block_tokens=2**70)),
    (ValueError, f"heads = {2**32 + 4}", lambda m: m("block_sparse", 8, heads=(2**32 + 4, 2))),
    (ValueError, "heads = (4, 2, 1): (query heads, KV heads)", lambda m: m("block_sparse", 8, heads=(4, 2, 1))),
    (ValueError, f"seed = {2**64 + 42}: at least 0, at most {2**64 - 1}", lambda m: m("document", 8, seed=2**64 + 42)),
    (ValueError, "seed = -1", lambda m: m("document", 8, seed=-1)),
    (ValueError, "name = 'causal\\x00x'", lambda m: m("causal\0x", 8)),
    (TypeError, "name = 7", lambda m: m(7, 8)),
    (ValueError, "lengths = 'pile\\x00x'", lambda m: m("document", 8, lengths="pile\0x")),
    (ValueError, f"lengths[1] = {2**64}", lambda m: m("document", 8, lengths=[4, 2**64])),
    (ValueError, "lengths has a number above", lambda m: m("document", 8, lengths=torch.tensor([2**63], dtype=torch.uint64))),
    (TypeError, "cu_seqlens is a NoneType", lambda m: m.from_cu_seqlens(None)),
    (ValueError, f"4, 'full'): q_end = {2**64 + 4}", lambda m: m.from_slices([(0, 2**64 + 4, 0, 4, "full")])),
    (ValueError, f"tokens_k = {2**64 + 4}", lambda m: m.from_slices([(0, 4, 0, 4, "full")], 4, 2**64 + 4)),
    (ValueError, "block = 0: at least 1", lambda m: m.from_blocks([[[0]]], block=0)),
    (ValueError, f"tokens = {2**64 + 4}", lambda m: m.from_blocks([[[0]]], tokens=2**64 + 4)),
    (ValueError, f"a key block in kept = {2**32}", lambda m: m.from_blocks([[[2**32]]])),
    (ValueError, "kept has dtype", lambda m: m.from_blocks([[[0.5]]])),
    (ValueError, "density = 'x': above 0", lambda m: m("block_sparse", 8, block=2, density="x")),
    (ValueError, "cu_seqlens is empty", lambda m: m.from_cu_seqlens([])),
    (ValueError, "cu_seqlens is empty", lambda m: m.from_cu_seqlens(iter([]))),
    (TypeError, "lengths is a set, which has no order: a list", lambda m: m("document", 8, lengths={3, 5})),
    (TypeError, "cu_seqlens is a frozenset, which has no order", lambda m: m.from_cu_seqlens(frozenset([0, 8]))),
    (TypeError, "q_bounds is a set", lambda m: m.from_blocks([[[0]]], q_bounds={0, 8}, k_bounds=[0, 8])),
    (ValueError, "kept has no query blocks: at least 1 in each head", lambda m: m.from_blocks([])),
    (ValueError, "kept has no query blocks", lambda m: m.from_blocks([[]], q_bounds=[0, 4], k_bounds=[0, 4])),
    (ValueError, "kept has no query blocks", lambda m: m.from_blocks(torch.ones(1, 0, 2).bool())),
    (ValueError, "kept has no key blocks: at least 1", lambda m: m.from_blocks(torch.ones(1, 2, 0).bool())),
    (ValueError, "kept has no key blocks", lambda m: m.from_blocks([[[]]])),
    (TypeError, "kept is a ndarray: a torch.Tensor of bool", lambda m: m.from_blocks(torch.ones(1, 2, 2).bool().numpy())),
    (TypeError, "kept is [[0, 1]]", lambda m: m.from_blocks([[0, 1]])),
    (TypeError, "slices is [None]: a list of (q_begin", lambda m: m.from_slices([None])),
    (ValueError, "q_bounds has 0 numbers", lambda m: m.from_blocks([[[0]]], q_bounds=[], k_bounds=[0, 4])),
    (ValueError, "tokens = 9, but q_bounds ends with 8 and k_bounds with 4",
     lambda m: m.from_blocks([[[0]]], 8, 9, [0, 8], [0, 4])),
    (ValueError, "cu_seqlens is on meta", lambda m: m.from_cu_seqlens(torch.tensor([0, 8], device="meta"))),
    (ValueError, "cu_seqlens is torch.sparse_coo: a dense", lambda m: m.from_cu_seqlens(torch.tensor([0, 8]).to_sparse())),
    (ValueError, "kept is on meta", lambda m: m.from_blocks(torch.ones(1, 2, 2, device="meta").bool())),
    (ValueError, "kept is torch.sparse_coo: a dense", lambda m: m.from_blocks(torch.ones(1, 2, 2).bool().to_sparse())),
    (ValueError, f"head = {2**32}: at least 0, at most 0", lambda m: m("full", 8).dense(2**32)),
    (ValueError, f"{2**40} cells: the limit is {2**28}", lambda m: m("causal", 1 << 20).dense()),
])
def test_numbers_and_names_that_c_would_cut_are_named(error, sentence, make):
    with pytest.raises(error) as raised:
        make(longca.Mask)
    assert sentence in str(raised.value)


def test_heads_do_not_matter_where_all_have_the_same_mask():
    assert longca.Mask("causal", 8, heads=(4, 2), block_heads="query") == longca.Mask("causal", 8)


def test_blocks_are_in_the_dense_mask_and_not_in_the_slices():
    mask = longca.Mask.from_blocks([[[0], [1]], [[1], [0, 1]]], block=4)
    assert mask.slices == [(0, 8, 0, 8, "full")]
    assert torch.equal(mask.dense(), mask.dense(head=0)) and not torch.equal(mask.dense(), mask.dense(head=1))
    assert mask.area == 40  # the mean of 32 and 48


def test_what_is_large_but_right_is_not_cut():
    for window in (2**40, 2**62, (2**62, 2**62)):
        assert longca.Mask.from_cu_seqlens([0, 8], causal=False, window=window).area == 64
    assert longca.Mask("causal_document", 8192, seed=2**64 - 1).tokens_q == 8192


def test_blocks_of_keys_have_as_many_bounds_as_columns():
    kept = torch.ones(1, 2, 2, dtype=torch.bool)
    with pytest.raises(ValueError, match="kept has 2 key blocks, their bounds 3"):
        longca.Mask.from_blocks(kept, q_bounds=[0, 4, 8], k_bounds=[0, 4, 8, 12])
    # Lists name the blocks that are seen; more of them may follow.
    mask = longca.Mask.from_blocks([[[0, 1]]], 6, 12, q_bounds=[0, 4])
    assert (mask.tokens_q, mask.tokens_k) == (4, 12)
    mask = longca.Mask.from_blocks([[[0, 1], [0, 1]]], q_bounds=[0, 4, 8], k_bounds=[0, 4, 8, 12])
    assert (mask.tokens_k, mask.area) == (12, 64)


MAKERS = [
    lambda: longca.Mask.from_cu_seqlens([0, 3, 8]),
    lambda: longca.Mask("causal_document", 8, lengths=[3, 5]),
    lambda: longca.Mask.from_slices([(0, 8, 0, 8, "causal")]),
    lambda: longca.Mask.from_blocks([[[0], [0, 1]]], block=4),
]


@pytest.mark.parametrize("make", MAKERS)
def test_masks_are_on_the_cpu_whatever_the_default_device(make):
    mask = make()
    with torch.device("meta"):
        again = make()
        assert again == mask
        assert torch.equal(again.dense(), mask.dense())
        assert again.position_ids.tolist() == mask.position_ids.tolist()


@pytest.mark.parametrize("make", MAKERS)
def test_a_mask_made_in_inference_mode_can_be_trained_with(make):
    with torch.inference_mode():
        mask = make()
    inputs = make_inputs(8)
    gradients = torch.autograd.grad(longca.attention(*inputs[:3], mask), inputs[:3], inputs.dout)
    wanted = torch.autograd.grad(longca.attention(*inputs[:3], make()), inputs[:3], inputs.dout)
    assert all(torch.equal(a, b) for a, b in zip(gradients, wanted))


def test_a_mask_lives_as_long_as_its_backward_pass():
    inputs = make_inputs()
    o = longca.attention(*inputs[:3], make_mask("causal"))
    wanted = torch.autograd.grad(longca.attention(*inputs[:3], make_mask("causal")), inputs[:3], inputs.dout)
    assert all(torch.equal(a, b) for a, b in zip(torch.autograd.grad(o, inputs[:3], inputs.dout), wanted))
    from longca._mask import Core

    handle = make_mask("full")._handle
    assert Core.find(handle.clone()).bytes == make_mask("full")._core.bytes
    with pytest.raises(RuntimeError, match="is not there"):
        Core.find(torch.tensor([1 << 40]))
    assert TOKENS == make_mask("full").tokens_q


def test_parts_are_imported_when_they_are_named():
    assert longca.parallel.Partition.__module__ == "longca.parallel"
    with pytest.raises(AttributeError, match="no attribute 'paralel'"):
        longca.paralel  # noqa: B018


def test_a_mask_cannot_be_changed():
    mask = longca.Mask("causal", 64)
    for name in ("name", "tokens_q", "tokens_k", "heads", "area", "slices"):
        with pytest.raises(AttributeError):
            setattr(mask, name, 3)
    assert (mask.name, mask.tokens_q, mask.tokens_k) == ("causal", 64, 64)


@pytest.mark.parametrize("causal", ["no", 2, 2**32, None, torch.tensor([0, 1])])
def test_what_is_neither_true_nor_false_is_refused(causal):
    with pytest.raises(ValueError, match="causal = .*: True or False"):
        longca.Mask.from_cu_seqlens([0, 8], causal=causal)
    with pytest.raises(ValueError, match="causal = .*: True or False"):
        longca.Mask.from_blocks(torch.ones(1, 2, 2, dtype=torch.bool), causal=causal)
    with pytest.raises(ValueError, match="block_causal = .*: True or False"):
        longca.Mask("block_sparse", 256, block=128, density=0.5, block_causal=causal)
    assert longca.Mask.from_cu_seqlens([0, 8], causal=0).name == "document"
