"""Shared by the two kernels of fastvideo-kernel. Both take [batch, heads, tokens, dim] in slots of
64 tokens, of which the first ones hold the tokens of a block and the others nothing, and lists of
key slots per head and query slot."""

import torch
from longca_adapters import block_lists, torch_tools

SLOT = 64


class Slots:
    """The slots of an axis. A block of more than 64 tokens (they are multiples of 64 then) has
    several."""

    def __init__(self, bounds):
        self.tokens = bounds[-1]
        pieces = [
            (block, place, min(SLOT, end - place))
            for block, (begin, end) in enumerate(zip(bounds, bounds[1:]))
            for place in range(begin, end, SLOT)
        ]
        blocks, _, sizes = (list(part) for part in zip(*pieces))
        self.count = len(pieces)
        self.blocks = len(bounds) - 1
        self.gapless = all(size == SLOT for size in sizes)
        self.block = torch.tensor(blocks, device="cuda")
        self.sizes = torch.tensor(sizes, dtype=torch.int32, device="cuda")
        self.places = None  # of tokens, unless gaps are at the end only
        if not all(size == SLOT for size in sizes[:-1]):
            lanes = torch.arange(SLOT, device="cuda")
            self.places = (lanes < self.sizes[:, None]).view(-1).nonzero().view(-1)

    def fill(self, tensor, stream):
        """A tensor [tokens, heads, dim] as [1, heads, slots of 64, dim], with zeros in the gaps."""
        view = torch_tools.view(tensor)
        _, heads, dim = view.shape
        found = view.new_empty(heads, self.count * SLOT, dim)
        if self.places is None:
            found[:, self.tokens :].zero_()
            torch_tools.copy(tensor, found[:, : self.tokens].transpose(0, 1), stream)
        else:
            found.zero_().index_copy_(1, self.places, view.transpose(0, 1))
        return found.unsqueeze(0)

    def take(self, slots, tensor, stream):
        """Copies from slots into the program's tensor."""
        if self.places is None:
            rows = slots[0, :, : self.tokens]
        else:
            rows = slots[0].index_select(1, self.places)
        torch_tools.copy(rows.transpose(0, 1), tensor, stream)

    def take_rows(self, slots, factor, lse):
        """Copies numbers per row, [heads, slots of 64], multiplied by a factor."""
        rows = slots if self.places is None else slots.index_select(1, self.places)
        torch.mul(rows[:, : self.tokens], factor, out=torch_tools.view(lse))


def supports(problem, mask):
    if abs(problem.scale * problem.head_dim**0.5 - 1) > 1e-6:
        return "fastvideo-kernel has no argument for the softmax scale, which is 1/√dim"
    return None


class Plan:
    """One plan of either kernel. `forward` gives (o, lse) from (q, k, v, lists); `backward` gives
    (dq, dk, dv) from (dout, q, k, v, o, lse, lists, transposed lists). Lists are (indices, counts,
    tokens of each key slot). `lse_factor` turns the kernel's row numbers into natural logarithms;
    None if they are not to be given out.
    `takes_strides`: `forward` needs no copy of tensors without gaps."""

    def __init__(self, problem, mask, forward, backward, lse_factor, takes_strides=False):
        self._forward, self._backward, self._lse_factor = forward, backward, lse_factor
        self._wants_backward = problem.backward
        with torch_tools.on_stream():
            self._q, self._k = (Slots(bounds) for bounds in mask.block_bounds)
            kept = block_lists.kept(mask)[:, self._q.block][:, :, self._k.block]
            self._lists = self._lists_of(kept, problem.heads_q)
            self._transposed = None
            if problem.backward:
                self._transposed = self._lists_of(kept.transpose(1, 2), problem.heads_q)
        self._o = self._lse = None  # for the backward pass, in slots
        # The backward pass takes none.
        gapless = self._q.gapless and self._k.gapless
        self._takes_strides = takes_strides and gapless and not problem.backward
        turned = "[heads, tokens, dim], turned from and to [tokens, heads, dim] in the call's time"
        self.notes = {"layout": "as it lies" if self._takes_strides else turned}
        if any(axis.count > axis.blocks for axis in (self._q, self._k)):
            self.notes["blocks"] = f"cut into slots of {SLOT} tokens"
        if not gapless:
            self.notes["slots"] = f"{self._q.count} and {self._k.count} of {SLOT} tokens, padded"

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
        return [slots.fill(tensor, call.stream) for slots, tensor in ends]

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
