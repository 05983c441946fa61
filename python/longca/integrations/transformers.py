"""longca behind `attn_implementation="longca"` of Hugging Face Transformers.

    longca.integrations.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="longca")

Packed position_ids (which begin again with each document) become causal documents; the window of a model that has one is
applied, and so are sinks and caps of scores, on the CPU. What longca cannot do (padding, dropout, caches) is an error of
one sentence.
"""

import torch

from .._attention import attention
from .._mask import Mask


def register():
    """Makes "longca" a name that Transformers knows. Raises ImportError without it."""
    from transformers.masking_utils import AttentionMaskInterface
    from transformers.modeling_utils import AttentionInterface

    AttentionInterface.register("longca", attention_forward)
    AttentionMaskInterface.register("longca", no_dense_mask)


def no_dense_mask(*_, attention_mask=None, use_vmap=False, **__):
    """Masks come from position_ids, not from a tensor [batch, 1, queries, keys]; what they cannot say is refused."""
    if attention_mask is not None and not attention_mask.all():
        raise ValueError("attention_mask has padding: longca takes packed documents by position_ids instead")
    if use_vmap:
        raise NotImplementedError("the model has a mask function of its own: longca takes causal documents and windows")


def documents_of(position_ids):
    """cu_seqlens of one packed sequence: a document begins wherever positions do not go on."""
    positions = position_ids.flatten()
    starts = (positions[1:] != positions[:-1] + 1).nonzero().flatten() + 1
    return torch.cat([starts.new_zeros(1), starts, starts.new_full((1,), positions.numel())])


def attention_forward(module, query, key, value, attention_mask, scaling=None, dropout=0.0, sliding_window=None,
                      softcap=None, s_aux=None, position_ids=None, **_):
    """What Transformers calls: tensors [batch, heads, tokens, dim]; returns ([batch, tokens, heads, dim], None)."""
    if attention_mask is not None:
        raise ValueError("attention_mask is a tensor: longca takes packed documents by position_ids instead")
    if getattr(getattr(module, "config", None), "attention_chunk_size", None):
        raise NotImplementedError("the model has chunked attention: longca takes causal documents and windows")
    if dropout:
        raise NotImplementedError(f"dropout = {dropout}: longca has none")
    tokens = query.shape[2]
    if key.shape[2] != tokens:
        raise NotImplementedError(f"{tokens} queries over {key.shape[2]} cached keys: longca is for training")
    causal = getattr(module, "is_causal", True)
    window = None if sliding_window is None else sliding_window - 1  # which counts the query's own key there
    rows = torch.arange(tokens, device="cpu")[None] if position_ids is None else position_ids
    masks = [Mask.from_cu_seqlens(documents_of(row), causal=causal, window=window) for row in rows]
    options = {"scale": scaling, "sink": s_aux, "softcap": softcap or 0.0}
    if len(masks) == 1 or all(mask == masks[0] for mask in masks):
        o = attention(query, key, value, masks[0], **options)
    elif len(masks) != query.shape[0]:
        raise ValueError(f"position_ids has {len(masks)} rows, the batch has {query.shape[0]} sequences")
    else:
        o = torch.cat([attention(query[i:i + 1], key[i:i + 1], value[i:i + 1], mask, **options)
                       for i, mask in enumerate(masks)])
    return o.transpose(1, 2), None
