"""FlexAttention, compiled. A graph is compiled for each shape and form of mask, and serves every mask
of that form; the masks' own numbers are tensors that it reads."""

import time
import types

import torch
import torch._dynamo
import torch._functorch.config
import torch_tools
from torch._inductor.codecache import PyCodeCache
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from torch_tools import version  # noqa: F401: part of the interface

BLOCK = 128  # queries and keys of a tile of the BlockMask, FlexAttention's own default
MOST_INTERVALS = 2

# FlexAttention that is not compiled computes the whole score matrix, and says so in a warning only.
# A graph that breaks is an error by fullgraph=True; one compiled too often is an error by this.
torch._dynamo.config.fail_on_recompile_limit_hit = True
# The backward pass is called many times on one forward pass: what it reads must stay.
torch._functorch.config.donated_buffer = False


def supports(problem, mask):
    intervals = mask.most_row_intervals()
    if intervals > MOST_INTERVALS:
        return (
            f"flex's mask_mod tests {MOST_INTERVALS} intervals of keys per query here, "
            f"this mask has up to {intervals}"
        )
    return None


def plan(problem, mask):
    return Plan(problem, mask)


def _attention(q, k, v, block_mask, scale):
    gqa = q.shape[1] != k.shape[1]
    return flex_attention(
        q, k, v, block_mask=block_mask, scale=scale, enable_gqa=gqa, return_lse=True
    )


_graphs = {}  # compiled functions by form of mask and shape


def _graph(key):
    """A code object of its own for each: they share no limit of recompilations, no list of guards."""
    if key not in _graphs:
        code = _attention.__code__.replace(co_name=f"flex_{len(_graphs)}")
        own = types.FunctionType(code, globals())
        _graphs[key] = Graph(torch.compile(own, fullgraph=True, dynamic=False))
    return _graphs[key]


class Graph:
    """A compiled function; which of its passes have been called is which are compiled."""

    def __init__(self, function):
        self.function = function
        self.compiled = set()

    def ms_to_compile(self, direction, call):
        """0, or the time of a first call, of which the rest is nothing beside the compilation."""
        if direction in self.compiled:
            return 0.0
        known = len(PyCodeCache.modules)
        begin = time.perf_counter()
        call()
        torch.cuda.current_stream().synchronize()
        elapsed = 1e3 * (time.perf_counter() - begin)
        _expect_template(PyCodeCache.modules[known:])
        torch_tools.LIBRARY.torch_reset_peak()
        self.compiled.add(direction)
        return elapsed


def _expect_template(modules):
    """Whatever was generated calls the template kernel of FlexAttention."""
    for module in modules:
        with open(module.__file__, encoding="utf-8") as source:
            if "flex_attention" in source.read():
                return
    if modules:
        raise RuntimeError("FlexAttention was not compiled to its own kernel but to another form")


def _causal(b, h, q, k):
    return q >= k


def _one_interval(begins, ends):
    def mask_mod(b, h, q, k):
        return (k >= begins[0, q]) & (k < ends[0, q])

    return mask_mod


def _two_intervals(begins, ends):
    def mask_mod(b, h, q, k):
        first = (k >= begins[0, q]) & (k < ends[0, q])
        return first | ((k >= begins[1, q]) & (k < ends[1, q]))

    return mask_mod


def _mask_mod(mask):
    """The form's name and mask_mod: causal in FlexAttention's usual words, else the intervals of
    keys that each query sees."""
    if mask.window == (-1, 0) and mask.tokens_q == mask.tokens_k:
        return "causal", _causal
    count = max(1, mask.most_row_intervals())
    shape = (count, mask.tokens_q)
    begins, ends = (
        torch_tools.to_device(torch.frombuffer(part, dtype=torch.int32)).view(shape)
        for part in mask.row_intervals(most=count)
    )
    form = _one_interval if count == 1 else _two_intervals
    return form.__name__, form(begins, ends)


def _ordered(chosen):
    """Numbers and indices of the chosen tiles of each row, as a BlockMask has them."""
    numbers = chosen.sum(-1, dtype=torch.int32)
    indices = torch.argsort((~chosen).to(torch.int8), dim=-1, stable=True).to(torch.int32)
    return numbers[None, None], indices[None, None]


def _block_mask(mask):
    """None for a full mask: then nothing is tested. The tiles are those that the one mask of the
    program says; create_block_mask would find the same by evaluating mask_mod for every cell."""
    if mask.window == (-1, -1):
        return "full", None
    form, mask_mod = _mask_mod(mask)
    rows, columns = -(-mask.tokens_q // BLOCK), -(-mask.tokens_k // BLOCK)
    classes = torch.frombuffer(mask.tiles(BLOCK, BLOCK), dtype=torch.uint8).cuda()
    classes = classes.view(rows, columns)
    return form, BlockMask.from_kv_blocks(
        *_ordered(classes == 1),
        *_ordered(classes == 2),
        BLOCK_SIZE=BLOCK,
        mask_mod=mask_mod,
        seq_lengths=(mask.tokens_q, mask.tokens_k),
    )


def _heads_first(tensor):
    return torch_tools.view(tensor).transpose(0, 1).unsqueeze(0)


class Plan:
    def __init__(self, problem, mask):
        with torch_tools.on_stream():
            form, self.block_mask = _block_mask(mask)
        shape = (problem.tokens_q, problem.tokens_k, problem.heads_q, problem.heads_k)
        self.graph = _graph((form, *shape, problem.head_dim, problem.dtype))
        self.scale = problem.scale
        self.compile_ms = 0.0
        self.inputs = self.o = None
        self.notes = {"mask_mod": form}

    def forward(self, call):
        """Keeps the graph of autograd, which the backward pass follows."""
        self.inputs = [_heads_first(t).detach().requires_grad_() for t in (call.q, call.k, call.v)]
        with torch_tools.on_stream(call.stream):
            self.compile_ms += self.graph.ms_to_compile("forward", self._attend)
            self.o = None  # the memory of the last result is lent again
            self.o, _ = torch_tools.into((call.o, call.lse), self._attend)

    def _attend(self):
        o, lse = self.graph.function(*self.inputs, self.block_mask, self.scale)
        return o, lse

    def backward(self, call):
        dout = _heads_first(call.dout)
        with torch_tools.on_stream(call.stream):
            self.compile_ms += self.graph.ms_to_compile("backward", lambda: self._gradients(dout))
            torch_tools.into((call.dq, call.dk, call.dv), lambda: self._gradients(dout))

    def _gradients(self, dout):
        found = torch.autograd.grad(self.o, self.inputs, dout, retain_graph=True)
        return [gradient[0].transpose(0, 1) for gradient in found]
