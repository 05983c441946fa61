"""Whether all ranks of a torch.distributed group make the same thing."""

import itertools
import json
import time

import torch.distributed as dist

# How long a rank waits for the others to make the same Partition.
TIMEOUT_S = 120.0

_counts = {}  # by group: how many partitions this process has made for it


def agree(group, description):
    """Raises ValueError that names a rank whose Partition is another one, by the store that all ranks share.

    A collective would hang where the ranks' groups differ. Each rank posts what it makes, and waits for the members of its
    group; one that waits for this rank in another group will never come."""
    me = dist.get_rank()
    members = sorted(dist.get_process_group_ranks(group if group is not None else dist.group.WORLD))
    if len(members) == 1:
        return
    store = dist.distributed_c10d._get_default_store()
    name = "-".join(map(str, members))
    count = _counts[name] = _counts.get(name, 0) + 1

    def key(rank, which=count):
        return f"longca/{name}/{which}/{rank}"

    text = json.dumps(description)
    store.set(key(me), text)
    store.set(f"longca/latest/{me}", json.dumps([members, count]))

    def refuse(sentence):
        store.set(f"longca/{name}/{count}/failed", sentence)
        raise ValueError(sentence)

    deadline = time.monotonic() + TIMEOUT_S
    for rank in members:
        for attempt in itertools.count():
            if store.check([key(rank)]):
                break
            if store.check([f"longca/{name}/{count}/failed"]):
                raise ValueError(store.get(f"longca/{name}/{count}/failed").decode())
            other = _other_group(store, rank, me, members)
            if other is not None:
                refuse(f"rank {rank} makes a Partition over the ranks {other}, rank {me} over {members}")
            if time.monotonic() > deadline:
                refuse(f"rank {rank} did not make the Partition of rank {me} over the ranks {members} within {TIMEOUT_S:.0f} s")
            time.sleep(min(0.05, 0.0005 * 2**attempt))
        theirs = json.loads(store.get(key(rank)).decode())
        if theirs["mask"] != description["mask"]:
            refuse(f"rank {rank} makes its Partition of another mask than rank {me}")
        for what, mine in description.items():
            if theirs[what] != mine:
                refuse(f"rank {rank} makes its Partition with {what} = {theirs[what]!r}, rank {me} with {mine!r}")
    if count > 2:  # everybody has read it: they have come to the one after it
        store.delete_key(key(me, count - 2))


def _other_group(store, rank, me, members):
    """The members of another group that `rank` makes a partition for and waits for this rank in; None if it does not."""
    if not store.check([f"longca/latest/{rank}"]):
        return None
    others, count = json.loads(store.get(f"longca/latest/{rank}").decode())
    waits = others != members and me in others and _counts.get("-".join(map(str, others)), 0) < count
    return others if waits else None
