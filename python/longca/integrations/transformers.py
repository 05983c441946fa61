"""longca behind `attn_implementation="longca"` of Hugging Face Transformers.

    longca.integrations.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="longca")

Packed position_ids (which begin again with each document) become documents where the model hands them to its attention or,
with use_cache=False, to its mask, and the cu_seq_lens_q of a data collator do; windows and chunks are those of the model,
and so are sinks and caps of scores, on the CPU. What longca cannot do (padding, dropout, caches, scores with a bias, other
masks, export) is an error of one sentence.
"""

import torch
from torch._subclasses import FakeTensor

from .._attention import attention
from .._mask import Mask

# What models hand over that changes the scores or the mask.
_REFUSED = ("position_bias", "indices", "block_indices", "sinks")
# Up to so many cells of a mask are all asked of the model.
_ALL_CELLS = 1 << 20


def register() -> None:
    """Makes "longca" a name that Transformers knows. Raises ImportError without it."""
    from transformers.masking_utils import AttentionMaskInterface
    from transformers.modeling_utils import AttentionInterface

    AttentionInterface.register("longca", attention_forward)
    AttentionMaskInterface.register("longca", visible_keys)


class Visible:
    """Which keys each query sees, in place of a tensor [batch, 1, queries, keys]: documents, later keys or not, a window.

    Models that compute attention themselves, and do not call longca, get an error from whatever they do with it. Those
    that hand it on to another model look at its shape alone.
    """

    ndim = 4

    def __init__(self, documents, causal, window, tokens):
        self.documents = documents  # cu_seqlens of each sequence, on the CPU; none: of other keys than the queries
        self.causal = causal
        self.window = window  # |query − key| at most; None: no limit
        self.shape = torch.Size([len(documents), 1, tokens, tokens])
        self.made = None

    @torch._disable_dynamo
    def masks(self, position_ids, cu_seq_lens_q):
        """A Mask for each sequence, made once for all layers. What attention is given may say documents where the mask
        does not."""
        if self.made is None or self.made[0] is not position_ids or self.made[1] is not cu_seq_lens_q:
            self.made = position_ids, cu_seq_lens_q, masks_of(self._packed(position_ids, cu_seq_lens_q), self.causal,
                                                              self.window)
        return self.made[2]

    def _packed(self, position_ids, cu_seq_lens_q):
        given = packed_by(position_ids, cu_seq_lens_q)
        if given is None or all(len(bounds) == 2 for bounds in given):
            return self.documents
        if all(len(bounds) == 2 for bounds in self.documents):
            return given
        known = [set(bounds.tolist()) for bounds in self.documents]
        for i, bounds in enumerate(given):
            if not set(bounds.tolist()) <= known[i if len(known) > 1 else 0]:
                raise NotImplementedError("the model's mask has chunks or documents, and not those of position_ids or "
                                          "cu_seq_lens_q: give position_ids, and use_cache=False")
        return self.documents

    _OTHERS = ("this model computes attention itself, or has a cache of fixed length, by a mask that is a tensor: longca is "
               "for training models that call Transformers' attention interface")

    def __getattr__(self, name):
        raise AttributeError(f"attention_mask.{name}: {self._OTHERS}")

    def __getitem__(self, _):
        raise NotImplementedError(self._OTHERS)

    @classmethod
    def __torch_function__(cls, *_, **__):
        raise NotImplementedError(cls._OTHERS)


def documents_of(position_ids):
    """cu_seqlens of one packed sequence: a document begins wherever positions do not go on."""
    positions = position_ids.flatten()
    starts = (positions[1:] != positions[:-1] + 1).nonzero().flatten() + 1
    return torch.cat([starts.new_zeros(1), starts, starts.new_full((1,), positions.numel())])


def packed_by(position_ids, cu_seq_lens_q):
    """cu_seqlens of each sequence, as attention is given them; None if it is not."""
    if cu_seq_lens_q is not None:
        return [cu_seq_lens_q.cpu()]
    return None if position_ids is None else [documents_of(row.cpu()) for row in position_ids]


def masks_of(documents, causal, window):
    return [Mask.from_cu_seqlens(bounds, causal=causal, window=window) for bounds in documents]


@torch._disable_dynamo
def visible_keys(batch_size, q_length, kv_length, q_offset=0, kv_offset=0, mask_function=None, attention_mask=None,
                 local_size=None, use_vmap=False, device="cpu", **_):
    """What Transformers calls for a mask. mask_function says of any query and key whether the one sees the other: it is
    asked about neighbours, and then whether it is what longca has made of the answers."""
    if isinstance(attention_mask, Visible):  # a model's, which another one inside it asks about
        return attention_mask
    if attention_mask is not None and not attention_mask.all():
        raise ValueError("attention_mask has padding: longca takes packed documents by position_ids instead")
    if use_vmap:
        raise NotImplementedError("the model has a mask function of its own: longca takes documents and windows")
    q_length, kv_length = int(q_length), int(kv_length)
    if q_length != kv_length or int(q_offset) != int(kv_offset):
        return None if q_length == 1 else Visible([], True, None, q_length)
    return _read(lambda b, q, k: mask_function(b, torch.zeros_like(b), q + q_offset, k + kv_offset), batch_size,
                 q_length, local_size, device)


def _read(function, batch, tokens, local_size, device):
    sequence = torch.arange(batch, device=device)[:, None]
    query = torch.arange(tokens, device=device).expand(batch, tokens)

    def sees(query, key):
        return function(sequence, query, key).expand(query.shape)

    begins = ~sees(query[:, 1:], query[:, :-1])
    if isinstance(begins, FakeTensor):
        raise NotImplementedError("which keys a query sees is asked of the mask's values, which there are none of in an "
                                  "export: longca exports no model of Transformers")
    causal = not sees(query[:, :-1], query[:, 1:]).any()
    first = torch.zeros_like(query)
    first[:, 1:] = torch.where(begins, query[:, 1:], 0)
    first = first.cummax(1).values  # of each query's document
    last = torch.full_like(query, tokens - 1)
    last[:, :-1] = torch.where(begins, query[:, :-1], tokens - 1)
    last = last.flip(1).cummin(1).values.flip(1)
    window = None
    if local_size is not None and local_size < tokens:
        beyond = query - local_size
        inside = beyond >= first
        # Causal windows count the query's own key, others do not.
        window = local_size - (0 if (sees(query, beyond.clamp(min=0)) & inside).any() else 1)

    reach = tokens if window is None else window
    right = torch.ones((), dtype=torch.bool, device=device)
    if batch * tokens * tokens <= _ALL_CELLS:
        query, first, last = (x[:, :, None].expand(-1, -1, tokens).flatten(1) for x in (query, first, last))
        keys = (torch.arange(tokens, device=device).repeat(tokens),)
    else:
        any_two = torch.randint(tokens, (2, *query.shape), generator=torch.Generator().manual_seed(0)).to(device)
        keys = (first - 1, first, query - reach - 1, query - reach, query - 1, query + 1, query + reach,
                query + reach + 1, last, last + 1, 0, tokens - 1, *any_two)
    for key in keys:
        key = torch.as_tensor(key, device=device).clamp(0, tokens - 1).expand(query.shape)
        wanted = (key >= first) & (key <= (query if causal else last)) & ((query - key).abs() <= reach)
        right &= (sees(query, key) == wanted).all()
    if not right:
        raise NotImplementedError("the model's mask is not one of documents and windows: longca takes no other here")
    starts = [row.nonzero().flatten() + 1 for row in begins.cpu()]
    documents = [torch.cat([row.new_zeros(1), row, row.new_full((1,), tokens)]) for row in starts]
    return Visible(documents, causal, window, tokens)


def attention_forward(module, query, key, value, attention_mask, scaling=None, dropout=0.0, sliding_window=None,
                      softcap=None, s_aux=None, position_ids=None, is_causal=None, cu_seq_lens_q=None,
                      cu_seq_lens_k=None, deterministic=None, **others):
    """What Transformers calls: tensors [batch, heads, tokens, dim]; returns ([batch, tokens, heads, dim], None)."""
    visible = attention_mask if isinstance(attention_mask, Visible) else None
    if attention_mask is not None and visible is None:
        raise ValueError("attention_mask is a tensor: longca takes packed documents by position_ids instead")
    for name in _REFUSED:
        if others.get(name) is not None:
            raise NotImplementedError(f"the model's attention has {name}: longca has none")
    if dropout:
        raise NotImplementedError(f"dropout = {dropout}: longca has none")
    batch, _, tokens, _ = query.shape
    if key.shape[2] != tokens:
        raise NotImplementedError(f"{tokens} queries over {key.shape[2]} keys: longca takes self-attention without a cache "
                                  "here, as in training")
    if cu_seq_lens_q is not None and cu_seq_lens_k is not None and not torch.equal(cu_seq_lens_q, cu_seq_lens_k):
        raise ValueError("cu_seq_lens_q and cu_seq_lens_k differ: longca takes documents of queries and their keys")
    if visible is not None and not visible.documents:
        raise ValueError("attention_mask is of another length than the input")
    if visible is not None:
        masks = visible.masks(position_ids, cu_seq_lens_q)
    else:
        causal = getattr(module, "is_causal", None) if is_causal is None else is_causal
        if causal is None:
            raise NotImplementedError(f"{type(module).__name__} has no mask, and does not say whether it is causal")
        window = None if sliding_window is None else sliding_window - 1  # which counts the query's own key there
        masks = masks_of(packed_by(position_ids, cu_seq_lens_q) or [[0, tokens]], causal, window)
    options = {"scale": scaling, "sink": s_aux, "softcap": softcap or 0.0, "deterministic": bool(deterministic)}
    if len(masks) == 1 or all(mask == masks[0] for mask in masks):
        o = attention(query, key, value, masks[0], **options)
    elif len(masks) != batch:
        raise ValueError(f"position_ids has {len(masks)} rows, the batch has {batch} sequences")
    else:
        o = torch.cat([attention(query[i:i + 1], key[i:i + 1], value[i:i + 1], mask, **options)
                       for i, mask in enumerate(masks)])
    return o.transpose(1, 2).contiguous(), None
