"""FlashAttention 3: the interface built from its source, or the package of the forward pass alone,
which has neither gradients nor windows."""

import importlib.metadata
import inspect

from longca_adapters import torch_tools

try:
    import flash_attn_interface as interface

    FORWARD_ONLY = False
except ImportError:
    import fa3_fwd_interface as interface

    FORWARD_ONLY = True


def version():
    names = ("fa3-fwd",) if FORWARD_ONLY else ("flash-attn-3", "flash_attn_3")
    for name in names:
        try:
            found = f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
        return found + (", forward pass without windows" if FORWARD_ONLY else "")
    return interface.__name__


def supports(problem, mask):
    if problem.tokens_q != problem.tokens_k:
        return "fa3 is called for as many queries as keys here"
    if not FORWARD_ONLY:
        return None
    if problem.backward:
        return (
            "fa3_fwd_interface has no backward pass, flash_attn_interface (built from source) has; "
            "packages that have it compiled call it through XLA only"
        )
    if problem.dtype == "float16":
        return "fa3_fwd_interface is built without float16, flash_attn_interface (built from source) has it"
    if mask.window is not None and mask.window not in ((-1, -1), (-1, 0)):
        return "fa3_fwd_interface has no windows, flash_attn_interface (built from source) has"
    return None


def plan(problem, mask):
    return Plan(problem, mask)


def _with_lse(function):
    """The keyword that makes it return the LSE too; older versions always return it."""
    asks = "return_attn_probs" in inspect.signature(function).parameters
    return {"return_attn_probs": True} if asks else {}


class Plan:
    def __init__(self, problem, mask):
        self.options = {"softmax_scale": problem.scale, "causal": False}
        self.bounds = {}
        self.window = (-1, -1)
        if mask.window is not None:
            self.options["causal"] = mask.window == (-1, 0)
            self.window = (-1, -1) if self.options["causal"] else mask.window
        else:
            bounds, self.options["causal"] = mask.documents
            longest = max(end - begin for begin, end in zip(bounds, bounds[1:]))
            with torch_tools.on_stream():
                cu_seqlens = torch_tools.to_device(bounds)
            self.bounds = {
                "cu_seqlens_q": cu_seqlens,
                "cu_seqlens_k": cu_seqlens,
                "max_seqlen_q": longest,
                "max_seqlen_k": longest,
            }

    def _shaped(self, *tensors):
        """[tokens, heads, dim] with cu_seqlens, else [1, tokens, heads, dim]."""
        found = torch_tools.views(*tensors)
        return found if self.bounds else [t.unsqueeze(0) for t in found]

    def forward(self, call):
        q, k, v = self._shaped(call.q, call.k, call.v)
        function = interface.flash_attn_varlen_func if self.bounds else interface.flash_attn_func
        options = {**self.options, **self.bounds, **_with_lse(function)}
        with torch_tools.on_stream(call.stream):
            torch_tools.into(
                (call.o, call.lse),
                lambda: function(q, k, v, window_size=self.window, **options)[:2],
            )

    def backward(self, call):
        dout, q, k, v, o = self._shaped(call.dout, call.q, call.k, call.v, call.o)
        lse = torch_tools.view(call.lse)
        lse = lse if self.bounds else lse.unsqueeze(0)
        gradients = dict(zip(("dq", "dk", "dv"), self._shaped(call.dq, call.dk, call.dv)))
        with torch_tools.on_stream(call.stream):
            interface._flash_attn_backward(
                dout, q, k, v, o, lse, **self.bounds, **gradients,
                softmax_scale=self.options["softmax_scale"], is_causal=self.options["causal"],
                window_size_left=self.window[0], window_size_right=self.window[1],
            )  # fmt: skip
