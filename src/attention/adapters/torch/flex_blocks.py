"""Block-sparse masks as FlexAttention takes them. Where its tiles divide the blocks, the blocks are
those of the BlockMask and no cell is tested; else, as with variable blocks, its mask_mod looks each
cell up in a table of kept blocks, and the tiles of the BlockMask are those with a kept cell.

The form of such a mask is one of the strings blocks_Q_K and kept_ROWS_COLUMNS_LISTS, or causal_ and
one of these: all that a compiled graph depends on beside the shapes."""

import dataclasses
import math

import torch
from longca_adapters import block_lists
from torch._inductor.choices import InductorChoices
from torch.nn.attention.flex_attention import BlockMask, noop_mask

TILE = 128  # of FlexAttention by default; its kernels' own tiles are as large or divide it
MIN_TILE = 16  # of a product of Triton's
ROUND = 256  # blocks: variable blocks differ in number from draw to draw; avoids recompiling


class _Tile:
    """The largest tile that the BlockMask being compiled for allows."""

    size = TILE


def use_tiles_of(form):
    """Call it before anything that may compile for that form."""
    sizes = _sizes(form)
    _Tile.size = TILE if sizes is None else min(math.gcd(size, TILE) for size in sizes)


def _fit(configs):
    """PyTorch's choices of tiles, none of them larger than the blocks: it has none of its own for
    blocks of 64 (its backward pass takes no tiles as options either). Half the warps do for small
    ones."""
    if _Tile.size >= TILE:
        return configs
    fitted = []
    for config in configs:
        tiles = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
        tiles = {n: min(v, _Tile.size) for n, v in tiles.items() if n.startswith("block_")}
        fitted.append(dataclasses.replace(config, num_warps=4, **tiles))
    return fitted


def _fitted(choose):
    return lambda self, *args, **options: _fit(choose(self, *args, **options))


# On the class, because autograd compiles the backward pass in a thread of its own.
for _name in ("get_flex_attention_fwd_configs", "get_flex_attention_bwd_configs"):
    setattr(InductorChoices, _name, _fitted(getattr(InductorChoices, _name)))


def form_of(mask):
    bounds = mask.block_bounds
    causal = "causal_" if mask.slices[0][4] == "causal" else ""
    sizes = [_tiled_size(part) for part in bounds]
    if all(sizes):
        return f"{causal}blocks_{sizes[0]}_{sizes[1]}"
    rows, columns = (-(-(len(part) - 1) // ROUND) * ROUND for part in bounds)
    return f"{causal}kept_{rows}_{columns}_{mask.heads}"


def _tiled_size(bounds):
    size = block_lists.uniform(bounds)
    if size is not None and len(bounds) == 2:
        size = -(-size // TILE) * TILE  # one block may be said to be larger
    return size if size and math.gcd(size, TILE) >= MIN_TILE else None


def is_form(form):
    return "blocks_" in form or "kept_" in form


def notes(form):
    sizes = _sizes(form)
    tested = "causal" if form.startswith("causal") else "none"
    if sizes is None:
        asked = "a table of kept blocks, asked per cell"
        return {"mask_mod": asked, "block_mask": f"tiles of {TILE}"}
    return {"mask_mod": tested, "block_mask": f"blocks of {sizes[0]} x {sizes[1]}"}


def _numbers(form):
    return [int(part) for part in form.split("_") if part.isdigit()]


def _sizes(form):
    """The size of query and key blocks where these are the tiles, else None."""
    return tuple(_numbers(form)) if "blocks_" in form else None


def _causal():
    def mask_mod(b, h, q, k):
        return q >= k

    return mask_mod


def _kept(q_block, k_block, table, group):
    def mask_mod(b, h, q, k):
        return table[h // group, q_block[q], k_block[k]]

    return mask_mod


def _kept_causal(q_block, k_block, table, group):
    def mask_mod(b, h, q, k):
        return (q >= k) & table[h // group, q_block[q], k_block[k]]

    return mask_mod


def _mask_mod(form, tables, heads):
    if tables is None:
        return _causal() if form.startswith("causal") else noop_mask
    make = _kept_causal if form.startswith("causal") else _kept
    return make(*tables, heads // tables[2].shape[0])


def _block_mask(form, tokens, partial, full, tables, heads, backward):
    """`partial` and `full`: bool [lists, rows, columns] of the tiles, or None if none is."""

    def lists(tiles, other):
        """Counts and indices; indices beyond the count are never read."""
        if tiles is None:
            return torch.zeros_like(other[0]), other[1]
        width = tiles.shape[-1]  # always all, because the graph is compiled for it
        return [
            block_lists.per_head(part, heads).unsqueeze(0)
            for part in block_lists.ordered(tiles, width)
        ]

    def both(transpose):
        tiles = [None if t is None else transpose(t) for t in (partial, full)]
        if tiles[0] is None:
            second = lists(tiles[1], None)
            return [*lists(None, second), *second]
        first = lists(tiles[0], None)
        return [*first, *lists(tiles[1], first)]

    q_lists = both(lambda tiles: tiles.transpose(1, 2)) if backward else [None] * 4
    return BlockMask(
        tokens, *both(lambda tiles: tiles), *q_lists,
        BLOCK_SIZE=_sizes(form) or (TILE, TILE), mask_mod=_mask_mod(form, tables, heads),
    )  # fmt: skip


def _causal_classes(q_bounds, k_bounds):
    """Blocks that the diagonal of a square mask leaves whole, and those it leaves some cells of."""
    q, k = (torch.tensor(bounds, device="cuda") for bounds in (q_bounds, k_bounds))
    return q[:-1, None] >= k[None, 1:] - 1, q[1:, None] - 1 >= k[None, :-1]


def _tiles_of_blocks(mask, causal):
    kept = block_lists.kept(mask)
    if not causal:
        return None, kept
    whole, some = _causal_classes(*mask.block_bounds)
    return kept & some & ~whole, kept & whole


def _tables_of(mask, form):
    """Per token its block, and the kept blocks in a table of a round size."""
    rows, columns, lists = _numbers(form)
    kept = block_lists.kept(mask)
    table = torch.zeros(lists, rows, columns, dtype=torch.bool, device="cuda")
    table[:, : kept.shape[1], : kept.shape[2]] = kept
    blocks = [
        torch.repeat_interleave(
            torch.arange(len(bounds) - 1, dtype=torch.int32), torch.tensor(bounds).diff()
        ).cuda()
        for bounds in mask.block_bounds
    ]
    return (*blocks, table), kept


def _tiles_of_table(blocks, kept, causal):
    """The tiles with a kept cell, by sums of the table over the blocks that a tile touches. Every
    one is a partial tile."""
    sums = torch.zeros(
        kept.shape[0], kept.shape[1] + 1, kept.shape[2] + 1, dtype=torch.int32, device="cuda"
    )
    sums[:, 1:, 1:] = kept.cumsum(1, dtype=torch.int32).cumsum(2, dtype=torch.int32)
    starts, ends = [], []
    for block in blocks:
        first = torch.arange(0, len(block), TILE, device="cuda")
        starts.append(block[first].long())
        ends.append(block[(first + TILE - 1).clamp_(max=len(block) - 1)].long() + 1)

    def corner(rows, columns):
        return sums[:, rows][:, :, columns]

    count = corner(ends[0], ends[1]) - corner(starts[0], ends[1])
    count += corner(starts[0], starts[1]) - corner(ends[0], starts[1])
    found = count > 0
    return found.tril_() if causal else found


def block_mask(mask, form, heads, backward):
    tokens = (mask.tokens_q, mask.tokens_k)
    causal = form.startswith("causal")
    if _sizes(form):
        partial, full = _tiles_of_blocks(mask, causal)
        return _block_mask(form, tokens, partial, full, None, heads, backward)
    tables, kept = _tables_of(mask, form)
    partial = _tiles_of_table(tables[:2], kept, causal)
    return _block_mask(form, tokens, partial, None, tables, heads, backward)


def empty(form, tokens, heads, backward):
    """A BlockMask without a tile, to compile for."""
    rows, columns = (-(-n // size) for n, size in zip(tokens, _sizes(form) or (TILE, TILE)))
    none = torch.zeros(1, rows, columns, dtype=torch.bool, device="cuda")
    if _sizes(form):
        partial = none if form.startswith("causal") else None
        return _block_mask(form, tokens, partial, none, None, heads, backward)
    table_rows, table_columns, lists = _numbers(form)
    tables = [torch.zeros(n, dtype=torch.int32, device="cuda") for n in tokens]
    tables.append(torch.zeros(lists, table_rows, table_columns, dtype=torch.bool, device="cuda"))
    return _block_mask(form, tokens, none, None, tables, heads, backward)
