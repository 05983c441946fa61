"""longca.parallel on one and four ranks, against the whole attention."""

import contextlib
import copy
import ctypes
import gc
import multiprocessing
import os
import pickle
import tempfile
import time
import traceback
import weakref

import pytest
import torch
import torch.distributed as dist
from conftest import MASKS, TOKENS, expected, make_inputs, make_mask

import longca
import longca.parallel
from longca import _messages
from longca._library import Message
from longca._messages import Gpus, StoreMessages
from longca.parallel import SCHEMES, Partition

SHAPE = {"heads": (4, 2), "dim": 24}


def _run_rank(body, rank, ranks, store, arguments, answers, backend):
    try:
        torch.set_num_threads(1)
        dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=ranks)
        answers.put((rank, body(*arguments), None))
        dist.barrier()
        dist.destroy_process_group()
    except BaseException:
        answers.put((rank, None, traceback.format_exc()))


def on_ranks(ranks, body, *arguments, timeout=240, backend="gloo"):
    """What body(*arguments) returns on each rank, all of which are processes of their own."""
    context = multiprocessing.get_context("forkserver")
    # No test file: one asks for the number of GPUs, and forks of a process that did cannot use them.
    context.set_forkserver_preload(["longca.parallel"])
    os.environ["LONGCA_THREADS"] = "1"
    answers = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=_run_rank, args=(body, rank, ranks, f"{folder}/store", arguments, answers, backend), daemon=True)
            for rank in range(ranks)]
        for process in processes:
            process.start()
        results = {}
        try:
            for _ in range(ranks):
                rank, result, failure = answers.get(timeout=timeout)
                assert failure is None, f"rank {rank}: {failure}"
                results[rank] = result
        finally:
            for process in processes:
                process.join(0 if len(results) < ranks else 30)
                process.kill()
    return [results[rank] for rank in range(ranks)]


def errors(results, wanted):
    """The largest error of each result, relative to the largest value; infinite where a value is NaN, which max() hides."""
    worst = ((x.double() - want).abs().max() / want.abs().max().clamp(min=1.0) for x, want in zip(results, wanted))
    return [torch.nan_to_num(x, nan=float("inf")).item() for x in worst]


def test_a_nan_is_an_error():
    good, bad = torch.zeros(3), torch.tensor([0.0, float("nan"), 0.0])
    assert max(errors([good, bad], [good, good])) == float("inf")


def attend(partition, inputs):
    """(o, dq, dk, dv) of the whole, by all ranks."""
    q, k, v, dout = (partition.shard(x.detach()) for x in inputs)
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    o = longca.parallel.attention(q, k, v, partition)
    gradients = torch.autograd.grad(o, (q, k, v), dout)
    return [partition.unshard(x.detach()) for x in (o, *gradients)]


def every_mask(scheme):
    worst = {}
    for name in MASKS:
        mask = make_mask(name)
        inputs = make_inputs()
        o, _, *gradients = expected(inputs, mask)
        worst[name] = max(errors(attend(Partition(mask, scheme=scheme, **SHAPE), inputs), (o, *gradients)))
    return worst


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_mask_on_four_ranks(scheme):
    for worst in on_ranks(4, every_mask, scheme):
        assert all(error < 3e-6 for error in worst.values()), worst


def test_every_mask_on_one_rank():
    worst, = on_ranks(1, every_mask, "magi")
    assert all(error < 3e-6 for error in worst.values()), worst


def softcaps(scheme):
    worst = 0.0
    for name in ("causal", "shared_question", "block_sparse"):
        mask = make_mask(name)
        inputs = make_inputs()
        partition = Partition(mask, scheme=scheme, **SHAPE)
        q, k, v, dout = (partition.shard(x.detach()) for x in inputs)
        q, k, v = (x.requires_grad_() for x in (q, k, v))
        o = longca.parallel.attention(q, k, v, partition, scale=0.4, softcap=2.0)
        results = [partition.unshard(x.detach()) for x in (o, *torch.autograd.grad(o, (q, k, v), dout))]
        wanted = expected(inputs, mask, scale=0.4, softcap=2.0)
        worst = max(worst, *errors(results, (wanted[0], *wanted[2:])))
    return worst


@pytest.mark.parametrize("scheme", ["magi", "ring_p2p", "ulysses"])
def test_scales_and_softcaps(scheme):
    assert all(worst < 3e-6 for worst in on_ranks(4, softcaps, scheme))


def sinks(scheme):
    worst = 0.0
    # Rows 0 to 39 see no key; rows 100 to 149 see keys of two slices.
    slices = longca.Mask.from_slices([(40, 150, 0, 90, "full"), (100, TOKENS, 100, TOKENS, "causal")], TOKENS)
    for mask in (slices, *(make_mask(name) for name in ("sliding_window", "shared_question", "block_sparse_variable"))):
        inputs, sink = make_inputs(), torch.tensor([-1.0, 0.5, 2.0, 4.0])
        partition = Partition(mask, scheme=scheme, **SHAPE)
        q, k, v, dout = (partition.shard(x.detach()) for x in inputs)
        q, k, v, own = (x.clone().requires_grad_() for x in (q, k, v, sink))
        o = longca.parallel.attention(q, k, v, partition, sink=own)
        *gradients, dsink = torch.autograd.grad(o, (q, k, v, own), dout)
        dist.all_reduce(dsink)
        results = [*(partition.unshard(x.detach()) for x in (o, *gradients)), dsink]
        wanted = expected(inputs, mask, sink=sink.requires_grad_())
        worst = max(worst, *errors(results, (wanted[0], *wanted[2:])))
    return worst


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_sink_counts_once_on_four_ranks(scheme):
    assert all(worst < 3e-6 for worst in on_ranks(4, sinks, scheme))


def odd_lengths():
    worst = 0.0
    for tokens in (1, 3, 5, 130):
        for shard in (None, "contiguous", "zigzag", "document_zigzag"):
            mask = longca.Mask.from_cu_seqlens([0, (tokens + 1) // 3, (tokens + 1) // 2, tokens])
            inputs = make_inputs(tokens)
            o, _, *gradients = expected(inputs, mask)
            partition = Partition(mask, scheme="ring_p2p", shard=shard, **SHAPE)
            worst = max(worst, *errors(attend(partition, inputs), (o, *gradients)))
    return worst


def test_any_length_also_fewer_tokens_than_ranks():
    assert all(worst < 3e-6 for worst in on_ranks(4, odd_lengths))


def layers_and_bfloat16():
    """Three layers whose backward passes come after all forward passes; gradients reach the inputs."""
    mask = make_mask("causal_document")
    partition = Partition(mask, **SHAPE)
    q, k, v, dout = make_inputs()

    def model(attention, q, k, v):
        for _ in range(3):
            q = q + attention(q.sin(), k, v)
        return q

    whole = torch.autograd.grad(model(lambda *x: longca.attention(*x, mask), q, k, v), (q, k, v), dout)
    own = [partition.shard(x.detach()).requires_grad_() for x in (q, k, v)]
    o = model(lambda *x: longca.parallel.attention(*x, partition), *own)
    gradients = torch.autograd.grad(o, own, partition.shard(dout))
    worst = max(errors([partition.unshard(x) for x in gradients], whole))
    half = [x.detach().bfloat16() for x in own]
    o = partition.unshard(longca.parallel.attention(*half, partition))
    single = longca.attention(*(x.detach().bfloat16() for x in (q, k, v)), mask)
    return worst, (o.float() - single.float()).abs().max().item()


def test_layers_and_bfloat16():
    for worst, half in on_ranks(4, layers_and_bfloat16):
        assert worst < 3e-6
        assert half < 3e-2


def shards():
    mask = make_mask("causal_document")
    partition = Partition(mask, **SHAPE)
    ids = partition.token_ids
    x = torch.arange(TOKENS * 3.0).view(TOKENS, 3).requires_grad_()
    assert torch.equal(partition.shard(x), x[ids])
    assert torch.equal(partition.shard(x.t(), dim=1), x.t()[:, ids])
    assert torch.equal(partition.position_ids, mask.position_ids[ids])
    whole = partition.unshard(partition.shard(x))
    assert torch.equal(whole, x)
    assert torch.equal(partition.unshard(partition.shard(x.t(), dim=1), dim=1), x.t())
    # Every rank asks for the sum of (rank + 1) · x: 1 + 2 + 3 + 4 times the own part.
    (whole * (partition.rank + 1)).sum().backward()
    wanted = torch.zeros_like(x)
    wanted[ids] = 10.0
    assert torch.equal(x.grad, wanted)
    return ids.tolist()


DTYPES_OF_SHARDS = (torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint64,
                    torch.float8_e4m3fn, torch.float8_e5m2, torch.float16, torch.bfloat16, torch.float64, torch.complex64)


def every_dtype():
    partition = Partition(make_mask("causal_document"), **SHAPE)
    for dtype in DTYPES_OF_SHARDS:
        for shape in ((TOKENS,), (TOKENS, 3), (TOKENS, 0)):
            x = torch.randint(0, 50, shape, generator=torch.Generator().manual_seed(0)).to(dtype)
            whole = partition.unshard(partition.shard(x))
            assert whole.dtype == dtype and whole.shape == x.shape
            assert whole.tolist() == x.tolist(), dtype


def test_shards_of_every_dtype_are_put_together():
    on_ranks(3, every_dtype)


def test_shards_hold_each_token_once():
    assert sorted(token for ids in on_ranks(4, shards) for token in ids) == list(range(TOKENS))


def refusal(make):
    begin = time.monotonic()
    try:
        make()
    except (TypeError, ValueError, NotImplementedError) as error:
        return str(error), time.monotonic() - begin
    return None, time.monotonic() - begin


def differing_groups():
    first, everybody = dist.new_group([0, 1]), dist.new_group([0, 1, 2, 3])
    sentence, seconds = refusal(lambda: Partition(make_mask("causal"), first if dist.get_rank() == 0 else everybody))
    return sentence, seconds


def test_a_group_that_differs_between_ranks_is_named():
    for rank, (sentence, seconds) in enumerate(on_ranks(4, differing_groups)):
        assert "makes a Partition over the ranks [0, 1" in sentence, (rank, sentence)
        assert "rank 0" in sentence and "[0, 1]" in sentence and "[0, 1, 2, 3]" in sentence
        assert seconds < longca.parallel.TIMEOUT_S / 4


def differing_arguments():
    rank = dist.get_rank()
    mask = make_mask("causal")
    said = [refusal(lambda: Partition(mask if rank != 2 else make_mask("full"), **SHAPE))[0]]
    dist.barrier()
    said.append(refusal(lambda: Partition(mask, scheme="magi" if rank != 1 else "ulysses", **SHAPE))[0])
    dist.barrier()
    groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    partition = Partition(mask, groups[rank % 2], **SHAPE)  # two groups side by side
    inputs = make_inputs()
    o, _, *gradients = expected(inputs, mask)
    return said, max(errors(attend(partition, inputs), (o, *gradients)))


def test_arguments_that_differ_between_ranks_are_named_and_the_next_partition_works():
    for (mask, scheme), worst in on_ranks(4, differing_arguments):
        assert "of another mask" in mask and "rank 2" in mask
        assert "scheme" in scheme and "'ulysses'" in scheme and "rank 1" in scheme
        assert worst < 3e-6


def refused_twice(differs):
    """Partitions that are refused on every rank, then right ones and their attention."""
    rank, mask, inputs = dist.get_rank(), make_mask("causal"), make_inputs()
    first = dist.new_group([0, 1])
    begin = time.monotonic()
    said = []
    for wrong in range(2):
        is_wrong = rank == wrong
        changed = {"scheme": {"scheme": "magic" if is_wrong else "magi"}, "heads": {"heads": (4, 2.5) if is_wrong else (4, 2)},
                   "mask": {"mask": "causal" if is_wrong else mask}, "group": {"group": first if is_wrong else None}}[differs]
        try:
            Partition(**{"mask": mask, **SHAPE, **changed})
            said.append(None)
        except (TypeError, ValueError) as error:
            said.append(str(error))
    o, _, *gradients = expected(inputs, mask)
    worst = 0.0
    for group in (None, first, None, None):
        if rank in dist.get_process_group_ranks(group or dist.group.WORLD):
            worst = max(worst, *errors(attend(Partition(mask, group, **SHAPE), inputs), (o, *gradients)))
    return said, worst, time.monotonic() - begin


@pytest.mark.parametrize("ranks, differs, reason", [
    (2, "scheme", "'magic'"), (3, "scheme", "'magic'"), (2, "heads", "heads = 2.5"), (2, "mask", "mask is a str"),
    (3, "group", "[0, 1]")])
def test_ranks_are_in_step_after_partitions_that_were_refused(ranks, differs, reason):
    for rank, (said, worst, seconds) in enumerate(on_ranks(ranks, refused_twice, differs)):
        for wrong, sentence in enumerate(said):
            assert sentence is not None and reason in sentence, (rank, wrong, sentence)
            assert rank == wrong or f"rank {wrong}" in sentence
        assert worst < 3e-6
        assert seconds < longca.parallel.TIMEOUT_S / 4


def late():
    """One rank comes after the others have given up; then a Partition that all make."""
    longca.parallel.TIMEOUT_S = 1.5
    mask = make_mask("causal")
    dist.barrier()
    time.sleep(3 if dist.get_rank() == 1 else 0)
    said, _ = refusal(lambda: Partition(mask, **SHAPE))
    dist.barrier()
    longca.parallel.TIMEOUT_S = 60.0
    return said, Partition(mask, **SHAPE).tokens


def test_a_rank_that_does_not_come_in_time_is_named_on_all_ranks():
    said, tokens = zip(*on_ranks(3, late))
    assert all("rank 1 did not make the Partition of rank" in sentence for sentence in said), said
    assert all(sentence.endswith("within 1.5 s") for sentence in said), said
    assert sum(tokens) == TOKENS


def in_another_order(store):
    """Partitions of some ranks; then, by another store and with each process as another rank, of some and of all."""
    longca.parallel.TIMEOUT_S = 5.0
    mask, rank = make_mask("causal"), dist.get_rank()
    first = dist.new_group([0, 1])
    for _ in range(3 if rank < 2 else 0):
        Partition(mask, first, **SHAPE)
    dist.barrier()
    dist.destroy_process_group()
    rank = 2 - rank
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=3)
    first = dist.new_group([0, 1])
    return [Partition(mask, group, **SHAPE).tokens for group in (first, None) if rank < 2 or group is None]


def test_partitions_are_counted_anew_where_ranks_are_in_another_order(tmp_path):
    some, everybody = zip(*((tokens[:-1], tokens[-1]) for tokens in on_ranks(3, in_another_order, tmp_path / "store")))
    assert sum(map(sum, some)) == sum(everybody) == TOKENS


def inference_first():
    mask, inputs = make_mask("causal_document"), make_inputs()
    with torch.device("meta"), torch.inference_mode():
        partition = Partition(mask, **SHAPE)
    with torch.inference_mode():
        longca.parallel.attention(*(partition.shard(x.detach()) for x in inputs[:3]), partition)
    assert not any(x.is_inference() for x in (partition.token_ids, partition.position_ids))
    x = torch.ones(TOKENS, 3, requires_grad=True)
    partition.shard(x).sum().backward()
    o, _, *gradients = expected(inputs, mask)
    return max(errors(attend(partition, inputs), (o, *gradients)))


def test_a_partition_made_in_inference_mode_can_be_trained_with():
    assert all(worst < 3e-6 for worst in on_ranks(2, inference_first))


def forward_mode():
    partition = Partition(make_mask("causal"), **SHAPE)
    q, k, v, _ = (partition.shard(x.detach()) for x in make_inputs())
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q, torch.ones_like(q))
        with pytest.raises(RuntimeError, match="longca.parallel.attention has no forward-mode derivative"):
            longca.parallel.attention(dual, k, v, partition)


def test_forward_mode_derivatives_are_refused():
    on_ranks(2, forward_mode)


def under_torch_func():
    partition = Partition(make_mask("causal"), **SHAPE)
    q, k, v, _ = (partition.shard(x.detach()) for x in make_inputs())

    def attend(x):
        return longca.parallel.attention(x, k, v, partition).sum()

    functions = (("attention", attend), ("Partition.unshard", lambda x: partition.unshard(x).sum()))
    for name, function in functions:
        sentence = f"longca.parallel.{name} does not run under torch.func's transforms: use torch.autograd.grad or backward"
        for transform in (torch.func.grad, torch.func.jacrev, lambda f: lambda x: torch.func.vjp(f, x),
                          lambda f: lambda x: torch.func.jvp(f, (x,), (x,))):
            with pytest.raises(RuntimeError, match=sentence):
                transform(function)(q)


def test_transforms_of_torch_func_are_refused():
    on_ranks(2, under_torch_func)


def compiled():
    """(graphs, recompilations that were too many, whether all was right) of a step that is compiled once for many partitions."""
    def step(x, dout, partition):
        own = partition.shard(x * 2)
        q, k, v = own.split([4, 2, 2], dim=1)
        o = longca.parallel.attention(q, k, v, partition)
        return (partition.unshard(o * 0.5) * dout).sum()

    def make_and_attend(x, first):
        partition = Partition(longca.Mask.from_cu_seqlens([0, first, 64]), heads=(4, 2), dim=16)
        return longca.parallel.attention(*partition.shard(x).split([4, 2, 2], dim=1), partition) + 1

    torch._dynamo.utils.counters.clear()
    x, dout = (torch.randn(64, n, 16, generator=torch.Generator().manual_seed(n)) for n in (8, 4))
    x.requires_grad_()
    compiled_step = torch.compile(step, backend="aot_eager")
    compiled_make = torch.compile(make_and_attend, backend="aot_eager")
    right = True
    for first in range(1, 16):
        partition = Partition(longca.Mask.from_cu_seqlens([0, first, 64]), heads=(4, 2), dim=16)
        got, wanted = (torch.autograd.grad(f(x, dout, partition), x)[0] for f in (compiled_step, step))
        right = right and torch.allclose(got, wanted, rtol=1e-5, atol=1e-6)
        right = right and torch.allclose(compiled_make(x, first), make_and_attend(x, first), rtol=1e-5, atol=1e-6)
    counters = torch._dynamo.utils.counters
    return counters["stats"]["unique_graphs"], len(counters["recompile_limit"]), right


def test_a_compiled_function_is_compiled_once_for_many_partitions():
    for graphs, limits, right in on_ranks(2, compiled):
        # Before and after what breaks it, of the step and of the other, each at most once more for sizes that differ.
        assert graphs <= 8 and limits == 0 and right, (graphs, limits, right)


def twice():
    partition = Partition(make_mask("causal"), **SHAPE)
    q, k, v, _ = (partition.shard(x.detach()).requires_grad_() for x in make_inputs())
    dq, = torch.autograd.grad(longca.parallel.attention(q, k, v, partition).sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiable once"):
        dq.square().sum().backward()


def test_a_second_derivative_is_refused():
    on_ranks(2, twice)


def saved_as_halves():
    partition = Partition(make_mask("causal"), **SHAPE)
    q, k, v, dout = (partition.shard(x.detach()).requires_grad_() for x in make_inputs())
    sink = torch.zeros(4, requires_grad=True)
    for name, shape in (("q", q.shape), ("sink", sink.shape)):
        def pack(x, shape=shape):
            return x.half() if x.shape == shape else x

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            o = longca.parallel.attention(q, k, v, partition, sink=sink)
        with pytest.raises(ValueError, match=f"{name} has dtype torch.float16, torch.float32 was saved"):
            o.backward(dout)


def test_saved_tensors_of_another_dtype_are_refused():
    on_ranks(2, saved_as_halves)


def copied():
    kept = Partition(make_mask("causal"), **SHAPE)
    partition = copy.deepcopy(copy.copy(kept))
    assert partition is kept
    with pytest.raises(TypeError, match="Partition belongs to this process"):
        pickle.dumps(kept)


def test_a_partition_is_shared_by_its_copies_and_not_pickled():
    on_ranks(2, copied)


def mixed_dtypes():
    partition = Partition(make_mask("causal"), **SHAPE)
    q, k, v, _ = (partition.shard(x.detach()) for x in make_inputs())
    with torch.autocast("cpu", torch.bfloat16):
        o = longca.parallel.attention(q, k, v.bfloat16(), partition)
    return torch.equal(o, longca.parallel.attention(q.bfloat16(), k.bfloat16(), v.bfloat16(), partition))


def test_autocast_casts_tensors_of_several_dtypes():
    assert all(on_ranks(2, mixed_dtypes))


def bad_input():
    mask = make_mask("causal")
    partition = Partition(mask, **SHAPE)
    q, k, v, _ = (x.detach() for x in make_inputs(partition.tokens))
    attention = longca.parallel.attention
    said = [refusal(f)[0] for f in (
        lambda: attention(q[1:], k, v, partition),
        lambda: attention(q[:, :3], k, v, partition),
        lambda: attention(q, k.double(), v, partition),
        lambda: attention(q.double(), k.double(), v.double(), partition),
        lambda: attention(q, k, v[..., :16], partition),
        lambda: attention(q[..., :16], k[..., :16], v, partition),
        lambda: attention(q, k, v[:, :1], partition),
        lambda: attention(q, k, v, partition, softcap=-1.0),
        lambda: attention(q, k, v, partition, sink=torch.zeros(3)),
        lambda: partition.shard(torch.zeros(TOKENS + 1)),
        lambda: partition.unshard(torch.zeros(partition.tokens + 1)),
        lambda: Partition(mask, scheme="magic"),
        lambda: Partition(mask, scheme="ulysses", heads=(3, 3)),
        lambda: Partition(mask, shard="diagonal"),
        lambda: Partition(mask, shard=""),
        lambda: Partition(mask, device=""),
        lambda: Partition(mask, device=["cpu"]),
        lambda: partition.shard(torch.zeros(TOKENS), 1),
        lambda: Partition(mask, shard="zig"),
        lambda: Partition(mask, shard="zigzak"),
        lambda: attention(q, k, v, partition, scale=torch.tensor(0.5, requires_grad=True)),
        lambda: attention(q, k, v, partition, softcap=torch.tensor(0.5, requires_grad=True)),
        lambda: partition.shard(torch.zeros(TOKENS), "a"),
        lambda: partition.unshard(torch.zeros(partition.tokens), 1.0),
    )]
    return said


def test_what_does_not_fit_is_named():
    shards = "contiguous, zigzag, document_zigzag, balanced, document_balanced"
    no_scheme = "no scheme of context parallelism takes a v of another dimension than q and k"
    wanted = ("owns", "q has 3 heads, k has 2", "k has dtype", "float64",
              f"q and k have head dimension 24, v has 16: {no_scheme}",
              f"q and k have head dimension 16, v has 24: {no_scheme}", "of one shape", "softcap = -1",
              "one logit per query head is [4]", "x has 204 tokens, the mask has 203", "owns", "'magi'",
              "; they are those of the argument heads = (3, 3)",
              "unknown shard", "unknown shard", "device = ''", "device = ['cpu']", "dim = 1: x has 1 dimensions",
              f"unknown shard 'zig'; there are {shards}", f"unknown shard 'zigzak' (did you mean 'zigzag'?); there are {shards}",
              "scale requires a gradient, and longca gives it none: multiply q by it",
              "softcap requires a gradient, and longca gives it none", "dim = 'a': a whole number", "dim = 1.0: a whole number")
    for said in on_ranks(4, bad_input):
        assert len(said) == len(wanted)
        assert [part for part, sentence in zip(wanted, said) if sentence is None or part not in sentence] == [], said


def gpus_that_are_not_there():
    try:
        Gpus.of(None, None)
    except RuntimeError as error:
        return str(error)
    return "nothing refused"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there are GPUs")
def test_gpus_that_are_not_there_are_named_on_every_rank():
    assert all("CUDA" in sentence for sentence in on_ranks(4, gpus_that_are_not_there))


def small_messages():
    """Numbers round a ring of ranks, twice."""
    messages = StoreMessages(None, "nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    seen = []
    for turn in range(2):
        out, into = (ctypes.c_int64 * 1)(10 * turn + rank), (ctypes.c_int64 * 1)()
        send = Message((rank + 1) % ranks, 0, ctypes.addressof(out), 8)
        receive = Message((rank - 1) % ranks, 0, ctypes.addressof(into), 8)
        assert messages._start(None, 0, ctypes.pointer(receive), 1, ctypes.pointer(send), 1) == 0
        assert messages._finish(None, 0) == 0
        seen.append(into[0])
    short = Message((rank + 1) % ranks, 0, ctypes.addressof(out), 4)
    assert messages._start(None, 0, ctypes.pointer(receive), 1, ctypes.pointer(short), 1) == 0
    assert messages._finish(None, 0) == 1
    return seen, str(messages._failure)


def test_small_messages_by_the_store():
    for rank, (seen, failure) in enumerate(on_ranks(4, small_messages)):
        assert seen == [(rank - 1) % 4, 10 + (rank - 1) % 4]
        assert "4 bytes, 8 were expected" in failure


def numbers_sent(transports, monkeypatch):
    """What the second of two ranks, both here, reads of the first by new messages over each transport, the first of which it
    never reads."""
    store = dist.HashStore()
    monkeypatch.setattr(_messages, "_store", lambda: store)
    monkeypatch.setattr(dist, "get_process_group_ranks", lambda group: [0, 1])
    both = []
    for number, transport in enumerate(transports):
        both = []
        for rank in (0, 1):
            monkeypatch.setattr(dist, "get_rank", lambda rank=rank: rank)
            both.append(StoreMessages("group", transport))
        out = (ctypes.c_int64 * 1)(number)
        both[0]._begin(0, [], [Message(1, 0, ctypes.addressof(out), 8)])
    into = (ctypes.c_int64 * 1)(-1)
    both[1]._begin(0, [Message(0, 0, ctypes.addressof(into), 8)], [])
    both[1]._end(0)
    return into[0]


@pytest.mark.parametrize("transports", [(None, None), ("nccl", "nccl", "nccl"), ("nccl", "peer"), ("peer", None)])
def test_messages_of_groups_of_gpus_are_not_taken_for_those_of_others(transports, monkeypatch):
    """As of one that failed, or of the same ranks over another transport."""
    assert numbers_sent(transports, monkeypatch) == len(transports) - 1


def interrupted():
    """What becomes of an exception that a signal handler raises while a message is started."""
    messages = StoreMessages(None, None)
    caught = []
    for raised in (KeyboardInterrupt, SystemExit, ValueError):

        def begin(group, receives, sends, raised=raised):
            raise raised

        messages._begin = begin
        message = ctypes.pointer(Message())

        def library(message=message):
            if messages.functions.start(None, 0, message, 0, message, 0) != 0:
                raise RuntimeError("the caller's transport could not start messages")

        try:
            messages.run(library)
        except BaseException as failure:
            caught.append(type(failure).__name__)
    return caught


def test_interrupts_come_out_of_the_library():
    assert on_ranks(1, interrupted) == [["KeyboardInterrupt", "SystemExit", "ValueError"]]


def caught_failure():
    """Whether a local of who called is left once what a callback raised has been caught."""
    messages = StoreMessages(None, None)

    def begin(group, receives, sends):
        raise RuntimeError("no messages")

    def library():
        message = ctypes.pointer(Message())
        if messages.functions.start(None, 0, message, 0, message, 0) != 0:
            raise RuntimeError("the caller's transport could not start messages")

    def call():
        local = torch.zeros(1)
        seen.append(weakref.ref(local))
        messages.run(library)

    messages._begin = begin
    seen = []
    with contextlib.suppress(RuntimeError):
        call()
    gc.collect()
    return seen[0]() is None


def test_a_failure_that_was_caught_keeps_nothing():
    assert on_ranks(1, caught_failure) == [True]


def gradients_of_replicas():
    """The largest error of gradients by DDP over two replicas of two ranks each, which have a mask of their own, beside
    those of one process."""
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "cp"))
    masks = [longca.Mask.from_cu_seqlens([0, 40, 96]), longca.Mask.from_cu_seqlens([0, 10, 96])]
    inputs = [torch.randn(96, 32, generator=torch.Generator().manual_seed(i)) for i in range(2)]

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.into, self.out = torch.nn.Linear(32, 8 * 16), torch.nn.Linear(4 * 16, 8)

        def forward(self, x, attend):
            q, k, v = self.into(x).unflatten(-1, (-1, 16)).split([4, 2, 2], dim=1)
            return self.out(attend(q, k, v).flatten(1))

    model, alone = torch.nn.parallel.DistributedDataParallel(Model()), Model()
    own = mesh["dp"].get_local_rank()
    partition = Partition(masks[own], mesh["cp"].get_group(), heads=(4, 2), dim=16)
    o = model(partition.shard(inputs[own]), lambda q, k, v: longca.parallel.attention(q, k, v, partition))
    (o.square().sum() / 192 * dist.get_world_size()).backward()  # DDP takes the mean over all ranks
    for x, mask in zip(inputs, masks):
        (alone(x, lambda q, k, v, mask=mask: longca.attention(q, k, v, mask)).square().sum() / 192).backward()
    return max(errors([p.grad for p in model.parameters()], [p.grad.double() for p in alone.parameters()]))


def test_replicas_of_ranks_train_by_ddp():
    """As docs/guide/pytorch.md has it."""
    assert max(on_ranks(4, gradients_of_replicas)) < 1e-5
