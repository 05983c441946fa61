"""PyTorch's scaled_dot_product_attention given every static mask as attn_mask, a number for each query
and key."""

import torch
from longca_adapters import sdpa, torch_tools
from longca_adapters.torch_tools import version  # noqa: F401 (part of the interface)

# Added to a score, makes its exponential 0, and never NaN: what PyTorch itself turns False into for
# cuDNN.
HIDDEN = -65504.0
COLUMNS = 16  # rows of attn_mask begin at multiples of as many numbers, as the back ends want it
CELLS = 1 << 26  # that are compared at once


def explicit_mask(mask, dtype):
    """attn_mask on the GPU: [1, 1, tokens_q, tokens_k], 0 where the query attends to the key, else
    HIDDEN; and the rows without a key, or None. Raises MemoryError where there is no room for it."""
    pitch = -(-mask.tokens_k // COLUMNS) * COLUMNS
    needed = mask.tokens_q * pitch * dtype.itemsize
    free = torch_tools.LIBRARY.available_bytes(1)
    if needed > free:
        raise MemoryError(
            f"attn_mask of {mask.tokens_q} x {mask.tokens_k} numbers takes {needed / 1e9:.1f} GB, "
            f"and {free / 1e9:.1f} GB of device memory are free"
        )
    count = max(1, mask.max_row_intervals())
    ends = torch.stack(
        [
            torch.frombuffer(part, dtype=torch.int32).view(count, mask.tokens_q)
            for part in mask.row_intervals(max_intervals=count)
        ]
    )
    empty = (ends[0] >= ends[1]).all(0).nonzero().view(-1)
    begins, ends = ends.cuda().unsqueeze(-1)
    found = torch.full((mask.tokens_q, pitch), HIDDEN, dtype=dtype, device="cuda")
    keys = torch.arange(mask.tokens_k, dtype=torch.int32, device="cuda")
    step = max(1, CELLS // max(1, mask.tokens_k))
    for first in range(0, mask.tokens_q, step):
        rows = slice(first, first + step)
        seen = (keys >= begins[0, rows]) & (keys < ends[0, rows])
        for begin, end in zip(begins[1:, rows], ends[1:, rows]):
            seen |= (keys >= begin) & (keys < end)
        found[rows, : mask.tokens_k].masked_fill_(seen, 0)
    return found[None, None, :, : mask.tokens_k], empty.cuda() if len(empty) else None


def supports(problem, mask):
    return sdpa.refusal(problem, causal=False, masked=True)


def plan(problem, mask):
    return Plan(problem, mask)


class Plan(sdpa.Plan):
    def __init__(self, problem, mask):
        super().__init__(problem, causal=False)
        with torch_tools.on_stream():
            dtype = getattr(torch, problem.dtype)
            self.attn_mask, self.empty_rows = explicit_mask(mask, dtype)
        self.notes["attn_mask"] = f"{problem.dtype}, made in the plan"
