"""What a mask of its own costs the host of each rank in a training step: longca.parallel's Partition, and its plan.

    torchrun --nproc-per-node 2 benchmarks/python/partition_time.py [--tokens 8192,65536] [--schemes magi,ring_p2p,ulysses]

Each step draws other documents (causal_document, prolong64k). ms of the host on rank 0, medians and the range over steps after
the first three: `mask`, drawing them; `partition`, the Partition, on which all ranks have to agree; and on GPUs, if there are
any, `plan`, what the host takes longer for the first attention of a Partition than for the second. They are idle at the start: a
plan waits for what they have to do.
"""

import argparse
import os
import statistics
import time

import torch
import torch.distributed as dist

import longca
import longca.parallel

DIM = 128
WARM_UP = 3


def step_times(tokens, heads, scheme, device, seed):
    """Seconds of each part of a step."""
    begin = time.perf_counter()
    mask = longca.Mask("causal_document", tokens, lengths="prolong64k", seed=seed)
    times = {"mask": time.perf_counter() - begin}
    dist.barrier()
    begin = time.perf_counter()
    partition = longca.parallel.Partition(mask, scheme=scheme, heads=heads, dim=DIM, device=device)
    times["partition"] = time.perf_counter() - begin
    q, k, v = (torch.zeros(partition.tokens, count, DIM, device=device, dtype=torch.bfloat16, requires_grad=True)
               for count in (heads[0], heads[1], heads[1]))
    if device == "cuda":
        calls = []
        for _ in range(2):
            torch.cuda.synchronize()
            dist.barrier()
            begin = time.perf_counter()
            longca.parallel.attention(q, k, v, partition)
            calls.append(time.perf_counter() - begin)
        torch.cuda.synchronize()
        times["plan"] = calls[0] - calls[1]
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", default="8192,65536", help="of a sequence, which all ranks share")
    parser.add_argument("--heads", default="64:8")
    parser.add_argument("--schemes", default="magi,ring_p2p,ulysses")
    parser.add_argument("--steps", type=int, default=15)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if device == "cuda" else "gloo")
    heads = tuple(map(int, options.heads.split(":")))
    for scheme in options.schemes.split(","):
        for tokens in map(int, options.tokens.split(",")):
            steps = [step_times(tokens, heads, scheme, device, seed) for seed in range(WARM_UP + options.steps)][WARM_UP:]
            if dist.get_rank() > 0:
                continue
            print(f"{scheme:15} {tokens:8} tokens over {dist.get_world_size()}", end="")
            for part in steps[0]:
                ms = [1e3 * step[part] for step in steps]
                print(f"   {part} {statistics.median(ms):.2f} ({min(ms):.2f} to {max(ms):.2f}) ms", end="")
            print(flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
