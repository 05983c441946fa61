"""Attention under any mask, with gradients, on the CPU or a GPU, and over ranks.

    mask = longca.Mask.from_cu_seqlens(cu_seqlens, causal=True)
    o = longca.attention(q, k, v, mask)          # [tokens, heads, dim], differentiable

`longca.parallel` has the same over the ranks of a torch.distributed group, `longca.integrations` what other libraries load.
"""

from ._attention import attention
from ._library import version as _version
from ._mask import Mask
from ._plans import plan_stats

__version__ = _version()
__all__ = ["Mask", "attention", "plan_stats"]
