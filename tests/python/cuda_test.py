"""longca.attention on a GPU, against float64 with the explicit mask. The default build has bfloat16 of 128 dimensions."""

import pytest
import torch
from attention_test import assert_close, run
from conftest import HEADS, TOKENS, Inputs, expected, make_inputs, make_mask
from torch.utils.checkpoint import checkpoint

import longca

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

DIM = 128
# Further dimensions of q and k, and of v, that the default build has in bfloat16, on Hopper.
WIDE = [(192, 128), (256, 256)]


@pytest.fixture(scope="module", autouse=True)
def built_with_cuda():
    q = torch.zeros(1, 1, DIM, dtype=torch.bfloat16, device="cuda")
    try:
        longca.attention(q, q, q, longca.Mask("full", 1))
    except NotImplementedError as refusal:
        pytest.skip(str(refusal))


def on_gpu(inputs):
    q, k, v, dout = (x.detach().cuda() for x in inputs)
    return Inputs(*(x.requires_grad_() for x in (q, k, v)), dout)


def draw(dim=DIM, **options):
    """The same inputs on the CPU and on the GPU."""
    inputs = make_inputs(dim=dim, dtype=torch.bfloat16, **options)
    return inputs, on_gpu(inputs)


def on_cpu(results):
    return [x.detach().cpu() for x in results]


@pytest.mark.parametrize("batch", [None, 2])
def test_every_mask(mask, batch):
    inputs, there = draw(batch=batch)
    assert_close(on_cpu(run(there, mask)), expected(inputs, mask), torch.bfloat16)


@pytest.mark.parametrize("softcap", [0.0, 2.0, 30.0])
@pytest.mark.parametrize("batch", [None, 2])
def test_sinks_and_softcaps(mask, softcap, batch):
    inputs, there = draw(batch=batch)
    sink = torch.randn(HEADS[0], generator=torch.Generator().manual_seed(1))
    results = run(there, mask, sink=sink.cuda().requires_grad_(), softcap=softcap)
    assert_close(on_cpu(results), expected(inputs, mask, sink=sink, softcap=softcap), torch.bfloat16)


def skip_without(dim, dim_v):
    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("wide heads run on Hopper")
    q, v = (torch.zeros(1, 1, d, dtype=torch.bfloat16, device="cuda") for d in (dim, dim_v))
    try:
        longca.attention(q, q, v, longca.Mask("full", 1))
    except NotImplementedError as refusal:
        if "LONGCA_INSTANTIATIONS" not in str(refusal):
            raise
        pytest.skip(str(refusal))


@pytest.mark.parametrize("dim, dim_v", WIDE)
@pytest.mark.parametrize("batch", [None, 2])
def test_wide_heads(mask, dim, dim_v, batch):
    skip_without(dim, dim_v)
    inputs, there = draw(dim=dim, dim_v=dim_v, batch=batch)
    assert_close(on_cpu(run(there, mask)), expected(inputs, mask), torch.bfloat16)


@pytest.mark.parametrize("dim, dim_v", WIDE)
@pytest.mark.parametrize("tokens", [1, 63, 129])
@pytest.mark.parametrize("heads", [(1, 1), (6, 1), (8, 2)])
def test_shapes_of_wide_heads(dim, dim_v, tokens, heads):
    skip_without(dim, dim_v)
    mask = longca.Mask("causal", tokens)
    inputs, there = draw(dim=dim, dim_v=dim_v, tokens=tokens, heads=heads)
    sink = torch.randn(heads[0], generator=torch.Generator().manual_seed(1))
    softcap = 30.0 if dim == dim_v else 0.0  # slice has none with a v of another dimension
    results = run(there, mask, sink=sink.cuda().requires_grad_(), softcap=softcap)
    assert_close(on_cpu(results), expected(inputs, mask, sink=sink, softcap=softcap), torch.bfloat16)


@pytest.mark.parametrize("tokens", [1, 63, 129])
@pytest.mark.parametrize("heads", [(1, 1), (6, 1), (8, 2)])
def test_shapes(tokens, heads):
    mask = longca.Mask("causal", tokens)
    inputs, there = draw(tokens=tokens, heads=heads)
    assert_close(on_cpu(run(there, mask)), expected(inputs, mask), torch.bfloat16)


def test_tensors_with_gaps(mask):
    inputs, there = draw()
    packed = torch.cat([x.detach() for x in there[:3]], dim=1)
    parts = packed.split([HEADS[0], HEADS[1], HEADS[1]], dim=1)
    apart = Inputs(*(x.requires_grad_() for x in parts), there.dout)
    assert not apart.q.is_contiguous()
    assert_close(on_cpu(run(apart, mask)), expected(inputs, mask), torch.bfloat16)


def test_tensors_whose_rows_do_not_begin_at_multiples_of_16_bytes(mask):
    """By their strides, and by the address alone of some of them, which one plan meets one after the other."""
    inputs, there = draw()

    def moved(x, gap, offset):
        memory = torch.zeros(x.shape[0] * (x.shape[1] * DIM + gap) + offset, dtype=x.dtype, device=x.device)
        view = memory[offset:].view(x.shape[0], -1)[:, : x.shape[1] * DIM].view(x.shape)
        return view.copy_(x.detach())

    for gap, offsets in ((4, (0, 0, 0, 0)), (8, (0, 0, 0, 0)), (8, (1, 0, 0, 0)), (8, (0, 1, 0, 0)), (8, (1, 1, 1, 1))):
        *parts, dout = (moved(x, gap, offset) for x, offset in zip(there, offsets))
        apart = Inputs(*(x.requires_grad_() for x in parts), dout)
        assert_close(on_cpu(run(apart, mask)), expected(inputs, mask), torch.bfloat16)


def test_gradients_are_equal_to_the_bit_where_that_is_asked_for():
    mask = make_mask("causal_document")
    _, there = draw()
    first, second = (run(there, mask, deterministic=True) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second))


def test_cu_seqlens_on_the_gpu():
    mask = longca.Mask.from_cu_seqlens(torch.tensor([0, 40, 64], dtype=torch.int32, device="cuda"))
    inputs, there = draw(tokens=64)
    assert_close(on_cpu(run(there, mask)), expected(inputs, mask), torch.bfloat16)


def test_work_is_queued_on_the_current_stream():
    mask = make_mask("causal")
    inputs, there = draw()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        late = Inputs(*((x.detach() * 2).requires_grad_() for x in there[:3]), there.dout)
        results = run(late, mask)
    stream.synchronize()
    doubled = Inputs(*((x.detach() * 2).requires_grad_() for x in inputs[:3]), inputs.dout)
    assert_close(on_cpu(results), expected(doubled, mask), torch.bfloat16)


def test_a_cuda_graph_after_the_first_call():
    mask = make_mask("shared_question")
    _, there = draw()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        wanted = [x.clone() for x in run(there, mask)]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        results = run(there, mask)
    for x in results:
        x.zero_()
    graph.replay()
    torch.cuda.synchronize()
    # Without `deterministic`, sums of gradients may be rounded in another order.
    assert torch.equal(results[0], wanted[0]) and torch.equal(results[1], wanted[1])
    for got, want in zip(results[2:], wanted[2:]):
        torch.testing.assert_close(got, want, rtol=2e-2, atol=2e-2)


def block(q, k, v, mask):
    o = longca.attention(q.sin(), k.cos(), v, mask)
    return (o * o).sum()


def test_compiled_without_a_graph_break():
    torch._dynamo.reset()
    compiled = torch.compile(block, fullgraph=True)
    _, there = draw()
    for first in (10, 120):
        mask = longca.Mask("causal_document", TOKENS, lengths=[first, TOKENS - first])
        result, wanted = (f(*there[:3], mask) for f in (compiled, block))
        torch.testing.assert_close(result, wanted, rtol=2e-2, atol=0)
        for got, want in zip(*(torch.autograd.grad(x, there[:3]) for x in (result, wanted))):
            torch.testing.assert_close(got, want, rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("reentrant", [True, False])
def test_activation_checkpointing(reentrant):
    mask = make_mask("shared_question")
    _, there = draw()
    plain = torch.autograd.grad(block(*there[:3], mask), there[:3])
    q, k, v = (x.detach().requires_grad_() for x in there[:3])
    checkpoint(block, q, k, v, mask, use_reentrant=reentrant).backward()
    for want, x in zip(plain, (q, k, v)):
        torch.testing.assert_close(x.grad, want, rtol=2e-2, atol=2e-2)


def test_autocast():
    mask = make_mask("causal")
    q, k, v = (x.detach().float().requires_grad_() for x in draw()[1][:3])
    with torch.autocast("cuda", torch.bfloat16):
        o = longca.attention(q, k, v, mask)
    assert o.dtype == torch.bfloat16
    assert torch.equal(o, longca.attention(q.bfloat16(), k.bfloat16(), v.bfloat16(), mask))


def test_plans_are_found_again():
    mask = make_mask("causal_document")
    _, there = draw()
    run(there, mask)
    before = longca.plan_stats()
    for _ in range(3):
        run(there, mask)
    after = longca.plan_stats()
    assert after["misses"] == before["misses"] and after["hits"] >= before["hits"] + 6


def test_tensors_on_two_devices_are_refused():
    (q, k, v, _), there = draw()
    with pytest.raises(ValueError, match="on one device"):
        longca.attention(there.q, k, v, make_mask("causal"))
    with pytest.raises(ValueError, match="on one device"):
        longca.attention(*there[:3], make_mask("causal"), sink=torch.zeros(HEADS[0]))


def test_what_was_not_built_is_refused():
    q = torch.zeros(8, 2, 72, dtype=torch.bfloat16, device="cuda")
    with pytest.raises(NotImplementedError, match="72"):
        longca.attention(q, q, q, longca.Mask("causal", 8))
    with pytest.raises(NotImplementedError, match="72:64"):
        longca.attention(q, q, q[..., :64], longca.Mask("causal", 8))
