import collections
import sys

import pytest
import torch

sys.dont_write_bytecode = True
import longca  # noqa: E402

TOKENS = 203
HEADS = (4, 2)
DOCUMENTS = [1, 64, 37, 90, 11]

MASKS = {
    "full": {},
    "causal": {},
    "sliding_window": {"window": 33},
    "sliding_window_causal": {"window": 33},
    "document": {"lengths": DOCUMENTS},
    "causal_document": {"lengths": DOCUMENTS},
    "shared_question": {"lengths": DOCUMENTS},
    "global_sliding_window": {"window": 17},
    "causal_blockwise": {"lengths": DOCUMENTS},
    "prefix_lm_causal": {},
    "prefix_lm_document": {"lengths": DOCUMENTS},
    "block_causal_document": {"block_tokens": 24},
    "block_sparse": {"block": 24, "density": 0.3, "heads": HEADS},
    "block_sparse_variable": {"block": 24, "density": 0.3, "heads": HEADS, "block_heads": "query"},
}

Inputs = collections.namedtuple("Inputs", "q k v dout")


def make_mask(name):
    return longca.Mask(name, TOKENS, **MASKS[name])


def make_inputs(tokens=TOKENS, heads=HEADS, dim=24, dtype=torch.float32, batch=None, seed=0, tokens_k=None, dim_v=None):
    """Random normal q, k, v, dout: [tokens, heads, dim], or [batch, heads, tokens, dim]; v and dout of dim_v."""
    generator = torch.Generator().manual_seed(seed)

    def draw(n, count, dim):
        shape = (n, count, dim) if batch is None else (batch, count, n, dim)
        return torch.randn(shape, generator=generator).to(dtype)

    keys, dim_v = tokens if tokens_k is None else tokens_k, dim if dim_v is None else dim_v
    q, k = draw(tokens, heads[0], dim), draw(keys, heads[1], dim)
    v, dout = draw(keys, heads[1], dim_v), draw(tokens, heads[0], dim_v)
    return Inputs(*(x.requires_grad_() for x in (q, k, v)), dout)


def expected(inputs, mask, scale=None, sink=None, softcap=0.0):
    """(o, lse, dq, dk, dv), with a sink also dsink, in float64 with the explicit mask, by PyTorch's autograd."""
    q, k, v = (x.detach().double().requires_grad_() for x in inputs[:3])
    heads_first = q.dim() == 4
    qh, kh, vh = (x if heads_first else x.transpose(0, 1) for x in (q, k, v))
    groups = qh.shape[-3] // kh.shape[-3]
    kh, vh = (x.repeat_interleave(groups, dim=-3) for x in (kh, vh))
    lists = [mask.dense(h) for h in range(mask.heads)]
    allowed = torch.stack([lists[h * mask.heads // qh.shape[-3]] for h in range(qh.shape[-3])])
    scores = qh @ kh.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.masked_fill(~allowed, float("-inf"))
    sinks = [] if sink is None else [sink.detach().double().requires_grad_()]
    columns = [s[:, None, None].expand(*scores.shape[:-1], 1) for s in sinks]
    lse = torch.cat([scores, *columns], -1).logsumexp(-1)
    weights = (scores - lse.masked_fill(lse == float("-inf"), 0.0).unsqueeze(-1)).exp()
    o = weights @ vh
    o = o if heads_first else o.transpose(0, 1)
    gradients = torch.autograd.grad(o, (q, k, v, *sinks), inputs.dout.double())
    return (o.detach(), lse.detach(), *gradients)


@pytest.fixture(params=list(MASKS))
def mask(request):
    return make_mask(request.param)
