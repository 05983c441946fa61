"""The kept blocks of a mask on the GPU, as lists per row of blocks."""

import functools

import torch


def kept(mask):
    """The kept blocks: bool [lists, query blocks, key blocks]."""
    bits, columns = mask.block_bits
    words = torch.from_dlpack(bits).view(torch.int32)
    lanes = torch.arange(32, dtype=torch.int32, device="cuda")
    lists, rows, _ = words.shape
    found = torch.empty(lists, rows, columns, dtype=torch.bool, device="cuda")
    for one, out in zip(words, found):  # one by one, for a word becomes 32
        out.copy_((one[:, :, None] >> lanes & 1).view(rows, -1)[:, :columns])
    return found


def tiles(mask, size):
    """The kept blocks cut into tiles of `size` tokens, which divides them: bool
    [lists, query tiles, key tiles]."""
    found = kept(mask)
    for axis, bounds in enumerate(mask.block_bounds, start=1):
        counts = [-(-(end - begin) // size) for begin, end in zip(bounds, bounds[1:])]
        if any(count != 1 for count in counts):
            blocks = [block for block, count in enumerate(counts) for _ in range(count)]
            found = found.index_select(axis, torch.tensor(blocks, device=found.device))
    return found


def ordered(chosen, width=None, multiple=1):
    """The chosen columns of each row, ascending: counts int32 [lists, rows], and int32
    [lists, rows, width] with zeros behind them. `width`, if it is not given, is that of the longest
    row, rounded up to a multiple."""
    lists, rows, columns = chosen.shape
    counts = chosen.sum(-1, dtype=torch.int32)
    if width is None:
        width = max(1, -(-int(counts.max()) // multiple)) * multiple
    numbers = torch.arange(columns, dtype=torch.int32, device=chosen.device).expand(rows, columns)
    found = torch.empty(lists, rows, width, dtype=torch.int32, device=chosen.device)
    for one, out in zip(chosen, found):
        # Columns that are not chosen are written beyond the last one.
        place = (one.cumsum(-1) - 1).masked_fill_(~one, width)
        row = torch.zeros(rows, width + 1, dtype=torch.int32, device=chosen.device)
        out.copy_(row.scatter_(1, place, numbers)[:, :width])
    return counts, found


@functools.cache
def load():
    """Has PyTorch set up copies to the GPU and load the kernels that `ordered` launches: 0.1 s, once
    per process."""
    chosen = torch.frombuffer(bytearray(256 * 256), dtype=torch.uint8).cuda().view(1, 256, 256)
    for each in (chosen, chosen.mT):
        ordered(each == 1, 256)


def per_head(lists, heads):
    """Lists of KV heads or query heads as lists of `heads` heads."""
    return lists if lists.shape[0] == heads else lists.repeat_interleave(heads // lists.shape[0], 0)


def uniform(bounds):
    """The size of equal blocks, of which the last may be shorter; None if they are not equal. A
    single block has the size of its tokens."""
    size = bounds[1] - bounds[0] if len(bounds) > 1 else 0
    equal = all(begin == i * size for i, begin in enumerate(bounds[:-1]))
    return size if equal and size > 0 and bounds[-1] - bounds[-2] <= size else None
