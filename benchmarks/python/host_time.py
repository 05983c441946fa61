"""What a call of longca.attention costs the host beside its computation, on a plan that is kept.

    LONGCA_THREADS=1 LONGCA_LIBRARY=build/release/apps/capi/liblongca.so PYTHONPATH=python \\
        build/deps/pytorch/bin/python benchmarks/python/host_time.py [--rounds N]

µs of the calling thread's CPU time, so that other processes do not count; medians over rounds in turns. `empty` is an
operator of the same signature, registered and differentiable as longca's are, that computes nothing; `computed` is the
library's own call for a problem of 16 tokens, arguments ready (one thread: waiting for others is no host time). What is
left is what longca adds: in a step, forward and backward, twice.
"""

import argparse
import statistics
import time

import torch

import longca
from longca._attention import _BACKWARD, _FORWARD, _tensor
from longca._library import check, lib
from longca._mask import Core
from longca._plans import plans

CALLS = 200


PARAMETERS = "Tensor? sink, Tensor mask, float scale, float softcap, bool deterministic"
operators = torch.library.Library("longca_benchmark", "DEF")
operators.define(f"empty(Tensor q, Tensor k, Tensor v, {PARAMETERS}, bool backward) -> (Tensor, Tensor)")
operators.define(f"empty_backward(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, {PARAMETERS}) -> "
                 "(Tensor, Tensor, Tensor)")
empty = torch.ops.longca_benchmark.empty.default
empty_backward = torch.ops.longca_benchmark.empty_backward.default


class Empty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, keys, q, k, v, sink, mask, *parameters):
        with torch._C._AutoDispatchBelowAutograd():
            o, lse = empty.redispatch(keys, q, k, v, sink, mask, *parameters)
        ctx.save_for_backward(q, k, v, o, lse, sink, mask)
        return o, lse

    @staticmethod
    def backward(ctx, dout, _):
        return None, *empty_backward(dout, *ctx.saved_tensors, 0.0, 0.0, False), *(None,) * 6


def differentiable(keys, *arguments):
    keys &= torch._C._after_autograd_keyset
    if arguments[-1]:
        return Empty.apply(keys, *arguments)
    with torch._C._AutoDispatchBelowAutograd():
        return empty.redispatch(keys, *arguments)


def forward_of_nothing(q, *_):
    return torch.empty_like(q), q.new_empty((q.shape[1], q.shape[0]))


def backward_of_nothing(dout, q, k, v, *_):
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


operators.impl("empty", forward_of_nothing, "CPU")
operators.impl("empty_backward", backward_of_nothing, "CPU")
operators.impl("empty", differentiable, "Autograd", with_keyset=True)


def microseconds(call):
    """CPU time of this thread per call."""
    begin = time.thread_time_ns()
    for _ in range(CALLS):
        call()
    return (time.thread_time_ns() - begin) / CALLS / 1e3


def in_turns(calls, rounds):
    """The median of each call over rounds in which all of them take turns."""
    times = {name: [] for name in calls}
    for call in calls.values():
        microseconds(call)
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(microseconds(call))
    return {name: statistics.median(of) for name, of in times.items()}


def computed(mask, q, k, v, dout):
    """Calls of the library alone, their arguments ready: (forward, backward)."""
    o, lse = longca.attention(q, k, v, mask, return_lse=True)
    plan = plans.find((Core.find(mask._handle), q.shape[1], k.shape[1], q.shape[2], v.shape[2], q.dtype, "cpu", 0.0,
                       False, 0.0, False, 0), True)
    q, k, v, o, dout = tensors = [x.detach().clone() for x in (q, k, v, o, dout)]
    gradients = [torch.empty_like(x) for x in (q, k, v)]
    inputs = [_tensor(x) for x in (q, k, v, o)]
    rows = (lse.data_ptr(), *lse.shape, lse.stride(0))
    forward_arguments = _FORWARD.pack(*sum(inputs, ()), *rows, 0, 0)
    written = [_tensor(x) for x in gradients]
    backward_arguments = _BACKWARD.pack(*_tensor(dout), *sum(inputs, ()), *rows, *sum(written, ()), 0, 0, 0)

    def forward(kept=(tensors, gradients, lse, plan)):
        check(lib.longca_forward(plan.pointer, forward_arguments))

    def backward(kept=(tensors, gradients, lse, plan)):
        check(lib.longca_backward(plan.pointer, backward_arguments))

    return forward, backward


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    tokens, heads, kv_heads, dim = 16, 2, 1, 16
    mask = longca.Mask("causal", tokens)
    q, k, v = (torch.randn(tokens, h, dim) for h in (heads, kv_heads, kv_heads))
    learned = [x.clone().requires_grad_() for x in (q, k, v)]
    dout = torch.randn_like(q)
    handle = mask._handle

    def step(o):
        torch.autograd.grad(o, learned, dout)

    forward, backward = computed(mask, *learned, dout)
    measured = in_turns({
        "forward": lambda: longca.attention(q, k, v, mask),
        "forward empty": lambda: empty(q, k, v, None, handle, 0.0, 0.0, False, False),
        "forward computed": forward,
        "step": lambda: step(longca.attention(*learned, mask)),
        "step empty": lambda: step(empty(*learned, None, handle, 0.0, 0.0, False, True)[0]),
        "step computed": lambda: (forward(), backward()),
    }, rounds)
    print(f"{'µs':<8}{'call':>8}{'empty':>8}{'computed':>10}{'longca adds':>13}")
    for name in ("forward", "step"):
        call, nothing, kernel = (measured[name + rest] for rest in ("", " empty", " computed"))
        print(f"{name:<8}{call:>8.1f}{nothing:>8.1f}{kernel:>10.1f}{call - nothing - kernel:>13.1f}")


if __name__ == "__main__":
    main()
