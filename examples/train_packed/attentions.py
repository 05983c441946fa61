"""The attentions that train_packed.py compares: longca, sdpa, flex and fa4.

load(name, device) gives a function of a mask, which gives attend(q, k, v): q and its result [tokens, query heads, dim],
k and v [tokens, KV heads, dim], all of one dtype on `device`. Every sequence has documents of its own, so that each step
makes what the attention needs of them: a plan, a dense mask, a block mask or cu_seqlens.
"""

import torch
import torch.nn.functional as F

import longca


class Unavailable(Exception):
    """One sentence: which attention, and what it needs."""


def load(name, device):
    return LOADERS[name](device)


def document_ids(mask, device):
    """The number of each token's document, int32 [tokens]."""
    return torch.repeat_interleave(torch.tensor(mask.lengths)).to(device, torch.int32)


def heads_first(*tensors):
    """[tokens, heads, dim] as [1, heads, tokens, dim]."""
    return [x.transpose(0, 1)[None] for x in tensors]


def load_longca(device):
    return lambda mask: lambda q, k, v: longca.attention(q, k, v, mask)


def load_sdpa(device):
    """With the explicit mask, bool [tokens, tokens], which is made of the documents without longca."""

    def of(mask):
        ids = document_ids(mask, device)
        allowed = (ids[:, None] == ids[None, :]).tril()

        def attend(q, k, v):
            q, k, v = heads_first(q, k, v)
            # None of PyTorch's fused kernels for GPUs takes a mask and fewer KV heads at once.
            k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
            return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)[0].transpose(0, 1)

        return attend

    return of


def load_flex(device):
    if device.type == "cpu":
        raise Unavailable("flex needs a GPU: PyTorch's FlexAttention has no backward pass on the CPU")
    try:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    except ImportError:
        raise Unavailable(f"flex needs PyTorch 2.5 or later, this is {torch.__version__}") from None
    # fullgraph: what cannot be compiled, or is compiled too often, is an error instead of the whole score matrix.
    compiled = torch.compile(flex_attention, fullgraph=True, dynamic=False)
    make = torch.compile(create_block_mask, dynamic=False)

    def of(mask):
        block_mask = make(causal_documents(document_ids(mask, device)), None, None, mask.tokens_q, mask.tokens_k, device=device)

        def attend(q, k, v):
            q, k, v = heads_first(q, k, v)
            return compiled(q, k, v, block_mask=block_mask, enable_gqa=True)[0].transpose(0, 1)

        return attend

    return of


def causal_documents(ids):
    def mask_mod(b, h, q, k):
        return (q >= k) & (ids[q] == ids[k])

    return mask_mod


def load_fa4(device):
    need = "fa4 needs a GPU and the package flash-attn-4 (pip install flash-attn-4)"
    if device.type == "cpu":
        raise Unavailable(need)
    try:
        from flash_attn.cute.interface import flash_attn_varlen_func
    except (ImportError, OSError, RuntimeError) as missing:  # the package, one of its own needs, or the driver
        raise Unavailable(f"{need}: {missing}") from None

    def of(mask):
        ends = torch.tensor([0, *mask.lengths]).cumsum(0).to(device, torch.int32)
        longest = max(mask.lengths)

        def attend(q, k, v):
            o, _ = flash_attn_varlen_func(q, k, v, cu_seqlens_q=ends, cu_seqlens_k=ends, max_seqlen_q=longest,
                                          max_seqlen_k=longest, causal=True)
            return o

        return attend

    return of


LOADERS = {"longca": load_longca, "sdpa": load_sdpa, "flex": load_flex, "fa4": load_fa4}
