"""longca.parallel over GPUs, one a rank, against float64 with the explicit mask."""

import gc

import parallel_test
import pytest
import torch
import torch.distributed as dist
from attention_test import TOLERANCE
from conftest import MASKS, expected, make_inputs, make_mask
from parallel_test import errors, on_ranks, refusal

import longca
import longca.parallel
from longca.parallel import SCHEMES, TRANSPORTS, Partition

GPUS = torch.cuda.device_count()
pytestmark = pytest.mark.skipif(GPUS == 0, reason="there is no GPU")
several = pytest.mark.skipif(GPUS < 2, reason="there are not two GPUs")

DIM = 128
SHAPE = {"heads": (4, 2), "dim": DIM}
LIMIT = TOLERANCE[torch.bfloat16]


def on_gpus(ranks, body, *arguments):
    return on_ranks(ranks, body, *arguments, backend="cpu:gloo,cuda:nccl")


def draw(*arguments, **options):
    """Inputs on this rank's GPU."""
    torch.cuda.set_device(dist.get_rank())
    return [x.detach().cuda() for x in make_inputs(*arguments, dim=DIM, dtype=torch.bfloat16, **options)]


def attend(partition, inputs):
    """(o, dq, dk, dv) of the whole, by all ranks, on the CPU."""
    return [x.cpu() for x in parallel_test.attend(partition, inputs)]


def every_mask(scheme, transport):
    worst = {}
    for name in MASKS:
        mask = make_mask(name)
        o, _, *gradients = expected(make_inputs(dim=DIM, dtype=torch.bfloat16), mask)
        partition = Partition(mask, scheme=scheme, transport=transport, **SHAPE)
        worst[name] = max(errors(attend(partition, draw()), (o, *gradients)))
        assert partition.transport in ((transport,) if transport else TRANSPORTS)
    return worst


@several
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_mask_on_all_gpus(scheme, transport):
    for worst in on_gpus(GPUS, every_mask, scheme, transport):
        assert all(error < LIMIT for error in worst.values()), worst


def test_every_mask_on_one_gpu():
    worst, = on_gpus(1, every_mask, "magi", None)
    assert all(error < LIMIT for error in worst.values()), worst


def sinks(scheme, transport):
    worst = 0.0
    for name in ("sliding_window", "shared_question", "causal_document"):
        mask, sink = make_mask(name), torch.tensor([-1.0, 0.5, 2.0, 4.0])
        inputs = draw()
        partition = Partition(mask, scheme=scheme, transport=transport, **SHAPE)
        q, k, v, dout = (partition.shard(x.detach()) for x in inputs)
        q, k, v, own = (x.clone().requires_grad_() for x in (q, k, v, sink.cuda()))
        o = longca.parallel.attention(q, k, v, partition, sink=own)
        *gradients, dsink = torch.autograd.grad(o, (q, k, v, own), dout)
        dist.all_reduce(dsink)
        results = [*(partition.unshard(x.detach()) for x in (o, *gradients)), dsink]
        wanted = expected(make_inputs(dim=DIM, dtype=torch.bfloat16), mask, sink=sink.requires_grad_())
        worst = max(worst, *errors([x.cpu() for x in results], (wanted[0], *wanted[2:])))
    return worst


@several
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("scheme", ["magi", "ring_p2p", "ulysses"])
def test_a_sink_counts_once(scheme, transport):
    assert all(worst < LIMIT for worst in on_gpus(GPUS, sinks, scheme, transport))


def layers():
    """Four layers by two partitions in turns, on a stream of their own, before the first backward pass."""
    masks = [make_mask(name) for name in ("causal_document", "shared_question")]
    partitions = [Partition(mask, **SHAPE) for mask in masks]
    q, k, v, dout = (x.requires_grad_() for x in draw())

    def whole(mask):
        return lambda *x: longca.attention(*x, mask)

    def shared(partition):  # partitions shard tokens differently: each layer's result is gathered
        return lambda *x: partition.unshard(longca.parallel.attention(*(partition.shard(y) for y in x), partition))

    def model(attentions):
        x = q
        for i in range(4):
            x = x + attentions[i % 2](x.sin(), k, v)
        return x

    o = model([whole(mask) for mask in masks])
    wanted = [x.detach().cpu() for x in (o, *torch.autograd.grad(o, (q, k, v), dout))]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    worst = 0.0
    for _ in range(3):
        with torch.cuda.stream(stream):
            o = model([shared(partition) for partition in partitions])
            # Each rank asks for its share of the loss: the ranks' gradients add up to the whole.
            gradients = torch.autograd.grad(o, (q, k, v), dout / dist.get_world_size())
            for x in gradients:
                dist.all_reduce(x)
        stream.synchronize()
        worst = max(worst, *errors([x.detach().cpu() for x in (o, *gradients)], wanted))
    return worst


@several
def test_layers_of_two_partitions_on_a_stream():
    for worst in on_gpus(GPUS, layers):
        assert worst < 4 * LIMIT, worst


def many_masks():
    """A partition for each step of a training loop: ended plans give their memory back."""
    worst, used = 0.0, []
    for step in range(20):
        tokens = 300 + 7 * step
        mask = longca.Mask("causal_document", tokens, lengths=[tokens // 3, tokens - tokens // 3])
        inputs = draw(tokens)
        o, _, *gradients = expected(make_inputs(tokens, dim=DIM, dtype=torch.bfloat16), mask)
        worst = max(worst, *errors(attend(Partition(mask, **SHAPE), inputs), (o, *gradients)))
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info()
        used.append(total - free)
    return worst, used


def test_a_mask_for_each_step():
    for worst, used in on_gpus(GPUS, many_masks):
        assert worst < LIMIT
        assert used[-1] <= used[4] + (16 << 20), used


def left_behind():
    """What a rank that is busy elsewhere still needs outlives the other's Partition."""
    mask = make_mask("causal")
    inputs = draw()
    o, _, *gradients = expected(make_inputs(dim=DIM, dtype=torch.bfloat16), mask)
    worst = 0.0
    for turn in range(6):
        if dist.get_rank() == turn % dist.get_world_size():
            torch.cuda._sleep(100_000_000)
        worst = max(worst, *errors(attend(Partition(mask, scheme="ring_p2p", **SHAPE), inputs), (o, *gradients)))
        gc.collect()
    return worst


@several
def test_a_partition_ends_while_another_rank_is_late():
    assert all(worst < LIMIT for worst in on_gpus(GPUS, left_behind))


def bad_input():
    mask = make_mask("causal")
    partition = Partition(mask, **SHAPE)
    q, k, v, _ = (partition.shard(x) for x in draw())
    attention = longca.parallel.attention
    return [refusal(f)[0] for f in (
        lambda: attention(q, k.cpu(), v, partition),
        lambda: attention(q[1:], k, v, partition),
        lambda: attention(q.double(), k.double(), v.double(), partition),
        lambda: attention(q.float(), k.float(), v.float(), partition),
        lambda: Partition(mask, transport="ucx"),
    )]


def test_what_does_not_fit_is_named():
    wanted = "on one device", "owns", "float64", "float32", "'ucx'"
    for said in on_gpus(GPUS, bad_input):
        assert all(sentence and part in sentence for part, sentence in zip(wanted, said)), said
