"""Trains a small Llama on packed documents, by longca and by PyTorch's SDPA with the explicit mask, and compares.

    python examples/train_packed/train_packed.py --steps 200
    torchrun --nproc-per-node 4 examples/train_packed/train_packed.py --scheme magi

The model is made here and the documents are drawn, so that nothing is downloaded. Documents have lengths of prolong64k, and
tokens follow a rule that can be learned within a document. Both runs begin with the same weights and see the same tokens.
Exit code 1 if the losses differ by more than the tolerance, or if a changed token moves anything but the later positions of its
own document. Under torchrun the ranks share each sequence by longca.parallel; SDPA runs whole on each of them.
"""

import argparse
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

import longca
import longca.parallel

VOCABULARY, WIDTH, LAYERS, HEADS, KV_HEADS, DIM = 96, 128, 2, 4, 2, 32


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before_attention, self.before_mlp = torch.nn.RMSNorm(WIDTH), torch.nn.RMSNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, (HEADS + 2 * KV_HEADS) * DIM, bias=False)
        self.out = torch.nn.Linear(HEADS * DIM, WIDTH, bias=False)
        self.gate, self.up = (torch.nn.Linear(WIDTH, 3 * WIDTH, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(3 * WIDTH, WIDTH, bias=False)

    def forward(self, x, rope, attend):
        q, k, v = self.qkv(self.before_attention(x)).unflatten(-1, (-1, DIM)).split([HEADS, KV_HEADS, KV_HEADS], dim=1)
        x = x + self.out(attend(rotate(q, rope), rotate(k, rope), v).flatten(1))
        y = self.before_mlp(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = torch.nn.RMSNorm(WIDTH), torch.nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens, position_ids, attend):
        x, rope = self.embedding(tokens), rope_of(position_ids)
        for layer in self.layers:
            x = layer(x, rope, attend)
        return self.head(self.norm(x))


def rope_of(position_ids):
    """cos and sin of RoPE, [tokens, 1, dim / 2]."""
    frequencies = 10000.0 ** (-torch.arange(0, DIM, 2) / DIM)
    angles = position_ids[:, None, None] * frequencies
    return angles.cos(), angles.sin()


def rotate(x, rope):
    cos, sin = rope
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def draw(step, tokens):
    """(tokens, next tokens, mask) of one packed sequence: token = sum of the two before it, mod the vocabulary."""
    mask = longca.Mask("causal_document", tokens, lengths="prolong64k", seed=step)
    generator = torch.Generator().manual_seed(step)
    parts = []
    for length in mask.lengths:
        document = torch.randint(VOCABULARY, (2,), generator=generator).tolist()
        while len(document) < length + 1:
            document.append((document[-1] + document[-2]) % VOCABULARY)
        parts.append(torch.tensor(document[:length + 1]))
    return torch.cat([d[:-1] for d in parts]), torch.cat([d[1:] for d in parts]), mask


def by_longca(mask):
    return lambda q, k, v: longca.attention(q, k, v, mask)


def by_sdpa(mask):
    allowed = mask.dense()

    def attend(q, k, v):
        q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, enable_gqa=True)[0].transpose(0, 1)

    return attend


class Whole:
    """One rank has the whole sequence."""

    def __init__(self, attention):
        self._attention = attention

    def loss(self, model, tokens, targets, mask):
        logits = model(tokens, mask.position_ids, self._attention(mask))
        loss = F.cross_entropy(logits, targets)
        loss.backward()
        return loss.item()


class Shared:
    """Ranks share the sequence; gradients of the weights are summed."""

    def __init__(self, scheme):
        self._scheme = scheme

    def loss(self, model, tokens, targets, mask):
        partition = longca.parallel.Partition(mask, scheme=self._scheme, heads=(HEADS, KV_HEADS), dim=DIM)
        logits = model(partition.shard(tokens), partition.position_ids,
                       lambda q, k, v: longca.parallel.attention(q, k, v, partition))
        loss = F.cross_entropy(logits, partition.shard(targets), reduction="sum") / tokens.numel()
        loss.backward()
        total = loss.detach().clone()
        dist.all_reduce(total)
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        return total.item()


def train(name, kind, options):
    """The losses and the tokens per second."""
    torch.manual_seed(0)
    model = Llama()
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    losses, seconds = [], 0.0
    for step in range(options.steps):
        batch = draw(step, options.tokens)
        begin = time.perf_counter()
        optimizer.zero_grad()
        losses.append(kind.loss(model, *batch))
        optimizer.step()
        seconds += time.perf_counter() - begin
        show(f"{name:8} step {step + 1:4} of {options.steps}   loss {losses[-1]:.5f}", last=step + 1 == options.steps)
    return losses, options.tokens * options.steps / seconds, model


def show(line, last):
    if dist.is_initialized() and dist.get_rank() > 0:
        return
    if sys.stderr.isatty() or last:
        print(f"\r{line}", end="\n" if last else "", file=sys.stderr, flush=True)


@torch.no_grad()
def contaminated(model, options):
    """Positions that move when a token in the middle of a document changes, but should not; and whether later ones do."""
    tokens, _, mask = draw(options.steps, options.tokens)
    lengths = mask.lengths
    longest = lengths.index(max(lengths))
    begin = sum(lengths[:longest])
    changed = begin + lengths[longest] // 2
    other = tokens.clone()
    other[changed] = (other[changed] + 1) % VOCABULARY
    before, after = (model(x, mask.position_ids, by_longca(mask)) for x in (tokens, other))
    moved = (before != after).any(dim=1)
    allowed = torch.zeros_like(moved)
    allowed[changed:begin + lengths[longest]] = True
    return (moved & ~allowed).nonzero().flatten().tolist(), bool(moved[changed:begin + lengths[longest]].all())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--scheme", default="magi", choices=longca.parallel.SCHEMES, help="of several ranks")
    parser.add_argument("--tolerance", type=float, default=1e-5, help="largest relative difference of a loss")
    options = parser.parse_args()
    kind = Whole(by_longca)
    if dist.is_torchelastic_launched():
        dist.init_process_group("gloo")
        kind = Shared(options.scheme)

    losses, speed, model = train("longca", kind, options)
    wanted, sdpa_speed, _ = train("sdpa", Whole(by_sdpa), options)
    difference = max(abs(a - b) / abs(b) for a, b in zip(losses, wanted))
    strangers, later = contaminated(model, options)
    good = difference <= options.tolerance and not strangers and later
    show(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, at most {difference:.1e} from sdpa's (allowed: {options.tolerance:.0e}); "
         f"a changed token moved {len(strangers)} positions that it must not; "
         f"{speed:.0f} tokens/s, sdpa {sdpa_speed:.0f}", last=True)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
