"""Video Sparse Attention of fastvideo-kernel: its kernels in Triton, tuned for each length."""

import importlib
import importlib.metadata
import math
import time

import torch
from longca_adapters import fastvideo_plan, torch_tools
from longca_adapters.fastvideo_plan import supports  # noqa: F401 (part of the interface)

_module = importlib.import_module("fastvideo_kernel.triton_kernels.block_sparse_attn_triton")


def version():
    return "fastvideo-kernel " + importlib.metadata.version("fastvideo-kernel")


def _forward(q, k, v, indices, counts, sizes):
    return _module.triton_block_sparse_attn_forward(q, k, v, indices, counts, sizes)


def _backward(dout, q, k, v, o, lse, lists, transposed):
    indices, counts, sizes = lists
    return _module.triton_block_sparse_attn_backward(
        dout, q, k, v, o, lse, indices, counts, *transposed
    )


_compiled = set()  # shapes and passes that were called before


class Plan(fastvideo_plan.Plan):
    """Measures compiling and tuning in the first call of a shape."""

    def __init__(self, problem, mask):
        super().__init__(problem, mask, _forward, _backward, math.log(2), takes_strides=True)
        self.compile_ms = 0.0
        self._shape = (problem.tokens_q, problem.tokens_k, problem.head_dim)

    def _compiling(self, direction, work):
        if (direction, *self._shape) in _compiled:
            return work()
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        self.compile_ms += 1e3 * (time.perf_counter() - begin)
        torch_tools.LIBRARY.torch_reset_peak()
        _compiled.add((direction, *self._shape))
        return work()

    def forward(self, call):
        self._compiling("forward", lambda: super(Plan, self).forward(call))

    def backward(self, call):
        self._compiling("backward", lambda: super(Plan, self).backward(call))


def plan(problem, mask):
    return Plan(problem, mask)
