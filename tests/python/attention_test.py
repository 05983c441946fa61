"""longca.attention against float64 with the explicit mask."""

import ctypes
import multiprocessing
import threading
import time

import pytest
import torch
from conftest import HEADS, TOKENS, Inputs, expected, make_inputs, make_mask

import longca
from longca._library import Problem, lib, made
from longca._mask import Core
from longca._plans import DTYPES

# Of the largest absolute value of a tensor.
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 1.5e-2, torch.float16: 2e-3}


def run(inputs, mask, **options):
    o, lse = longca.attention(*inputs[:3], mask, return_lse=True, **options)
    sinks = [options["sink"]] if "sink" in options else []
    return (o.detach(), lse, *torch.autograd.grad(o, (*inputs[:3], *sinks), inputs.dout))


def assert_close(results, wanted, dtype=torch.float32):
    for name, result, want in zip(("o", "lse", "dq", "dk", "dv", "dsink"), results, wanted):
        finite = want.isfinite()
        assert torch.equal(result.isfinite(), finite), name
        limit = (1e-5 if name == "lse" else TOLERANCE[dtype]) * max(1.0, want[finite].abs().max().item())
        error = (result.double() - want)[finite].abs().max().item()
        assert error <= limit, f"{name}: {error} > {limit}"


def test_every_mask(mask):
    inputs = make_inputs()
    assert_close(run(inputs, mask), expected(inputs, mask))


def test_every_mask_in_the_batched_layout(mask):
    inputs = make_inputs(batch=2)
    assert_close(run(inputs, mask), expected(inputs, mask))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_types_of_two_bytes(mask, dtype):
    inputs = make_inputs(dtype=dtype)
    assert_close(run(inputs, mask), expected(inputs, mask), dtype)


@pytest.mark.parametrize("tokens", [1, 2, 31, 65, 129])
@pytest.mark.parametrize("heads", [(1, 1), (6, 1), (6, 3), (3, 3)])
@pytest.mark.parametrize("dim", [1, 8, 67])
def test_shapes(tokens, heads, dim):
    mask = longca.Mask("causal", tokens)
    inputs = make_inputs(tokens, heads, dim)
    assert_close(run(inputs, mask), expected(inputs, mask))


# Head dimensions of q and k, and of v.
PAIRS = [(24, 16), (192, 128)]


@pytest.mark.parametrize("dim, dim_v", PAIRS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("batch", [None, 2])
def test_a_v_of_a_smaller_dimension(mask, dim, dim_v, dtype, batch):
    inputs = make_inputs(dim=dim, dim_v=dim_v, dtype=dtype, batch=batch)
    o, _, *gradients = results = run(inputs, mask)
    assert o.shape == inputs.dout.shape and [x.shape for x in gradients] == [x.shape for x in inputs[:3]]
    assert_close(results, expected(inputs, mask), dtype)


@pytest.mark.parametrize("tokens", [1, 65])
@pytest.mark.parametrize("heads", [(1, 1), (6, 1), (3, 3)])
@pytest.mark.parametrize("dim, dim_v", [(2, 1), (67, 66), (67, 3)])
def test_shapes_with_a_v_of_a_smaller_dimension(tokens, heads, dim, dim_v):
    mask = longca.Mask("causal", tokens)
    inputs = make_inputs(tokens, heads, dim, dim_v=dim_v)
    assert_close(run(inputs, mask), expected(inputs, mask))


@pytest.mark.parametrize("batch", [None, 2])
def test_everything_else_with_a_v_of_a_smaller_dimension(mask, batch):
    inputs, sink = make_inputs(dim=24, dim_v=16, batch=batch), make_sink()
    options = {"scale": 0.3, "sink": sink, "softcap": 2.0}
    assert_close(run(inputs, mask, deterministic=True, **options), expected(inputs, mask, **options))


def test_a_v_of_a_smaller_dimension_is_read_where_it_lies():
    """As in MLA: keys and values are slices of one projection, and all heads share a part of each key."""
    mask, heads = make_mask("causal_document"), HEADS[0]
    both = torch.randn(TOKENS, heads, 16 + 12, requires_grad=True)
    shared = torch.randn(TOKENS, 1, 8, requires_grad=True)
    q = torch.randn(TOKENS, heads, 24, requires_grad=True)
    keys, v = both.split([16, 12], dim=-1)
    k = torch.cat([keys, shared.expand(-1, heads, -1)], dim=-1)
    assert not v.is_contiguous()
    o, lse = longca.attention(q, k, v, mask, return_lse=True)
    dq, dboth, dshared = torch.autograd.grad(o.sum(), (q, both, shared))  # a gradient of stride 0
    wanted = expected(Inputs(q, k, v, torch.ones_like(o)), mask)
    assert_close((o.detach(), lse, dq), wanted)
    _, _, _, dk, dv = wanted
    for got, want in ((dboth, torch.cat([dk[..., :16], dv], dim=-1)), (dshared, dk[..., 16:].sum(1, keepdim=True))):
        torch.testing.assert_close(got.double(), want, rtol=1e-5, atol=1e-5)


def test_plans_differ_by_the_dimension_of_v():
    mask = make_mask("full")
    wanted = {dim_v: expected(make_inputs(dim_v=dim_v), mask) for dim_v in (24, 16, 8)}
    before = longca.plan_stats()["misses"]
    for dim_v in (24, 16, 8, 16, 24):
        assert_close(run(make_inputs(dim_v=dim_v), mask, scale=24**-0.5), wanted[dim_v])
    assert longca.plan_stats()["misses"] == before + 3


def make_sink(dtype=torch.float32):
    return torch.randn(HEADS[0], generator=torch.Generator().manual_seed(1)).to(dtype).requires_grad_()


@pytest.mark.parametrize("softcap", [0.0, 2.0, 30.0])
@pytest.mark.parametrize("batch", [None, 2])
def test_sinks_and_softcaps(mask, softcap, batch):
    inputs, sink = make_inputs(batch=batch), make_sink()
    results = run(inputs, mask, sink=sink, softcap=softcap)
    assert len(results) == 6 and results[-1].shape == sink.shape
    assert_close(results, expected(inputs, mask, sink=sink, softcap=softcap))


def test_a_softcap_without_a_sink(mask):
    inputs = make_inputs(dtype=torch.bfloat16)
    assert_close(run(inputs, mask, softcap=5.0), expected(inputs, mask, softcap=5.0), torch.bfloat16)


def test_a_sink_alone_can_require_a_gradient():
    mask, sink = longca.Mask("causal", TOKENS), make_sink(torch.bfloat16)
    q, k, v, dout = (x.detach() for x in make_inputs())
    gradient, = torch.autograd.grad(longca.attention(q, k, v, mask, sink=sink), sink, dout)
    assert gradient.dtype == torch.bfloat16
    wanted = expected(make_inputs(), mask, sink=sink)[-1]
    assert (gradient.double() - wanted).abs().max() <= 1e-2 * wanted.abs().max()


def test_rows_without_keys_have_the_sink_as_lse():
    mask = longca.Mask.from_slices([(4, 9, 2, 7, "causal")], tokens=12)
    inputs, sink = make_inputs(12), make_sink()
    o, lse, dq, *_ = results = run(inputs, mask, sink=sink)
    assert_close(results, expected(inputs, mask, sink=sink))
    assert o[:4].eq(0).all() and dq[:4].eq(0).all()
    assert torch.allclose(lse[:, :4], sink.detach()[:, None].expand(-1, 4))


def test_rows_without_keys_are_zero_and_give_no_gradient():
    mask = longca.Mask.from_slices([(4, 9, 2, 7, "causal")], tokens=12)
    inputs = make_inputs(12)
    o, lse, dq, dk, dv = results = run(inputs, mask)
    assert_close(results, expected(inputs, mask))
    assert o[:4].eq(0).all() and dq[9:].eq(0).all() and dk[:2].eq(0).all() and dv[7:].eq(0).all()
    assert lse[:, :4].eq(float("-inf")).all()


@pytest.mark.parametrize("options", [{}, {"softcap": 5.0}, {"sink": torch.zeros(1)}])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_of_nan_is_not_one_without_keys(dtype, options):
    mask = longca.Mask("causal", 200)
    q, k, v = (torch.randn(200, 1, 16).to(dtype) for _ in range(3))
    nan_q = q.clone()
    nan_q[150] = float("nan")
    o, lse = longca.attention(nan_q, k, v, mask, return_lse=True, **options)
    assert o.isnan().all(dim=(1, 2)).nonzero().flatten().tolist() == [150] == lse[0].isnan().nonzero().flatten().tolist()
    o, lse = longca.attention(q, k * float("nan"), v, mask, return_lse=True, **options)
    assert o.isnan().all() and lse.isnan().all()


def test_more_keys_than_queries():
    mask = longca.Mask.from_slices([(0, 20, 0, 90, "causal")], tokens=20, tokens_k=90)
    inputs = make_inputs(20, tokens_k=90)
    assert_close(run(inputs, mask), expected(inputs, mask))


def test_scale():
    mask = make_mask("causal")
    inputs = make_inputs()
    assert_close(run(inputs, mask, scale=0.7), expected(inputs, mask, scale=0.7))
    limits = torch.finfo(torch.float32)
    for scale in (limits.tiny, limits.max):
        longca.attention(*inputs[:3], mask, scale=scale)


def test_strided_tensors_are_read_where_they_lie():
    """q, k, v as slices of one projection, and heads that were transposed."""
    mask = make_mask("causal_document")
    heads, dim = HEADS[0], 16
    packed = torch.randn(TOKENS, 3 * heads * dim, requires_grad=True)
    q, k, v = (x.unflatten(-1, (heads, dim)) for x in packed.split(heads * dim, dim=-1))
    o = longca.attention(q, k, v, mask)
    plain = longca.attention(q.contiguous(), k.contiguous(), v.contiguous(), mask)
    assert torch.equal(o, plain)
    # The same tensors as a batch of one, [1, heads, tokens, dim] without a copy.
    batched = longca.attention(*(x.transpose(0, 1).unsqueeze(0) for x in (q, k, v)), mask)
    assert torch.equal(batched[0].transpose(0, 1), plain)
    first, second = (torch.autograd.grad(x.sum(), packed, retain_graph=True)[0] for x in (o, plain))
    assert torch.equal(first, second)


def test_expanded_gradients_and_tensors():
    mask = make_mask("causal")
    inputs = make_inputs()
    o = longca.attention(*inputs[:3], mask)
    by_sum = torch.autograd.grad(o.sum(), inputs[:3], retain_graph=True)  # a gradient of stride 0
    by_ones = torch.autograd.grad(o, inputs[:3], torch.ones_like(o))
    assert all(torch.equal(a, b) for a, b in zip(by_sum, by_ones))
    row = inputs.k.detach()[:1]
    expanded = longca.attention(inputs.q, row.expand(TOKENS, -1, -1), inputs.v, mask)
    assert torch.equal(expanded, longca.attention(inputs.q, row.repeat(TOKENS, 1, 1), inputs.v, mask))


def test_gradients_of_some_inputs_only():
    mask = make_mask("causal")
    inputs = make_inputs()
    o = longca.attention(inputs.q.detach(), inputs.k, inputs.v.detach(), mask)
    dk, = torch.autograd.grad(o, inputs.k, inputs.dout)
    assert torch.equal(dk, run(inputs, mask)[3])


def test_deterministic_gives_the_same_bits():
    mask = make_mask("shared_question")
    inputs = make_inputs()
    first, second = run(inputs, mask, deterministic=True), run(inputs, mask, deterministic=True)
    assert all(torch.equal(a, b) for a, b in zip(first, second))


def test_threads():
    masks = [longca.Mask("causal_document", TOKENS, seed=seed, lengths=[seed + 1, TOKENS - seed - 1]) for seed in range(4)]
    wanted = [run(make_inputs(seed=seed), masks[seed % 2]) for seed in range(4)]
    failures = []

    def work(seed):
        for _ in range(20):
            results = run(make_inputs(seed=seed), masks[seed % 2])
            if not all(torch.equal(a, b) for a, b in zip(results, wanted[seed])):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_child_that_is_forked_during_a_call_makes_the_same_call():
    tokens, stop = 2048, threading.Event()
    mask = longca.Mask("full", tokens)
    q, k, v = (x.detach() for x in make_inputs(tokens)[:3])

    def call():
        longca.attention(q, k, v, mask)

    def repeat():
        while not stop.is_set():
            call()

    call()
    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        for _ in range(3):
            time.sleep(0.05)
            child = multiprocessing.get_context("fork").Process(target=call)
            child.start()
            child.join(30)
            hangs = child.exitcode is None
            child.kill()
            assert not hangs and child.exitcode == 0
    finally:
        stop.set()
        thread.join()


def test_plans_are_kept_by_mask_and_shape():
    mask = longca.Mask("sliding_window", 77, window=5)
    inputs = make_inputs(77)
    before = longca.plan_stats()
    run(inputs, mask)
    run(inputs, longca.Mask("sliding_window", 77, window=5))  # an equal mask
    after = longca.plan_stats()
    assert after["misses"] == before["misses"] + 1
    assert after["hits"] == before["hits"] + 3
    assert after["plan_ms"] > before["plan_ms"] and after["workspace_bytes"] > 0
    run(make_inputs(77, dim=8), mask)
    assert longca.plan_stats()["misses"] == after["misses"] + 1


def test_plans_of_many_masks_are_bounded():
    from longca import _plans

    for seed in range(_plans.MAX_PLANS + 5):
        run(make_inputs(16), longca.Mask.from_cu_seqlens([0, seed % 15 + 1, 16], window=seed // 15))
    stats = longca.plan_stats()
    assert stats["plans"] <= _plans.MAX_PLANS and stats["evictions"] > 0


def test_plans_of_masks_that_are_held_stay(monkeypatch):
    """As of a model whose layers take turns with two masks; of sequences that are gone nothing is kept."""
    from longca import _plans

    monkeypatch.setattr(_plans, "MAX_WORKSPACE_BYTES", 0)
    monkeypatch.setattr(_plans, "workspace_limit", lambda: 1 << 40)
    q, k, v = (torch.randn(64, 2, 16, requires_grad=True) for _ in range(3))

    def step(mask):
        longca.attention(q, k, v, mask).sum().backward()

    masks = [longca.Mask.from_cu_seqlens([0, 9, 64]), longca.Mask.from_cu_seqlens([0, 64], window=7)]
    for mask in masks:
        step(mask)
    before = longca.plan_stats()
    for mask in masks * 3:
        step(mask)
    assert longca.plan_stats()["misses"] == before["misses"]
    for n in range(10, 20):
        step(longca.Mask.from_cu_seqlens([0, n, 64]))
    after = longca.plan_stats()
    assert after["plans"] <= before["plans"] + 1 and after["evictions"] >= 9
    for mask in masks:
        step(mask)
    assert longca.plan_stats()["misses"] == after["misses"]
    monkeypatch.setattr(_plans, "workspace_limit", lambda: 0)
    step(longca.Mask.from_cu_seqlens([0, 30, 64]))
    assert longca.plan_stats()["plans"] == 1, "beyond the limit of the GPU they go too"


def test_a_plan_in_use_outlives_others():
    from longca import _plans

    used = longca.Mask.from_cu_seqlens([0, 7, 23])
    inputs = make_inputs(23)
    wanted = run(inputs, used)
    for seed in range(_plans.MAX_PLANS + 5):
        run(make_inputs(16), longca.Mask.from_cu_seqlens([0, seed % 15 + 1, 16], window=seed // 15 + 40))
        before = longca.plan_stats()
        assert all(torch.equal(a, b) for a, b in zip(run(inputs, used), wanted))
        assert longca.plan_stats()["misses"] == before["misses"]


def test_calls_that_differ_in_strides_alone():
    """The same shapes in one order and another, so that what is kept of a call meets tensors that lie differently."""
    mask = make_mask("causal_document")
    inputs = make_inputs()
    heads_first = [x.detach().transpose(0, 1).contiguous().transpose(0, 1) for x in inputs]
    doubled = [x.detach().repeat_interleave(2, dim=0)[::2] for x in inputs]
    with_gaps = [torch.stack([x.detach(), -x.detach()], -1)[..., 0] for x in inputs[3:]]  # dout alone may have them
    wanted = run(inputs, mask)
    for q, k, v, dout in [heads_first, doubled, [*doubled[:3], *with_gaps], [*inputs[:3], doubled[3]]] * 2:
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        o, lse = longca.attention(*leaves, mask, return_lse=True)
        got = [o, lse, *torch.autograd.grad(o, leaves, dout)]
        assert all(torch.equal(a, b) for a, b in zip(got, wanted))


@pytest.mark.parametrize("shared", [0, 1, 2])
def test_a_tensor_whose_rows_share_memory_is_copied_each_time(shared):
    mask = make_mask("full")
    for seed in range(2):
        inputs = [x.detach() for x in make_inputs(seed=seed)]
        inputs[shared] = inputs[shared][:1].expand_as(inputs[shared])
        whole = list(inputs)
        whole[shared] = inputs[shared].contiguous()
        got, wanted = (longca.attention(*x[:3], mask) for x in (inputs, whole))
        assert torch.equal(got, wanted)


@pytest.mark.parametrize("error, sentence, changed", [
    (TypeError, "q is a ndarray: a torch.Tensor is meant", {"q": torch.zeros(8, 2, 16).numpy()}),
    (TypeError, "v is a NoneType", {"v": None}),
    (TypeError, "sink is a list", {"sink": [0.0, 0.0]}),
    (ValueError, "scale = 'x': above 0", {"scale": "x"}),
    (ValueError, "scale = tensor([0.5000, 0.5000]): above 0", {"scale": torch.tensor([0.5, 0.5])}),
    (ValueError, "softcap = None: 0, or from 0.001 to 1000000", {"softcap": None}),
    (ValueError, "softcap = 'x': 0, or from 0.001 to 1000000", {"softcap": "x"}),
    (ValueError, "scale = inf: above 0, in the range of float32 (1.1754944e-38 to 3.4028235e+38), or None for 1/√dim",
     {"scale": 10**400}),
    (ValueError, "scale = 1e-40: above 0, in the range of float32", {"scale": 1e-40}),
    (ValueError, "scale = 1e+39: above 0, in the range of float32", {"scale": 1e39}),
    (ValueError, "softcap = -inf", {"softcap": -(10**400)}),
    (ValueError, "deterministic = 'x': True or False", {"deterministic": "x"}),
    (ValueError, "return_lse = 'no': True or False", {"return_lse": "no"}),
    (ValueError, "return_lse = None: True or False", {"return_lse": None}),
    (ValueError, "deterministic = array([1, 0]): True or False", {"deterministic": torch.tensor([1, 0]).numpy()}),
    (ValueError, "deterministic = tensor([1, 0]): True or False", {"deterministic": torch.tensor([1, 0])}),
    (NotImplementedError, "q is on meta: longca has kernels for CPUs", {"q": torch.zeros(8, 2, 16, device="meta")}),
])
def test_what_is_of_another_type_is_named(error, sentence, changed):
    q, k, v = (torch.zeros(8, 2, 16) for _ in range(3))
    with pytest.raises(error) as raised:
        longca.attention(**({"q": q, "k": k, "v": v, "mask": longca.Mask("causal", 8)} | changed))
    assert sentence in str(raised.value)


def test_a_gradient_that_would_be_lost_is_refused():
    q, k, v, _ = make_inputs()
    mask, learned = make_mask("causal"), torch.tensor(0.5, requires_grad=True)
    for name, instead in (("scale", "multiply q by it"), ("softcap", "detach it")):
        with pytest.raises(ValueError, match=f"{name} requires a gradient, and longca gives it none: {instead}"):
            longca.attention(q, k, v, mask, **{name: learned})
        wanted = longca.attention(q, k, v, mask, **{name: 0.5})
        with torch.no_grad():  # none is lost
            assert torch.equal(longca.attention(q, k, v, mask, **{name: learned}), wanted)
        assert torch.equal(longca.attention(q, k, v, mask, **{name: learned.detach()}), wanted)
    # As the sentence says.
    wanted, = torch.autograd.grad(longca.attention(q * learned, k, v, mask, scale=1.0).sum(), learned)
    above, below = (longca.attention(q * x, k, v, mask, scale=1.0).sum() for x in (0.51, 0.49))
    assert abs((above - below).item() / 0.02 - wanted.item()) < 0.02 * abs(wanted.item()) + 0.02


def test_what_a_kernel_does_not_take_is_not_implemented():
    mask = longca.Mask("causal", 8)
    core = Core.find(mask._handle)
    problem = Problem(ctypes.sizeof(Problem), *HEADS, 8, DTYPES[torch.float32], 0, False, False, 1.0, b"block_sparse")
    with pytest.raises(NotImplementedError, match="block_sparse takes block-sparse masks only"):
        made(lib.longca_plan_create, ctypes.byref(problem), core.pointer)


def refused(error, sentence, **changed):
    q, k, v, _ = make_inputs(8)
    arguments = {"q": q, "k": k, "v": v, "mask": longca.Mask("causal", 8), **changed}
    with pytest.raises(error) as raised:
        longca.attention(**arguments)
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_does_not_fit_is_named():
    q, k, v, _ = make_inputs(8)
    refused(ValueError, "q has 3 heads, k has 2: the KV heads must divide the query heads", q=q[:, :3])
    refused(ValueError, "of one dtype", k=k.double())
    refused(ValueError, "on one device", v=v.to("meta"))
    refused(ValueError, "k has stride 16 in its last dimension: make it contiguous", k=torch.randn(24, 8, 2).permute(1, 2, 0))
    refused(ValueError, "the mask has 9 queries and 9 keys, q has 8 tokens", mask=longca.Mask("causal", 9))
    refused(ValueError, "q has 0 tokens", q=q[:0])
    refused(ValueError, "q has head dimension 24, k has 12", k=k[..., :12], v=v[..., :12])
    refused(ValueError, "q has head dimension 24, k has 12", k=k[..., :12])
    refused(ValueError, "k is [8, 2, 24] and v is [8, 1, 24]: of one shape but for the last dimension", v=v[:, :1])
    refused(ValueError, "k is [8, 2, 24] and v is [7, 2, 16]", v=v[:7, :, :16])
    wider = "v has head dimension {}, q and k have {}: that of v is at least 1, at most theirs"
    refused(ValueError, wider.format(24, 16), q=q[..., :16], k=k[..., :16])
    refused(ValueError, wider.format(0, 24), v=v[..., :0])
    refused(ValueError, "v has stride 2 in its last dimension: make it contiguous", v=v[..., ::2])
    refused(ValueError, "dimensions", q=q[0])
    refused(ValueError, "scale = 0", scale=0.0)
    refused(TypeError, "mask is a str", mask="causal")
    refused(NotImplementedError, "float64", q=q.double(), k=k.double(), v=v.double())
    refused(ValueError, "sink is [3]: one logit per query head is [4]", sink=torch.zeros(3))
    refused(ValueError, "sink has dtype torch.int64", sink=torch.zeros(4, dtype=torch.int64))
    refused(ValueError, "sink is on meta, q on cpu", sink=torch.zeros(4, device="meta"))
    refused(ValueError, "softcap = -30: 0, or from 0.001 to 1000000", softcap=-30.0)
    refused(ValueError, "softcap = nan", softcap=float("nan"))
    sparse = longca.Mask("block_sparse", 8, heads=(6, 3))
    refused(ValueError, "the mask has block lists for 3 heads, the attention 4:2 heads", mask=sparse)
