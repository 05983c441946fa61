"""FlexAttention, compiled. A graph is compiled for each shape and form of mask, and serves every
mask of that form; the masks' own numbers are tensors that it reads."""

import gc
import time
import types

import torch
import torch._dynamo
import torch._functorch.config
from longca_adapters import flex_blocks, torch_tools
from longca_adapters.torch_tools import version  # noqa: F401 (part of the interface)
from longca_host.masks import FULL, PARTIAL
from torch._inductor.codecache import PyCodeCache
from torch.nn.attention.flex_attention import BlockMask, flex_attention

BLOCK = 128  # queries and keys of a tile of the BlockMask, FlexAttention's own default
MAX_INTERVALS = 2

# FlexAttention that is not compiled computes the whole score matrix, and says so in a warning only.
# fullgraph=True makes a graph break an error; this makes too many recompilations one.
torch._dynamo.config.fail_on_recompile_limit_hit = True
# The backward pass is called many times on one forward pass, whose results must stay.
torch._functorch.config.donated_buffer = False


def supports(problem, mask):
    if mask.block_bounds is not None:
        return None
    intervals = mask.max_row_intervals()
    if intervals > MAX_INTERVALS:
        return (
            f"flex's mask_mod tests {MAX_INTERVALS} intervals of keys per query here, "
            f"this mask has up to {intervals}"
        )
    return None


def plan(problem, mask):
    return Plan(problem, mask)


def _attention(q, k, v, block_mask, scale):
    gqa = q.shape[1] != k.shape[1]
    # Below one tile of queries PyTorch would choose its kernel for decoding, which has no backward
    # pass and not every mask_mod.
    options = {"FORCE_USE_FLEX_ATTENTION": True} if q.shape[2] < BLOCK else None
    return flex_attention(
        q, k, v, block_mask=block_mask, scale=scale, enable_gqa=gqa, return_lse=True,
        kernel_options=options,
    )  # fmt: skip


_graphs = {}  # compiled functions by form of mask and shape


def _graph(key):
    """A code object of its own, which shares no recompilation limit and no guards with others."""
    if key not in _graphs:
        form, *numbers = key[:-3]
        code = _attention.__code__.replace(co_name="_".join(["flex", form, *map(str, numbers)]))
        own = types.FunctionType(code, globals())
        compiled = torch.compile(own, fullgraph=True, dynamic=False)
        _graphs[key] = Graph(compiled, form, backward=key[-1])
    return _graphs[key]


class Graph:
    """A compiled function, and which of its passes have been called and thereby compiled."""

    def __init__(self, function, form, backward):
        self.function = function
        self.form = form
        self.backward = backward
        self.compiled = set()

    def attend(self, inputs, block_mask, scale):
        """O and LSE; with the autograd graph if a backward pass follows."""
        flex_blocks.use_tiles_of(self.form)
        for tensor in inputs:
            tensor.requires_grad_(self.backward)
        with torch.set_grad_enabled(self.backward):
            return self.function(*inputs, block_mask, scale)

    def ms_to_compile(self, direction, call):
        """0, or the time of a first call, which is nearly all compilation."""
        if direction in self.compiled:
            return 0.0
        flex_blocks.use_tiles_of(self.form)
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
    """Checks that the generated code calls FlexAttention's template kernel."""
    for module in modules:
        with open(module.__file__, encoding="utf-8") as source:
            if "flex_attention" in source.read():
                return
    if modules:
        raise RuntimeError("FlexAttention was not compiled to its own kernel but to another form")


def _causal():
    def mask_mod(b, h, q, k):
        return q >= k

    return mask_mod


def _documents(ids):
    def mask_mod(b, h, q, k):
        return ids[q] == ids[k]

    return mask_mod


def _causal_documents(ids):
    def mask_mod(b, h, q, k):
        return (q >= k) & (ids[q] == ids[k])

    return mask_mod


def _intervals(begins, ends):
    """The keys of query q are those of its intervals: [begins[i, q], ends[i, q]) for i = 0, 1."""

    def mask_mod(b, h, q, k):
        first = (k >= begins[0, q]) & (k < ends[0, q])
        return first | ((k >= begins[1, q]) & (k < ends[1, q]))

    return mask_mod


# A form of mask: its mask_mod, from tables of int32, and the shapes of the tables by the number of
# queries. The first ones are written as usual for FlexAttention, and are a few per cent faster than
# intervals.
FORMS = {
    "causal": (_causal, lambda tokens: []),
    "documents": (_documents, lambda tokens: [(tokens,)]),
    "causal_documents": (_causal_documents, lambda tokens: [(tokens,)]),
    "intervals": (_intervals, lambda tokens: 2 * [(MAX_INTERVALS, tokens)]),
}


def _form(mask):
    """A key of FORMS, "full" (nothing is tested), or a form of flex_blocks."""
    if mask.block_bounds is not None:
        return flex_blocks.form_of(mask)
    if mask.window == (-1, -1):
        return "full"
    if mask.window == (-1, 0) and mask.tokens_q == mask.tokens_k:
        return "causal"
    if mask.documents is not None:
        return "causal_documents" if mask.documents[1] else "documents"
    return "intervals"


def _tables(mask, form):
    if form == "intervals":
        shape = (MAX_INTERVALS, mask.tokens_q)
        parts = mask.row_intervals(max_intervals=MAX_INTERVALS)
        return [torch.frombuffer(part, dtype=torch.int32).cuda().view(shape) for part in parts]
    if form in ("documents", "causal_documents"):
        bounds = torch.tensor(mask.documents[0])
        ids = torch.arange(len(bounds) - 1, dtype=torch.int32)
        return [torch.repeat_interleave(ids, bounds.diff()).cuda()]
    return []


def _ordered(chosen):
    """Counts and indices of the chosen tiles of each row, as in a BlockMask."""
    numbers = chosen.sum(-1, dtype=torch.int32)
    indices = torch.argsort((~chosen).to(torch.int8), dim=-1, stable=True).to(torch.int32)
    return numbers[None, None], indices[None, None]


def _block_mask(form, tokens, classes, tables):
    """`classes`: of the tiles, [rows, columns], taken from the program's mask; create_block_mask
    would find the same by evaluating mask_mod for every cell."""
    return BlockMask.from_kv_blocks(
        *_ordered(classes == PARTIAL),
        *_ordered(classes == FULL),
        BLOCK_SIZE=BLOCK,
        mask_mod=FORMS[form][0](*tables),
        seq_lengths=tokens,
    )


def _block_mask_of(mask, form, problem):
    if form == "full":
        return None
    if flex_blocks.is_form(form):
        return flex_blocks.block_mask(mask, form, problem.heads_q, problem.backward)
    tokens = (mask.tokens_q, mask.tokens_k)
    classes = torch.frombuffer(mask.tiles(BLOCK, BLOCK), dtype=torch.uint8).cuda()
    return _block_mask(form, tokens, classes.view(_tiles(tokens)), _tables(mask, form))


def _empty_block_mask(form, tokens, heads, backward):
    """A BlockMask whose tiles are all empty."""
    if form == "full":
        return None
    if flex_blocks.is_form(form):
        return flex_blocks.empty(form, tokens, heads, backward)
    classes = torch.zeros(_tiles(tokens), dtype=torch.uint8, device="cuda")
    shapes = FORMS[form][1](tokens[0])
    zeros = [torch.zeros(shape, dtype=torch.int32, device="cuda") for shape in shapes]
    return _block_mask(form, tokens, classes, zeros)


def _tiles(tokens):
    return tuple(-(-extent // BLOCK) for extent in tokens)


def to_compile(problem, mask):
    """The arguments of compile_shape for what a plan would compile."""
    tokens = (problem.tokens_q, problem.tokens_k)
    heads = (problem.heads_q, problem.heads_k)
    last = (problem.head_dim, problem.dtype, problem.scale, problem.backward)
    return (_form(mask), *tokens, *heads, *last)


def compile_shape(form, tokens_q, tokens_k, heads_q, heads_k, dim, dtype, scale, backward):
    """Compiles for a shape, into the cache on disk. All tiles are empty, so that almost nothing
    runs."""
    tokens = (tokens_q, tokens_k)
    graph = _graph((form, *tokens, heads_q, heads_k, dim, dtype, scale, backward))

    def empty(tokens, heads):
        found = torch.empty(tokens, heads, dim, dtype=getattr(torch, dtype), device="cuda")
        return found.transpose(0, 1).unsqueeze(0)

    with torch_tools.on_stream():
        q, dout = empty(tokens_q, heads_q), empty(tokens_q, heads_q)
        inputs = [q, empty(tokens_k, heads_k), empty(tokens_k, heads_k)]
        block_mask = _empty_block_mask(form, tokens, heads_q, backward)
        o, _ = graph.attend(inputs, block_mask, scale)
        if backward:
            torch.autograd.grad(o, inputs, dout)


def _heads_first(tensor):
    return torch_tools.view(tensor).transpose(0, 1).unsqueeze(0)


class Plan:
    def __init__(self, problem, mask):
        form = _form(mask)
        with torch_tools.on_stream():
            self.block_mask = _block_mask_of(mask, form, problem)
        self.graph = _graph(to_compile(problem, mask))
        self.scale = problem.scale
        self.compile_ms = 0.0
        self.inputs = self.o = None  # of the autograd graph
        self.notes = flex_blocks.notes(form) if flex_blocks.is_form(form) else {"mask_mod": form}

    def forward(self, call):
        inputs = [_heads_first(tensor).detach() for tensor in (call.q, call.k, call.v)]

        def attend():
            return self.graph.attend(inputs, self.block_mask, self.scale)

        def attend_into():
            o, lse = attend()
            if self.graph.backward:
                self.inputs, self.o = inputs, o
            return o.detach()[0].transpose(0, 1), lse

        with torch_tools.on_stream(call.stream):
            self.compile_ms += self.graph.ms_to_compile("forward", attend)
            # Before a backward pass this one is not timed, and autograd keeps its results.
            torch_tools.into((call.o, call.lse), attend_into, in_place=not self.graph.backward)

    def backward(self, call):
        dout = _heads_first(call.dout)

        def gradients():
            found = torch.autograd.grad(self.o, self.inputs, dout, retain_graph=True)
            return [gradient[0].transpose(0, 1) for gradient in found]

        with torch_tools.on_stream(call.stream):
            self.compile_ms += self.graph.ms_to_compile("backward", gradients)
            torch_tools.into((call.dq, call.dk, call.dv), gradients)

    def close(self):
        """Frees the autograd graph, whose tensors hold each other in a cycle of references, before
        the next cell is measured."""
        if self.graph.backward:
            self.inputs = self.o = None
            gc.collect()
