"""longca.attention as an operator of PyTorch: compiled, traced, checkpointed, under autocast."""

import io
import subprocess
import sys

import pytest
import torch
from conftest import TOKENS, make_inputs, make_mask
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint

import longca
from longca._plans import MAX_PLANS


@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize("name", ["causal_document", "block_sparse"])
@pytest.mark.parametrize("sinks", [False, True])
@pytest.mark.parametrize("dim_v", [24, 16])
def test_opcheck(name, batch, sinks, dim_v):
    mask = make_mask(name)
    q, k, v, dout = make_inputs(batch=batch, dim_v=dim_v)
    sink = torch.randn(q.shape[1], requires_grad=True) if sinks else None
    softcap = 3.0 if sinks else 0.0
    arguments = (q, k, v, sink, mask._handle, 0.3, softcap, False, True)
    torch.library.opcheck(torch.ops.longca.attention.default, arguments)
    o, lse = torch.ops.longca.attention(*arguments)
    saved = [x.detach() for x in (dout, q, k, v, o, lse)]
    saved.append(None if sink is None else sink.detach())
    torch.library.opcheck(torch.ops.longca.attention_backward.default, (*saved, mask._handle, 0.3, softcap, False))


@pytest.mark.parametrize("batch", [None, 3])
@pytest.mark.parametrize("dim_v", [24, 16])
def test_fake_tensors_have_the_shapes_of_real_ones(batch, dim_v):
    mask = make_mask("causal")
    q, k, v, _ = make_inputs(batch=batch, dtype=torch.bfloat16, dim_v=dim_v)
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(x) for x in (q, k, v)]
        o, lse = torch.ops.longca.attention(*fakes, None, mode.from_tensor(mask._handle), 0.0, 0.0, False, True)
    real = longca.attention(q, k, v, mask, return_lse=True)
    for fake, wanted in zip((o, lse), real):
        assert (fake.shape, fake.dtype, fake.stride()) == (wanted.shape, wanted.dtype, wanted.stride())


def block(q, k, v, mask):
    o = longca.attention(q.sin(), k.cos(), v, mask)
    return (o * o).sum()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("batch, dim_v", [(None, 24), (None, 16), (2, 16)])
def test_compiled_without_a_graph_break_once_for_all_masks(backend, batch, dim_v):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(block, fullgraph=True, backend=backend)
    for first in (10, 50, 120):
        mask = longca.Mask("causal_document", TOKENS, lengths=[first, TOKENS - first])
        inputs = make_inputs(batch=batch, dim_v=dim_v)
        result, wanted = (f(*inputs[:3], mask) for f in (compiled, block))
        torch.testing.assert_close(result, wanted, rtol=1e-5, atol=0)
        for got, want in zip(*(torch.autograd.grad(x, inputs[:3]) for x in (result, wanted))):
            torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize("reentrant", [True, False])
def test_activation_checkpointing(reentrant):
    mask = make_mask("shared_question")
    inputs = make_inputs()
    plain = torch.autograd.grad(block(*inputs[:3], mask), inputs[:3])
    q, k, v = (x.detach().requires_grad_() for x in inputs[:3])
    checkpoint(block, q, k, v, mask, use_reentrant=reentrant).backward()
    assert all(torch.equal(a, b.grad) for a, b in zip(plain, (q, k, v)))


def test_saved_tensors_may_be_copies():
    """As of hooks that move them to a disk, with a mask of its own for each micro-batch."""
    def pack(x):
        file = io.BytesIO()
        torch.save(x, file)
        return file

    def unpack(file):
        file.seek(0)
        return torch.load(file)

    inputs = make_inputs()
    wanted = torch.autograd.grad(longca.attention(*inputs[:3], make_mask("causal")), inputs[:3], inputs.dout)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        o = longca.attention(*inputs[:3], make_mask("causal"))
    for first in range(1, MAX_PLANS + 6):  # plans keep their masks too
        longca.attention(*make_inputs(128)[:3], longca.Mask.from_cu_seqlens([0, first, 128]))
    assert all(torch.equal(a, b) for a, b in zip(torch.autograd.grad(o, inputs[:3], inputs.dout), wanted))


@pytest.mark.parametrize("batch", [None, 2])
def test_operators_check_what_the_library_takes_on_trust(batch):
    mask = make_mask("causal")
    q, k, v, dout = (x.detach() for x in make_inputs(batch=batch))
    sink = torch.zeros(4)
    o, lse = torch.ops.longca.attention(q, k, v, sink, mask._handle, 0.0, 0.0, False, True)
    right = {"dout": dout, "q": q, "k": k, "v": v, "o": o, "lse": lse, "sink": sink}

    def forward(q, k, v, sink, **_):
        return torch.ops.longca.attention(q, k, v, sink, mask._handle, 0.0, 0.0, False, True)

    def backward(**changed):
        return torch.ops.longca.attention_backward(*changed.values(), mask._handle, 0.0, 0.0, False)

    def refused(sentence, *operators, error=ValueError, **changed):
        for operator in operators:
            operator(**right)  # so that the plan of the right ones is there
            with pytest.raises(error) as raised:
                operator(**(right | changed))
            assert sentence in str(raised.value)

    both = forward, backward
    for name in ("k", "v"):
        refused(f"{name} has dtype torch.float16, q has torch.float32: of one dtype", *both, **{name: right[name].half()})
    for name in ("dout", "o"):
        refused(f"{name} has dtype torch.float16, q has torch.float32", backward, **{name: right[name].half()})
    doubles = {name: right[name].double() for name in ("q", "k", "v", "dout", "o")}
    refused("q has dtype torch.float64: longca has kernels for", *both, error=NotImplementedError, **doubles)
    refused("sink is torch.float32 [1]: torch.float32 [4] is meant", *both, sink=torch.zeros(1))
    refused("sink is torch.float64 [4]: torch.float32 [4] is meant", *both, sink=sink.double())
    shape = list(lse.shape)
    refused(f"lse is torch.float16 {shape}: torch.float32 {shape} is meant", backward, lse=lse.half())
    refused(f"lse is torch.float32 {shape[1:]}: torch.float32 {shape} is meant", backward, lse=lse[0])
    refused("of as many dimensions and sequences", *both, k=k[None] if batch is None else k[:1])
    refused("of as many dimensions and sequences", backward, dout=dout[None] if batch is None else dout[:1])


def test_saved_tensors_of_another_dtype_are_refused():
    inputs, mask = make_inputs(), make_mask("causal")
    torch.autograd.grad(longca.attention(*inputs[:3], mask), inputs[:3], inputs.dout)
    for which in ([0, 1, 2, 3, 4], [3], [4]):  # q, k, v, o, lse
        saved = []

        def pack(x, saved=saved, which=which):
            saved.append(x)
            return x.half() if len(saved) - 1 in which else x

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            o = longca.attention(*inputs[:3], mask)
        with pytest.raises(ValueError, match="which hooks of saved tensors have to give back|lse is torch.float16"):
            torch.autograd.grad(o, inputs[:3], inputs.dout)


@pytest.mark.parametrize("dim_v", [24, 16])
def test_compiled_for_any_dimensions(dim_v):
    torch._dynamo.reset()
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager", dynamic=True)
    for tokens, dim in ((31, 24), (65, 40)):
        mask = longca.Mask("causal", tokens)
        inputs = make_inputs(tokens, dim=dim, dim_v=dim_v)
        for got, want in zip(*(torch.autograd.grad(f(*inputs[:3], mask), inputs[:3]) for f in (compiled, block))):
            torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def test_compiled_with_a_number_of_tokens_that_is_marked_dynamic():
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    for tokens in (31, 65, 40):
        inputs = make_inputs(tokens)
        for x in inputs[:3]:
            torch._dynamo.mark_dynamic(x, 0)
        mask = longca.Mask("causal", tokens)
        for got, want in zip(*(torch.autograd.grad(f(*inputs[:3], mask), inputs[:3]) for f in (compiled, block))):
            torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    for tokens in (64, 66):
        with pytest.raises(ValueError, match=rf"q is \[65, 4, 24\], the plan's is \[{tokens}, 4, 24\]"):
            compiled(*make_inputs(65)[:3], longca.Mask("causal", tokens))


BY_MASK = {longca.Mask("causal", 8): 1.0, longca.Mask("full", 8): 2.0}


def test_masks_are_compared_in_a_compiled_function():
    """Also where masks of the first call differ in another way than those of the next."""
    def equal(x, a, b):
        return x + 1 if a == b else x - 1

    def unequal(x, a, b):
        return x + 1 if a != b else x - 1

    def among(x, a, b):
        return x + 1 if a in [b] else x - 1

    def of_global_dictionary(x, a, b):
        return x + BY_MASK[a]

    def of_local_dictionary(x, a, b):
        return x + {a: 1, b: 2}[a]

    def of_set(x, a, b):
        return x + len({a, b})

    x = torch.zeros(1)
    for function in (equal, unequal, among, of_global_dictionary, of_local_dictionary, of_set):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="eager")
        for names in (("causal", "full"), ("full", "full"), ("full", "causal"), ("causal", "causal")):
            masks = [longca.Mask(name, 8) for name in names]
            assert torch.equal(compiled(x, *masks), function(x, *masks)), (function.__name__, names)
    # Without a graph break there is no answer, rather than a wrong one.
    with pytest.raises(torch._dynamo.exc.Unsupported, match="Mask.__eq__"):
        torch.compile(equal, backend="eager", fullgraph=True)(x, *masks)


@pytest.mark.parametrize("dim_v", [24, 16])
def test_autocast(dim_v):
    mask = make_mask("causal")
    q, k, v, dout = make_inputs(dim_v=dim_v)
    with torch.autocast("cpu", torch.bfloat16):
        o = longca.attention(q, k, v, mask)
    assert o.dtype == torch.bfloat16
    assert torch.equal(o, longca.attention(q.bfloat16(), k.bfloat16(), v.bfloat16(), mask))
    gradients = torch.autograd.grad(o, (q, k, v), dout.bfloat16())
    assert all(g.dtype == torch.float32 for g in gradients)
    with torch.autocast("cpu", torch.bfloat16):  # q and k after RoPE in float32, v as its projection gives it
        assert torch.equal(longca.attention(q, k, v.bfloat16(), mask), o)
        for dtype in (torch.int32, torch.bool, torch.complex64):
            with pytest.raises(NotImplementedError, match=f"k has dtype {dtype}: longca has kernels for float32"):
                longca.attention(q, k.detach().to(dtype), v, mask)


def test_no_gradient_where_none_is_asked_for():
    mask = make_mask("causal")
    q, k, v, _ = make_inputs()
    with torch.no_grad():
        assert not longca.attention(q, k, v, mask).requires_grad
    o, lse = longca.attention(q, k, v, mask, return_lse=True)
    assert o.requires_grad and not lse.requires_grad


def test_a_second_derivative_is_refused():
    mask = make_mask("causal")
    q, k, v, _ = make_inputs()
    dq, = torch.autograd.grad(longca.attention(q, k, v, mask).square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="attention_backward"):
        dq.sum().backward()


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("dim_v", [24, 16])
def test_under_torch_func(dim_v):
    mask = make_mask("causal_document")
    q, k, v, _ = (x.detach() for x in make_inputs(dim_v=dim_v))
    pair = torch.stack([q, q.flip(0)])
    mapped = torch.func.vmap(lambda x: longca.attention(x, k, v, mask))(pair)
    assert torch.equal(mapped, torch.stack([longca.attention(x, k, v, mask) for x in pair]))
    sentence = "longca.attention does not run under torch.func's grad, vjp or jacrev: use torch.autograd.grad or backward"
    for transform in (torch.func.grad, torch.func.jacrev, lambda f: lambda x: torch.func.vjp(f, x)):
        with pytest.raises(RuntimeError, match=sentence):
            transform(lambda x: block(x, k, v, mask))(q)
    with pytest.raises(RuntimeError, match=sentence):
        torch.func.grad(lambda y: torch.func.vmap(lambda x: block(x, k, v, mask))(y).sum())(pair)


def test_vmapped_calls_have_gradients():
    mask = make_mask("causal_document")
    q, k, v, _ = (x.detach() for x in make_inputs())
    pair = torch.stack([q, q.flip(0)])
    found = []
    for mapped in (True, False):
        inputs = [x.clone().requires_grad_() for x in (pair, k, v)]
        if mapped:
            o = torch.func.vmap(lambda x, k=inputs[1], v=inputs[2]: longca.attention(x, k, v, mask))(inputs[0])
        else:
            o = torch.stack([longca.attention(x, *inputs[1:], mask) for x in inputs[0]])
        o.square().sum().backward()
        found.append([x.grad for x in inputs])
    for mine, wanted in zip(*found):
        torch.testing.assert_close(mine, wanted, rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        assert not torch.func.vmap(lambda x: longca.attention(x, inputs[1], inputs[2], mask))(pair).requires_grad


def test_what_has_no_gradient_behind_it_has_none():
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, _):
            return None

    q, k, v, _ = (x.detach().requires_grad_() for x in make_inputs())
    Nothing.apply(longca.attention(q, k, v, make_mask("causal_document"))).sum().backward()
    assert q.grad is k.grad is v.grad is None


# A process that makes 31 other masks of as many tokens, then the exported one if it is asked to, and runs the graph.
LOAD = """
import sys, torch, longca
others = [longca.Mask.from_cu_seqlens([0, n, 64]) for n in range(20, 51)]
mask = longca.Mask.from_cu_seqlens([0, 11, 64]) if sys.argv[2] == "made" else None
inputs, wanted = torch.load(sys.argv[1] + ".inputs")
print((torch.export.load(sys.argv[1]).module()(*inputs) - wanted).abs().max().item())
"""


def test_an_exported_graph_takes_its_own_mask_or_none(tmp_path):
    class Attention(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.mask = longca.Mask.from_cu_seqlens([0, 11, 64])

        def forward(self, q, k, v):
            return longca.attention(q, k, v, self.mask)

    inputs = tuple(torch.randn(64, 2, 16) for _ in range(3))
    model = Attention()
    file = str(tmp_path / "attention.pt2")
    torch.export.save(torch.export.export(model, inputs), file)
    torch.save((inputs, model(*inputs)), file + ".inputs")
    run = [subprocess.run([sys.executable, "-c", LOAD, file, made], capture_output=True, text=True, check=False)
           for made in ("made", "not made")]
    assert run[0].returncode == 0 and float(run[0].stdout) == 0, run[0].stderr
    assert run[1].returncode != 0
    assert "to run an exported graph, make the same mask first" in run[1].stderr


@pytest.mark.parametrize("layout", ["sparse", "nested", "jagged"])
def test_other_layouts_are_named(layout):
    q, k, v, _ = (x.detach() for x in make_inputs())
    if layout == "sparse":
        q = q.to_sparse()
    else:
        q = torch.nested.nested_tensor([q, q], layout=torch.strided if layout == "nested" else torch.jagged)
    with pytest.raises(NotImplementedError, match="q is .*: a dense tensor is meant"):
        longca.attention(q, k, v, make_mask("causal_document"))


def test_a_scale_that_changes_breaks_no_graph():
    torch._dynamo.reset()
    mask = make_mask("causal_document")
    q, k, v, _ = (x.detach() for x in make_inputs())
    compiled = torch.compile(lambda scale: longca.attention(q, k, v, mask, scale=scale), backend="aot_eager",
                             fullgraph=True)
    for scale in (0.1, 0.2, 0.3):
        assert torch.equal(compiled(scale), longca.attention(q, k, v, mask, scale=scale))


def test_masks_are_made_in_any_mode():
    kept = torch.ones(1, 2, 2, dtype=torch.bool).tril()
    with torch._subclasses.FakeTensorMode():
        mask = longca.Mask("causal_document", 12, lengths=[5, 7])
        with pytest.raises(ValueError, match="cu_seqlens is a FakeTensor"):
            longca.Mask.from_cu_seqlens(torch.tensor([0, 5, 12]))
        dense = mask.dense()
        blocks = longca.Mask.from_blocks([[[0], [0, 1]]], block=6), longca.Mask.from_blocks(kept, block=6)
        with pytest.raises(ValueError, match="kept is a FakeTensor"):
            longca.Mask.from_blocks(torch.ones(1, 2, 2, dtype=torch.bool), block=6)
    assert mask == longca.Mask("causal_document", 12, lengths=[5, 7])
    assert torch.equal(dense, mask.dense())
    assert all(made == longca.Mask.from_blocks(kept, block=6) for made in blocks)


def test_forward_mode_derivatives_are_refused():
    mask = make_mask("causal_document")
    q, k, v, _ = (x.detach() for x in make_inputs())
    sentence = "longca.attention has no forward-mode derivative"
    for f, x in ((lambda x: longca.attention(x, k, v, mask), q), (lambda x: longca.attention(q, x, v, mask), k),
                 (lambda x: longca.attention(q, k, v, mask, sink=x), torch.zeros(4))):
        for x in (x, x.clone().requires_grad_()):
            with torch.autograd.forward_ad.dual_level(), pytest.raises(RuntimeError, match=sentence):
                f(torch.autograd.forward_ad.make_dual(x, torch.ones_like(x)))
        with pytest.raises(RuntimeError, match=sentence):
            torch.func.jvp(f, (x.detach(),), (torch.ones_like(x),))
    with pytest.raises(RuntimeError, match=sentence):
        torch.func.jacfwd(lambda x: longca.attention(x, k, v, mask))(q)
    # Of another factor they are as before.
    o = longca.attention(q, k, v, mask)
    _, tangent = torch.func.jvp(lambda x: x * longca.attention(q, k, v, mask), (o,), (torch.ones_like(o),))
    assert torch.equal(tangent, o)


@pytest.mark.parametrize("make, arguments", [
    (longca.Mask.from_cu_seqlens, [torch.tensor([0, *inner, 16]) for inner in ([], [3], [5], [1, 7])]),
    (lambda window: longca.Mask("sliding_window", 16, window=window), [1, 2, 3, 4]),
    (lambda end: longca.Mask.from_slices([(0, end, 0, end, "full")], 16), [1, 2, 3, 4]),
    (lambda key: longca.Mask.from_blocks([[[0], [key]]], block=8, tokens=16), [0, 1]),
])
def test_a_mask_is_made_in_a_compiled_function(make, arguments):
    torch._dynamo.reset()
    inputs = make_inputs(16)

    def loss(argument):
        return block(*inputs[:3], make(argument))

    compiled = torch.compile(loss, backend="aot_eager")
    for argument in arguments:
        got, wanted = (torch.autograd.grad(f(argument), inputs[:3]) for f in (compiled, loss))
        for a, b in zip(got, wanted):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_a_model_trains():
    """It learns to copy the token before, which only attention can see."""
    torch.manual_seed(0)
    mask = longca.Mask.from_cu_seqlens([0, 40, 64])
    project = torch.nn.Linear(16, 48)
    out = torch.nn.Linear(16, 16)
    optimizer = torch.optim.Adam([*project.parameters(), *out.parameters()], lr=1e-2)
    x = torch.randn(64, 16)
    target = torch.cat([x[:1], x[:39], x[40:41], x[40:63]])
    losses = []
    for _ in range(60):
        q, k, v = (y.unflatten(-1, (2, 8)) for y in project(x).split(16, dim=-1))
        loss = (out(longca.attention(q, k, v, mask).flatten(1)) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]
