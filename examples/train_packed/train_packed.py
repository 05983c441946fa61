"""Trains a small Llama on packed documents, by longca and by PyTorch's SDPA with the explicit mask, and compares.

    python examples/train_packed/train_packed.py --steps 200
    python examples/train_packed/train_packed.py --device cuda --with flex,fa4 --plot losses.svg
    torchrun --nproc-per-node 4 examples/train_packed/train_packed.py --scheme magi

The model is made here and the documents are drawn, so that nothing is downloaded. Documents have lengths of prolong64k, and
tokens follow a rule that can be learned within a document. All runs begin with the same weights and see the same tokens.

In bfloat16 the model runs under torch.autocast, as such models are trained: projections and attention are in bfloat16,
weights, their updates, the sum that goes from layer to layer, norms and the loss in float32. The same attention is thus
rounded once more or less, and losses move apart by that, but an update that is below a bfloat16 weight's last bit is not lost.
Where the loss falls steeply, training amplifies roundings: where the rule is learned so well that the loss comes below 1, two
correct attentions are more than 1e-3 apart. 200 steps with the defaults end before that.

Exit code 1 if longca's losses differ from SDPA's by more than the tolerance, or if a changed token moves anything but the
later positions of its own document; 2 if the arguments ask for what is not there. Under torchrun the ranks share each
sequence by longca.parallel; the other attentions run whole on each of them.
"""

import argparse
import dataclasses
import difflib
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

import attentions
import chart
import longca
import longca.parallel
from model import HEADS, KV_HEADS, VOCABULARY, Llama, draw

TOLERANCES = {torch.float32: 1e-5, torch.bfloat16: 1e-3}  # largest relative difference of a loss


@dataclasses.dataclass(frozen=True)
class Defaults:
    """Of the options that depend on the device. In its default build longca has head dimensions of 64 and 128 on a GPU."""

    dtype: str
    dim: int
    tokens: int
    lr: float
    warmup: int


DEFAULTS = {"cpu": Defaults("float32", dim=32, tokens=1024, lr=1e-3, warmup=2),
            "cuda": Defaults("bfloat16", dim=128, tokens=8192, lr=3e-4, warmup=10)}


class Whole:
    """One rank has the whole sequence."""

    def __init__(self, attention):
        self._attention = attention

    def logits(self, model, tokens, mask):
        return model(tokens, mask.position_ids, self._attention(mask))

    def loss(self, model, tokens, targets, mask):
        loss = F.cross_entropy(self.logits(model, tokens, mask), targets)
        loss.backward()
        return loss.item()


class Shared:
    """Ranks share the sequence; gradients of the weights are summed."""

    def __init__(self, options):
        self._options = options

    def _own_logits(self, model, tokens, mask):
        """Of this rank's tokens; and the partition that says which they are."""
        partition = longca.parallel.Partition(mask, scheme=self._options.scheme, heads=(HEADS, KV_HEADS), dim=self._options.dim)
        return model(partition.shard(tokens), partition.position_ids,
                     lambda q, k, v: longca.parallel.attention(q, k, v, partition)), partition

    def logits(self, model, tokens, mask):
        logits, partition = self._own_logits(model, tokens, mask)
        return partition.unshard(logits)

    def loss(self, model, tokens, targets, mask):
        logits, partition = self._own_logits(model, tokens, mask)
        loss = F.cross_entropy(logits, partition.shard(targets), reduction="sum") / tokens.numel()
        loss.backward()
        total = loss.detach().clone()
        dist.all_reduce(total)
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        return total.item()


@dataclasses.dataclass
class Run:
    name: str
    losses: list
    tokens_per_s: float
    model: Llama

    def differences(self, reference):
        """Of each step's loss, relative to the reference's, float64 [steps]."""
        wanted = torch.tensor(reference.losses, dtype=torch.float64)
        return (torch.tensor(self.losses, dtype=torch.float64) - wanted).abs() / wanted.abs()

    def difference(self, reference):
        """The largest; NaN if any is."""
        return self.differences(reference).max().item()


def train(name, kind, options):
    torch.manual_seed(0)
    model = Llama(options.dim, options.dtype).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    progress = Progress(name, options.steps)
    losses, seconds = [], 0.0
    for step in range(options.steps):
        batch = draw(step, options.tokens, options.device)
        begin = now(options.device)
        optimizer.zero_grad()
        losses.append(kind.loss(model, *batch))
        optimizer.step()
        if step >= options.warmup:
            seconds += now(options.device) - begin
        progress.show(losses[-1])
    return Run(name, losses, options.tokens * (options.steps - options.warmup) / seconds, model)


def now(device):
    """Seconds, once the device has done what was queued."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


class Progress:
    """Of a run on standard error, by rank 0: a bar on a terminal, by tqdm if it is installed; elsewhere the last step."""

    def __init__(self, name, steps):
        self._name, self._steps, self._step, self._bar = name, steps, 0, None
        if first_rank() and sys.stderr.isatty():
            try:
                import tqdm
                self._bar = tqdm.tqdm(total=steps, desc=f"{name:8}", unit="step")
            except ImportError:
                pass

    def show(self, loss):
        self._step += 1
        last = self._step == self._steps
        if self._bar is None:
            show(f"{self._name:8} step {self._step:4} of {self._steps}   loss {loss:.5f}", last)
            return
        self._bar.set_postfix_str(f"loss {loss:.5f}", refresh=last)
        self._bar.update()
        if last:
            self._bar.close()


def show(line, last):
    if first_rank() and (sys.stderr.isatty() or last):
        print(f"\r{line}", end="\n" if last else "", file=sys.stderr, flush=True)


def first_rank():
    return os.environ.get("RANK", "0") == "0"


@torch.no_grad()
def contaminated(model, kind, options):
    """How many positions move when a token in the middle of a document changes, but should not; and the share of the others,
    the changed one and the later ones of its document, that do."""
    tokens, mask = several_documents(options)
    lengths = mask.lengths
    before_last = lengths[:-1] or lengths  # a causal mask alone keeps the last one from moving another
    longest = before_last.index(max(before_last))
    begin = sum(lengths[:longest])
    changed, end = begin + lengths[longest] // 2, begin + lengths[longest]
    other = tokens.clone()
    other[changed] = (other[changed] + 1) % VOCABULARY
    before, after = (kind.logits(model, x, mask) for x in (tokens, other))
    moved = (before != after).any(dim=1)
    strangers = moved[:changed].sum() + moved[end:].sum()
    return strangers.item(), moved[changed:end].double().mean().item()


def several_documents(options):
    """(tokens, mask) of a sequence that was not trained on, with more than one document unless it is too short for that."""
    for step in range(options.steps, options.steps + 100):
        tokens, _, mask = draw(step, options.tokens, options.device)
        if len(mask.lengths) > 1:
            break
    return tokens, mask


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=at_least(1), default=200)
    parser.add_argument("--device", choices=("cpu", "cuda"), help="by default cuda if PyTorch sees a GPU")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), help="by default float32 on the CPU, bfloat16 on a GPU")
    parser.add_argument("--tokens", type=at_least(1), help="of a sequence; by default 1024 on the CPU, 8192 on a GPU")
    parser.add_argument("--dim", type=at_least(2), help="of a head, even; by default 32 on the CPU, 128 on a GPU")
    parser.add_argument("--lr", type=float, help="of AdamW; by default 1e-3 on the CPU, 3e-4 on a GPU")
    parser.add_argument("--scheme", default="magi", choices=longca.parallel.SCHEMES, help="of several ranks")
    parser.add_argument("--with", type=names, default=[], dest="others", metavar="LIST",
                        help="further attentions to time beside longca and sdpa, of flex and fa4")
    parser.add_argument("--warmup", type=at_least(0),
                        help="first steps that do not count in tokens per second; by default 2 on the CPU, 10 on a GPU")
    parser.add_argument("--tolerance", type=float,
                        help="largest relative difference of a loss; by default 1e-5 in float32, 1e-3 in bfloat16")
    parser.add_argument("--plot", type=chart.path, metavar="FILE", help="losses and speeds as svg, png or pdf, by matplotlib")
    options = parser.parse_args()
    if (options.dim or 0) % 2:
        parser.error(f"argument --dim: {options.dim}: RoPE needs an even one")
    options.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    for name, value in dataclasses.asdict(DEFAULTS[options.device]).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    options.device, options.dtype = torch.device(options.device), getattr(torch, options.dtype)
    options.tolerance = TOLERANCES[options.dtype] if options.tolerance is None else options.tolerance
    options.warmup = min(options.warmup, options.steps - 1)
    return options


def at_least(limit):
    def number(text):
        if int(text) < limit:
            raise argparse.ArgumentTypeError(f"{text}: at least {limit}")
        return int(text)

    return number


def names(text):
    """Names of attentions, without longca and sdpa, which always run."""
    chosen = list(dict.fromkeys(text.split(",")))
    for name in chosen:
        if name not in attentions.LOADERS:
            near = difflib.get_close_matches(name, attentions.LOADERS, n=1)
            raise argparse.ArgumentTypeError(f"there is no attention '{name}'" + (f": '{near[0]}' is meant?" if near else ""))
    return [name for name in chosen if name not in ("longca", "sdpa")]


def prepare(options):
    """The kinds by name, longca's first and sdpa's second; exit code 2 and one sentence if something is not there."""
    try:
        if options.device.type == "cuda":
            choose_gpu()
        if options.plot:
            chart.require()
        kinds = {name: Whole(attentions.load(name, options.device)) for name in ("longca", "sdpa", *options.others)}
        if dist.is_torchelastic_launched():
            dist.init_process_group("cpu:gloo,cuda:nccl" if options.device.type == "cuda" else "gloo")
            kinds["longca"] = Shared(options)
        for name, kind in kinds.items():
            attempt(name, kind, options)
        return kinds
    except (attentions.Unavailable, chart.Unavailable) as refusal:
        if first_rank():
            print(f"train_packed: {refusal}", file=sys.stderr)
        sys.exit(2)


def attempt(name, kind, options):
    """A step of a model that is thrown away; raises Unavailable."""
    try:
        kind.loss(Llama(options.dim, options.dtype).to(options.device), *draw(0, options.tokens, options.device))
    except Exception as failure:  # of a package or of PyTorch's compiler: of any type, and many lines long
        sentence = " ".join(str(failure).split("\n")[:2])
        dtype = str(options.dtype).removeprefix("torch.")
        raise attentions.Unavailable(f"{name} does not run on {options.device.type} in {dtype} with head dimension "
                                     f"{options.dim}: {sentence}") from None


def choose_gpu():
    if not torch.cuda.is_available():
        raise attentions.Unavailable("PyTorch sees no GPU: --device cpu")
    gpus, rank = torch.cuda.device_count(), int(os.environ.get("LOCAL_RANK", "0"))
    if int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > gpus:
        raise attentions.Unavailable(f"{os.environ['LOCAL_WORLD_SIZE']} ranks need a GPU each, here are {gpus}: "
                                     f"--nproc-per-node {gpus}, or --device cpu")
    torch.cuda.set_device(rank)


def main():
    options = parse()
    kinds = prepare(options)
    runs = [train(name, kind, options) for name, kind in kinds.items()]
    ours, reference = runs[:2]
    difference = ours.difference(reference)
    strangers, followers = contaminated(ours.model, kinds["longca"], options)
    good = difference <= options.tolerance and strangers == 0 and followers == 1
    show(f"loss {ours.losses[0]:.4f} -> {ours.losses[-1]:.4f}, at most {difference:.1e} from sdpa's (allowed: "
         f"{options.tolerance:.0e}); a changed token moved {strangers} positions that it must not and {followers:.0%} of those "
         f"that it should; tokens/s without the first {options.warmup} steps: " +
         ", ".join(speed_of(run, reference) for run in runs), last=True)
    if options.plot and first_rank():
        chart.save(options.plot, runs, reference, options, dist.get_world_size() if dist.is_initialized() else 1)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()
    sys.exit(0 if good else 1)


def speed_of(run, reference):
    further = run.name not in ("longca", "sdpa")
    return f"{run.name} {run.tokens_per_s:.0f}" + (f" (losses {run.difference(reference):.1e} from sdpa's)" if further else "")


if __name__ == "__main__":
    main()
