"""Runs the rows of adapters/ on a CPU: the program's own library and masks, PyTorch's tensors, and
stand-ins for what needs a GPU. The tests say what stands in for a package."""

import contextlib
import json
import os
import sys

import pytest
import torch
from torch.overrides import TorchFunctionMode

sys.dont_write_bytecode = True
_FOLDER = os.path.dirname(os.environ["LONGCA_HOST_LIBRARY"])
sys.path.insert(0, os.path.join(_FOLDER, "python"))

from longca_host import library, masks, tensors  # noqa: E402

LIBRARY = library.Library(os.environ["LONGCA_HOST_LIBRARY"])


def pytest_sessionfinish(session, exitstatus):
    session.config.exit_status = int(exitstatus)


def pytest_unconfigure(config):
    """Skips the destructors of the libraries, which could run in any order, as host.py does."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(config.exit_status)


class OnCpu(TorchFunctionMode):
    """What is asked of the GPU is done by the CPU."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if kwargs.get("device") == "cuda":
            kwargs["device"] = "cpu"
        if function is torch.Tensor.cuda:
            return args[0]
        return function(*args, **kwargs)


def _import_torch_tools():
    """longca_adapters.torch_tools as it is, but for the GPU that it takes hold of."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: True)
        patch.setattr(torch.cuda, "set_device", lambda index: None)
        patch.setattr(torch.cuda.memory, "CUDAPluggableAllocator", lambda *names: None)
        patch.setattr(torch.cuda.memory, "change_current_allocator", lambda allocator: None)
        from longca_adapters import torch_tools
    return torch_tools


torch_tools = _import_torch_tools()

from longca_adapters import block_lists  # noqa: E402


def _kept(mask):
    """What block_lists.kept reads from bits in device memory, from the lists."""
    q_bounds, k_bounds, offsets, indices = mask.blocks
    rows, columns = len(q_bounds) - 1, len(k_bounds) - 1
    found = torch.zeros(mask.heads * rows, columns, dtype=torch.bool)
    for row, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        found[row, list(indices[begin:end])] = True
    return found.view(mask.heads, rows, columns)


@pytest.fixture(autouse=True)
def on_cpu(monkeypatch):
    monkeypatch.setattr(torch_tools, "on_stream", lambda address=None: contextlib.nullcontext())
    monkeypatch.setattr(torch_tools.FirstCalls, "call", lambda self, name, function: function())
    monkeypatch.setattr(torch_tools.FirstCalls, "prepare", lambda self, function: function())
    monkeypatch.setattr(block_lists, "kept", _kept)
    with OnCpu():
        yield


@contextlib.contextmanager
def case(**axes):
    """(problem, mask) of a record's "case"."""
    axes = {
        "kernel": "naive", "mask": "causal", "tokens": 300, "heads_q": 4, "heads_k": 2,
        "head_dim": 16, "dtype": "float32", "pass": "forward", "seed": 1, "device": "cpu",
        "mode": "burst", **axes,
    }  # fmt: skip
    problem = library.Problem()
    handle = LIBRARY.case_mask(json.dumps(axes).encode(), problem)
    assert handle, LIBRARY.error()
    try:
        yield problem, masks.Mask(LIBRARY, handle)
    finally:
        LIBRARY.release_mask(handle)


def cells(mask, head=0):
    """Which query attends to which key, bool [tokens_q, tokens_k], by tiles of one cell."""
    classes = torch.frombuffer(mask.tiles(1, 1, head), dtype=torch.uint8)
    return (classes == masks.FULL).view(mask.tokens_q, mask.tokens_k)


STATIC = {
    "full": {},
    "causal": {},
    "sliding_window": {"window": 37},
    "sliding_window_causal": {"window": 37},
    "document": {"lengths": "pile"},
    "causal_document": {"lengths": "pile"},
    "shared_question": {"lengths": "pile"},
    "global_sliding_window": {"window": 37},
    "causal_blockwise": {"lengths": "pile"},
    "prefix_lm_causal": {"lengths": "pile"},
    "prefix_lm_document": {"lengths": "pile"},
    "block_causal_document": {"block_tokens": 96, "lengths": "pile"},
}


class Call:
    """The program's tensors of a call, made of PyTorch's."""

    def __init__(self, **parts):
        self.stream = 0
        self.sink = self.dsink = None
        self.parts = parts  # kept alive
        for name, part in parts.items():
            dtype = str(part.dtype).removeprefix("torch.")
            shape, strides = tuple(part.shape), part.stride()
            setattr(self, name, tensors.Tensor(part.data_ptr(), shape, strides, dtype, "cpu"))


def draw(problem):
    """(q, k, v, dout), each [tokens, heads, dim]."""
    generator = torch.Generator().manual_seed(5)
    q, k = ((problem.tokens_q, problem.heads_q), (problem.tokens_k, problem.heads_k))
    shapes = [(*axis, problem.head_dim) for axis in (q, k, k, q)]
    return [torch.randn(shape, generator=generator) for shape in shapes]


def attend(q, k, v, seen, scale, softcap=0.0, sink=None):
    """(o, lse) in float64, o [tokens, heads, dim] and lse [heads, tokens]; `seen` bool
    [heads or 1, tokens_q, tokens_k]. Rows without keys have o = 0."""
    q, k, v = (x.double().transpose(0, 1) for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[0] // x.shape[0], 0) for x in (k, v))
    scores = q @ k.mT * scale
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.masked_fill(~seen, float("-inf"))
    columns = [] if sink is None else [sink.double()[:, None, None].expand(*q.shape[:2], 1)]
    lse = torch.cat([scores, *columns], -1).logsumexp(-1)
    weights = (scores - lse.masked_fill(lse.isinf(), 0.0).unsqueeze(-1)).exp()
    return (weights @ v).transpose(0, 1), lse


def gradients(dout, q, k, v, seen, scale, softcap=0.0, sink=None):
    """(dq, dk, dv), with a sink also dsink, in float64."""
    inputs = [
        x.detach().double().requires_grad_() for x in (q, k, v, *([] if sink is None else [sink]))
    ]
    o, _ = attend(*inputs[:3], seen, scale, softcap, *inputs[3:])
    return torch.autograd.grad(o, inputs, dout.double())


def expect_both_passes(module, problem, mask, seen, sink=None):
    """Runs a plan of `module` on random tensors and compares it with the cells `seen`. Outputs hold
    NaN before the calls. Returns the plan."""
    q, k, v, dout = draw(problem)
    o, lse = torch.full_like(q, torch.nan), torch.full(q.shape[1::-1], torch.nan)
    sinks = {} if sink is None else {"sink": sink}
    plan = module.plan(problem, mask)
    plan.forward(Call(q=q, k=k, v=v, o=o, lse=lse, **sinks))
    terms = (problem.scale, problem.softcap, sink)
    wanted = attend(q, k, v, seen, *terms)
    for found, right in zip((o, lse), wanted):
        torch.testing.assert_close(found.double(), right, rtol=1e-4, atol=1e-4)
    if problem.backward:
        found = [torch.full_like(x, torch.nan) for x in (q, k, v)]
        parts = dict(zip(("dq", "dk", "dv"), found))
        if sink is not None:
            parts["dsink"] = torch.full_like(sink, torch.nan)
        plan.backward(Call(dout=dout, q=q, k=k, v=v, o=o, lse=lse, **parts, **sinks))
        for got, right in zip(parts.values(), gradients(dout, q, k, v, seen, *terms)):
            torch.testing.assert_close(got.double(), right, rtol=1e-3, atol=1e-3)
    return plan
