"""Attention under any mask, with gradients, on the CPU or a GPU, and over ranks.

    mask = longca.Mask.from_cu_seqlens(cu_seqlens, causal=True)
    o = longca.attention(q, k, v, mask)          # [tokens, heads, dim], differentiable

`longca.parallel` has the same over the ranks of a torch.distributed group, `longca.integrations` what other libraries load.
"""

import importlib

# Else torch._disable_dynamo imports it at its first call: a child that is forked meanwhile waits for ever for the
# import's lock, and a process group made before outlives destroy_process_group: its threads may abort the exit.
import torch._dynamo  # noqa: F401

from ._attention import attention
from ._library import version as _version
from ._mask import Mask
from ._plans import plan_stats

__version__ = _version()
__all__ = ["Mask", "attention", "plan_stats"]


def __getattr__(name):
    """`longca.parallel` and `longca.integrations` are imported when they are first named."""
    if name in ("parallel", "integrations"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'longca' has no attribute {name!r}")
