"""The model of train_packed.py, and the sequences that it learns."""

import torch
import torch.nn.functional as F

import longca

VOCABULARY, WIDTH, LAYERS, HEADS, KV_HEADS = 96, 128, 2, 4, 2


class Layer(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.before_attention, self.before_mlp = torch.nn.RMSNorm(WIDTH), torch.nn.RMSNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, (HEADS + 2 * KV_HEADS) * dim, bias=False)
        self.out = torch.nn.Linear(HEADS * dim, WIDTH, bias=False)
        self.gate, self.up = (torch.nn.Linear(WIDTH, 3 * WIDTH, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(3 * WIDTH, WIDTH, bias=False)

    def forward(self, x, rope, attend):
        q, k, v = self.qkv(self.before_attention(x)).unflatten(-1, (-1, self.dim)).split([HEADS, KV_HEADS, KV_HEADS], dim=1)
        x = x + self.out(attend(rotate(q, rope), rotate(k, rope), v).flatten(1))
        y = self.before_mlp(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(torch.nn.Module):
    def __init__(self, dim, dtype):
        super().__init__()
        self.dim, self.dtype = dim, dtype
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList(Layer(dim) for _ in range(LAYERS))
        self.norm, self.head = torch.nn.RMSNorm(WIDTH), torch.nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens, position_ids, attend):
        """Logits, float32 [tokens, vocabulary]."""
        with torch.autocast(tokens.device.type, self.dtype, enabled=self.dtype != torch.float32):
            x, rope = self.embedding(tokens), rope_of(position_ids.to(tokens.device), self.dim)
            for layer in self.layers:
                x = layer(x, rope, attend)
            return self.head(self.norm(x)).float()


def rope_of(position_ids, dim):
    """cos and sin of RoPE, float32 [tokens, 1, dim / 2]."""
    frequencies = 10000.0 ** (-torch.arange(0, dim, 2, device=position_ids.device) / dim)
    angles = position_ids[:, None, None] * frequencies
    return angles.cos(), angles.sin()


def rotate(x, rope):
    cos, sin = rope
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).to(x.dtype)


def draw(step, tokens, device):
    """(tokens, next tokens, mask) of one packed sequence: token = sum of the two before it, mod the vocabulary."""
    mask = longca.Mask("causal_document", tokens, lengths="prolong64k", seed=step)
    generator = torch.Generator().manual_seed(step)
    parts = []
    for length in mask.lengths:
        document = torch.randint(VOCABULARY, (2,), generator=generator).tolist()
        while len(document) < length + 1:
            document.append((document[-1] + document[-2]) % VOCABULARY)
        parts.append(torch.tensor(document[:length + 1]))
    return torch.cat([d[:-1] for d in parts]).to(device), torch.cat([d[1:] for d in parts]).to(device), mask
