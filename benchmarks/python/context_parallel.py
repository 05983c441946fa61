"""Attention over GPUs in a training loop: longca.parallel beside PyTorch's context_parallel.

    torchrun --nproc-per-node 2 benchmarks/python/context_parallel.py [--tokens 8192,32768] [--heads 64:64]

Each repetition is what a layer does: q, k and v come from a projection, autograd runs attention forward and backward. ms of
the slowest rank from device events around the attention alone, medians over repetitions, both ways in turns; TFLOP/s per GPU
by 4 · area · heads · dim, backward 2.5 times that. Documents of causal_document are drawn from prolong64k, which
context_parallel has no way to take. --out FILE.csv appends a row per way, mask and length, with the GPU and the versions that ran.
"""

import argparse
import csv
import os
import statistics

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import longca
import longca.parallel

DIM = 128
HEAD_START = 6_000_000  # cycles that the device waits, so that the host is ahead of it as in a training loop


class Timed:
    """Device times of a call and of its backward pass."""

    def __init__(self):
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
        self.flag = torch.zeros(1, device="cuda")

    def line_up(self):
        """Lets the host get ahead, and then all devices begin together."""
        torch.cuda._sleep(HEAD_START)
        dist.all_reduce(self.flag)

    def run(self, attend, inputs, dout):
        before, after, begin, end = self.events
        torch.cuda.synchronize()
        self.line_up()
        before.record()
        o = attend(*inputs)
        after.record()
        self.line_up()
        begin.record()
        torch.autograd.grad(o, inputs, dout)
        end.record()
        torch.cuda.synchronize()
        return before.elapsed_time(after), begin.elapsed_time(end)


def projected(tokens, heads, generator):
    """q, k, v of a linear layer, and a gradient of o: [tokens, heads, dim]."""
    heads_q, heads_k = heads
    x = torch.randn(tokens, 512, generator=generator, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn((heads_q + 2 * heads_k) * DIM, 512, generator=generator, device="cuda", dtype=torch.bfloat16) / 512**0.5
    q, k, v = (x @ weight.T).unflatten(1, (-1, DIM)).split([heads_q, heads_k, heads_k], dim=1)
    # Contiguous, as after RoPE.
    return [x.detach().contiguous().requires_grad_() for x in (q, k, v)], torch.randn_like(q).contiguous()


def by_longca(mask, heads, options):
    partition = longca.parallel.Partition(mask, scheme=options.scheme, heads=heads, dim=DIM, transport=options.transport)
    generator = torch.Generator("cuda").manual_seed(dist.get_rank())
    inputs, dout = projected(partition.tokens, heads, generator)
    timed = Timed()
    return lambda: timed.run(lambda *x: longca.parallel.attention(*x, partition), inputs, dout)


def by_torch(mask, heads, backend):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel

    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    generator = torch.Generator("cuda").manual_seed(0)
    whole, dout = projected(mask.tokens_q, heads, generator)
    tensors = [x.detach().transpose(0, 1)[None].contiguous() for x in (*whole, dout)]
    timed = Timed()
    causal = mask.area < mask.tokens_q**2

    def attend(q, k, v):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads[0] != heads[1])

    def repeat():
        buffers = [x.clone() for x in tensors]
        with context_parallel(mesh, buffers=buffers, buffer_seq_dims=[2] * 4):
            inputs, dout = [x.requires_grad_() for x in buffers[:3]], buffers[3]
            times = timed.run(attend, inputs, dout)
            for x in inputs:
                x.requires_grad_(False)  # they get their whole shape back
            return times

    return repeat


def medians(ways, repetitions):
    """(forward, backward) ms of each way, of the slowest rank."""
    times = {name: [] for name in ways}
    for i in range(repetitions + 3):
        for name, repeat in ways.items():
            both = torch.tensor(repeat(), device="cuda")
            dist.all_reduce(both, dist.ReduceOp.MAX)
            if i >= 3:
                times[name].append(both.tolist())
    return {name: [statistics.median(t) for t in zip(*pairs)] for name, pairs in times.items()}


def append_row(path, row):
    with open(path, "a", newline="") as out:
        table = csv.DictWriter(out, row, lineterminator="\n")
        if out.tell() == 0:
            table.writeheader()
        table.writerow(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", default="8192,32768", help="of each GPU")
    parser.add_argument("--heads", default="64:64")
    parser.add_argument("--masks", default="causal,causal_document")
    parser.add_argument("--scheme", default="magi", choices=longca.parallel.SCHEMES)
    parser.add_argument("--transport", default=None, choices=longca.parallel.TRANSPORTS)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--only-longca", action="store_true")
    parser.add_argument("--out")
    options = parser.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl")
    heads = tuple(map(int, options.heads.split(":")))
    backends = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
    for tokens in map(int, options.tokens.split(",")):
        for name in options.masks.split(","):
            drawn = {"lengths": "prolong64k", "seed": 42} if "document" in name else {}
            mask = longca.Mask(name, tokens * dist.get_world_size(), **drawn)
            ways = {"longca": by_longca(mask, heads, options)}
            if name in ("full", "causal") and not options.only_longca:
                ways |= {f"torch {key}": by_torch(mask, heads, backend) for key, backend in backends.items()}
            for way, pair in medians(ways, options.repetitions).items():
                if dist.get_rank() > 0:
                    continue
                work = 4e-9 * mask.area * heads[0] * DIM / dist.get_world_size()
                rates = [work * factor / ms for factor, ms in zip((1, 2.5), pair)]
                print(f"{name:16} {tokens:6} a GPU  {way:12} forward {pair[0]:8.3f} ms {rates[0]:6.1f}   "
                      f"backward {pair[1]:8.3f} ms {rates[1]:6.1f} TFLOP/s", flush=True)
                if options.out:
                    append_row(options.out, {
                        "mask": name, "tokens_per_gpu": tokens, "heads": options.heads, "way": way,
                        "forward_ms": f"{pair[0]:.4f}", "backward_ms": f"{pair[1]:.4f}", "scheme": options.scheme,
                        "gpus": dist.get_world_size(), "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
                        "longca": longca.__version__})
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
