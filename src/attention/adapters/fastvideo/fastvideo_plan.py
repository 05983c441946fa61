"""Shared by the two kernels of fastvideo-kernel. Both take [batch, heads, tokens, dim] in tiles of
64 tokens, the tokens of a block first and padding after them, and for each head and query tile a
list of key tiles."""

import torch
from longca_adapters import block_lists, torch_tools

TILE = 64


class PaddedTiles:
    """The tiles of the query or the key axis. A block of more than 64 tokens, a multiple of 64, has
    several."""

    def __init__(self, bounds):
        self.tokens = bounds[-1]
        pieces = [
            (block, place, min(TILE, end - place))
            for block, (begin, end) in enumerate(zip(bounds, bounds[1:]))
            for place in range(begin, end, TILE)
        ]
        blocks, _, sizes = (list(part) for part in zip(*pieces))
        self.count = len(pieces)
        self.blocks = len(bounds) - 1
        self.gapless = all(size == TILE for size in sizes)
        self.block = torch.tensor(blocks, device="cuda")
        self.sizes = torch.tensor(sizes, dtype=torch.int32, device="cuda")
        self.places = None  # row of each token; None where only the last tile is padded
        if not all(size == TILE for size in sizes[:-1]):
            lanes = torch.arange(TILE, device="cuda")
            self.places = (lanes < self.sizes[:, None]).view(-1).nonzero().view(-1)

    def fill(self, tensor, stream):
        """A tensor [tokens, heads, dim] as [1, heads, 64 · tiles, dim], padding set to zero."""
        view = torch_tools.view(tensor)
        _, heads, dim = view.shape
        found = view.new_empty(heads, self.count * TILE, dim)
        if self.places is None:
            found[:, self.tokens :].zero_()
            torch_tools.copy(tensor, found[:, : self.tokens].transpose(0, 1), stream)
        else:
            found.zero_().index_copy_(1, self.places, view.transpose(0, 1))
        return found.unsqueeze(0)

    def take(self, tiles, tensor, stream):
        """Copies the tokens of `tiles`, [1, heads, 64 · tiles, dim], into the program's tensor."""
        if self.places is None:
            rows = tiles[0, :, : self.tokens]
        else:
            rows = tiles[0].index_select(1, self.places)
        torch_tools.copy(rows.transpose(0, 1), tensor, stream)

    def take_rows(self, tiles, factor, lse):
        """Copies one number per row, [heads, 64 · tiles], times `factor`, into `lse`."""
        rows = tiles if self.places is None else tiles.index_select(1, self.places)
        torch.mul(rows[:, : self.tokens], factor, out=torch_tools.view(lse))


def supports(problem, mask):
    if abs(problem.scale * problem.head_dim**0.5 - 1) > 1e-6:
        return "fastvideo-kernel has no argument for the softmax scale, which is 1/√dim"
    return None


class Plan:
    """One plan of either kernel. `forward` gives (o, lse) from (q, k, v, lists); `backward` gives
    (dq, dk, dv) from (dout, q, k, v, o, lse, lists, transposed lists). Lists are (indices, counts,
    tokens of each key tile). `lse_factor` turns the kernel's row numbers into natural logarithms;
    None if they are not to be given out.
    `takes_strides`: `forward` needs no copy of tensors without gaps."""

    def __init__(self, problem, mask, forward, backward, lse_factor, takes_strides=False):
        self._forward, self._backward, self._lse_factor = forward, backward, lse_factor
        self._wants_backward = problem.backward
        with torch_tools.on_stream():
            self._q, self._k = (PaddedTiles(bounds) for bounds in mask.block_bounds)
            kept = block_lists.kept(mask)[:, self._q.block][:, :, self._k.block]
            self._lists = self._lists_of(kept, problem.heads_q)
            self._transposed = None
            if problem.backward:
                self._transposed = self._lists_of(kept.transpose(1, 2), problem.heads_q)
        self._o = self._lse = None  # of the forward pass, padded
        # The backward pass takes none.
        gapless = self._q.gapless and self._k.gapless
        self._takes_strides = takes_strides and gapless and not problem.backward
        turned = "[heads, tokens, dim], turned from and to [tokens, heads, dim] in the call's time"
        self.notes = {"layout": "as it lies" if self._takes_strides else turned}
        if any(axis.count > axis.blocks for axis in (self._q, self._k)):
            self.notes["blocks"] = f"cut into slots of {TILE} tokens"
        if not gapless:
            self.notes["slots"] = f"{self._q.count} and {self._k.count} of {TILE} tokens, padded"

    def _lists_of(self, kept, heads):
        counts, indices = block_lists.ordered(kept, multiple=16)  # one Triton specialization
        counts, indices = (block_lists.per_head(part, heads) for part in (counts, indices))
        return indices.unsqueeze(0), counts.unsqueeze(0), self._k.sizes

    @property
    def workspace_bytes(self):
        parts = [*self._lists, *(self._transposed or ())[:2]]
        return sum(part.numel() * part.element_size() for part in parts)

    def _inputs(self, call):
        ends = ((self._q, call.q), (self._k, call.k), (self._k, call.v))
        return [axis.fill(tensor, call.stream) for axis, tensor in ends]

    def _as_they_lie(self, call):
        views = torch_tools.views(call.q, call.k, call.v)
        o, lse = self._forward(*(view.transpose(0, 1).unsqueeze(0) for view in views), *self._lists)
        return o[0].transpose(0, 1), lse

    # Inputs that are shared with an autograd kernel may require gradients.
    def forward(self, call):
        with torch_tools.on_stream(call.stream), torch.no_grad():
            if self._takes_strides:
                _, lse = torch_tools.into((call.o,), lambda: self._as_they_lie(call))
            else:
                o, lse = self._forward(*self._inputs(call), *self._lists)
                self._q.take(o, call.o, call.stream)
                if self._wants_backward:
                    self._o, self._lse = o, lse
            if self._lse_factor is not None:
                self._q.take_rows(lse.view(call.lse.shape[0], -1), self._lse_factor, call.lse)

    def backward(self, call):
        with torch_tools.on_stream(call.stream), torch.no_grad():
            gradients = self._backward(
                self._q.fill(call.dout, call.stream), *self._inputs(call), self._o, self._lse,
                self._lists, self._transposed,
            )  # fmt: skip
            self._q.take(gradients[0], call.dq, call.stream)
            self._k.take(gradients[1], call.dk, call.stream)
            self._k.take(gradients[2], call.dv, call.stream)

    def close(self):
        self._o = self._lse = None
