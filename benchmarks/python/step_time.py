"""What autograd adds on the device to the kernels of longca.attention: a step beside `longca bench`'s times of its passes.

    LONGCA_LIBRARY=build/release/apps/capi/liblongca.so PYTHONPATH=python \\
        python3 benchmarks/python/step_time.py --longca build/release/apps/longca/longca [--tokens 8192,32768]

A step is the forward pass of longca.attention and the backward pass through autograd, bfloat16, 64:8 heads, 128 dimensions. ms
of the device from before the first call to behind the second, the host ahead of it, as in a training loop; each repetition
after a pause of a millisecond and a write of 256 MB, as `longca bench` times its calls (mode burst). Both in turns, a process
of `longca bench` a round; medians over rounds. `adds` is what is left of the step beside the two passes.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import torch

import longca

HEADS_Q, HEADS_K, DIM = 64, 8, 128
REPETITIONS = 30
WARM_UP = 10
FLUSHED_BYTES = 256 << 20
HEAD_START = 2_000_000  # cycles that the device waits, so that the host is ahead of it


def step_ms(mask, flushed):
    """The median time of a step."""
    rows = [torch.randn(mask.tokens_q, heads, DIM, device="cuda", dtype=torch.bfloat16)
            for heads in (HEADS_Q, HEADS_K, HEADS_K, HEADS_Q)]
    inputs, dout = [x.requires_grad_() for x in rows[:3]], rows[3]
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for i in range(WARM_UP + REPETITIONS):
        time.sleep(1e-3)
        flushed.zero_()
        torch.cuda._sleep(HEAD_START)
        begin.record()
        o = longca.attention(*inputs, mask)
        torch.autograd.grad(o, inputs, dout)
        end.record()
        torch.cuda.synchronize()
        if i >= WARM_UP:
            times.append(begin.elapsed_time(end))
    return statistics.median(times)


def passes_ms(program, name, tokens, drawn):
    """Time of each pass by `longca bench`."""
    axes = {"kernel": "slice", "mask": name, "tokens": tokens, "heads": f"{HEADS_Q}:{HEADS_K}", "dim": DIM, "pass":
            "forward,backward", "dtype": "bfloat16", "device": "cuda", "mode": "burst", **drawn}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "passes.jsonl"
        command = [program, "bench", *(x for axis, value in axes.items() for x in ("-a", f"{axis}={value}")), "--quiet",
                   "--time-limit", "0.2", "--require-ok", "--out", out]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        cells = map(json.loads, out.read_text().splitlines())
        return {cell["case"]["pass"]: cell["metrics"]["time_ms"] for cell in cells}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--longca", required=True, help="the program")
    parser.add_argument("--tokens", default="8192,32768")
    parser.add_argument("--mask", default="causal_document")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    drawn = {"lengths": "prolong64k", "seed": 42} if "document" in options.mask else {}
    flushed = torch.empty(FLUSHED_BYTES, dtype=torch.uint8, device="cuda")
    print(f"{'mask':<20}{'tokens':>8}{'forward':>10}{'backward':>10}{'step':>10}{'adds':>10}")
    for tokens in map(int, options.tokens.split(",")):
        mask = longca.Mask(options.mask, tokens, **drawn)
        passes, steps = [], []
        for _ in range(options.rounds):
            passes.append(passes_ms(options.longca, options.mask, tokens, drawn))
            steps.append(step_ms(mask, flushed))
        forward, backward = (statistics.median(x[name] for x in passes) for name in ("forward", "backward"))
        step = statistics.median(steps)
        adds = step - forward - backward
        print(f"{options.mask:<20}{tokens:>8}{forward:>7.4f} ms{backward:>7.4f} ms{step:>7.4f} ms{1e3 * adds:>7.1f} µs"
              f" {adds / step:+.1%}", flush=True)


if __name__ == "__main__":
    main()
