"""A plug-in kernel that wastes $LONGCA_WASTE of its own time, to see whether `longca compare` finds that:

    printf '#!/bin/sh\\nLONGCA_WASTE=0.02 exec /path/to/longca "$@"\\n' > wasteful; chmod +x wasteful
    longca compare --build ./wasteful benchmarks/compare/wasteful.toml --plugin benchmarks/compare/wasteful.py --rounds 7

compares the wasteful program (BASE) with this one (NEW): every cell is to be `faster`, 1 / 1.02. Full and causal masks by
PyTorch's flash attention on a GPU, forward. Each plan times three calls, and every call of it is followed by a kernel that spins
for the wasted share, or for a single cycle.
"""

import os
import statistics

import torch

WASTE = float(os.environ.get("LONGCA_WASTE", "0"))

capabilities = {
    "name": "wasteful",
    "description": "PyTorch's flash attention and a share of its time spent on nothing",
    "device": "cuda",
    "dtypes": ["bfloat16"],
    "backward": False,
    "block_masks": False,
}


def supports(problem, mask):
    documents = mask.documents
    return None if documents and len(documents[0]) == 2 else "wasteful has full and causal masks"


def plan(problem, mask):
    return Plan(problem, mask)


class Plan:
    def __init__(self, problem, mask):
        self.scale = problem.scale
        self.causal = mask.documents[1]
        self.cycles = None  # of waste

    def attend(self, q, k, v):
        q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
        return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, self.causal, scale=self.scale)[:2]

    def wasted_cycles(self, tensors):
        """Of the SM's clock as it is now, which _sleep counts too."""
        if WASTE == 0:
            return 1
        begin, middle, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        spin, times = 1_000_000, []
        for _ in range(3):
            begin.record()
            self.attend(*tensors)
            middle.record()
            torch.cuda._sleep(spin)
            end.record()
            end.synchronize()
            times.append(spin * begin.elapsed_time(middle) / middle.elapsed_time(end))
        return max(1, round(WASTE * statistics.median(times)))

    def forward(self, call):
        with torch.cuda.stream(torch.cuda.ExternalStream(call.stream)):
            q, k, v, o, lse = map(torch.from_dlpack, (call.q, call.k, call.v, call.o, call.lse))
            if self.cycles is None:
                self.cycles = self.wasted_cycles((q, k, v))
            result, sums = self.attend(q, k, v)
            o.copy_(result[0].transpose(0, 1))
            lse.copy_(sums[0])
            torch.cuda._sleep(self.cycles)
