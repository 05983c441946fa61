"""Video Sparse Attention of fastvideo-kernel: its kernels for Hopper, on ThunderKittens."""

import importlib
import importlib.metadata

import torch  # noqa: F401 (before the extension, whose libraries it loads)
from longca_adapters import fastvideo_plan, torch_tools  # noqa: F401 (PyTorch's memory first)

# The package's function of this name hides the module.
_module = importlib.import_module("fastvideo_kernel.block_sparse_attn")
_forward_op, _backward_op = _module._get_sm90_ops()
if _forward_op is None or _backward_op is None:
    raise ImportError("its extension has no kernels for Hopper here")


def version():
    return "fastvideo-kernel " + importlib.metadata.version("fastvideo-kernel")


def supports(problem, mask):
    counts = [end - begin for begin, end in zip(mask.block_offsets, mask.block_offsets[1:])]
    if min(counts, default=1) == 0:
        return "vsa reads beyond its lists for a query block without key blocks, which this mask has"
    return fastvideo_plan.supports(problem, mask)


def _forward(q, k, v, indices, counts, sizes):
    return _forward_op(q, k, v, indices, counts, sizes)


def _backward(dout, q, k, v, o, lse, lists, transposed):
    """In float32; the copy into the outputs casts."""
    return _backward_op(q, k, v, o, lse, dout, *transposed)


def plan(problem, mask):
    # Numbers per row (LSE times -√dim) that drift by 2e-5 over 8K keys: for its backward pass only.
    return fastvideo_plan.Plan(problem, mask, _forward, _backward, lse_factor=None)
