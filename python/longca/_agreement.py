"""Whether all ranks of a torch.distributed group make the same thing."""

import itertools
import json
import time

import torch.distributed as dist

# How long a rank waits for the others to make the same Partition.
TIMEOUT_S = 120.0

_counts = {}  # by a group's members: how many partitions this process has come to, refused ones too


def agree(group, description):
    """Raises ValueError that names a rank whose Partition is another one, by the store that all ranks share.

    A collective would hang where the ranks' groups differ. Each rank posts what it makes, and waits for the members of its
    group; one that waits for this rank in another group will never come."""
    me, members, store, count = _begin(group)
    if len(members) == 1:
        return
    attempt = _attempt(members, count)
    text = json.dumps(description)
    store.set(f"{attempt}/{me}", text)

    def refuse(sentence):
        store.set(f"{attempt}/failed", sentence)
        raise ValueError(sentence)

    deadline = time.monotonic() + TIMEOUT_S
    for rank in members:
        for turn in itertools.count():
            if store.check([f"{attempt}/{rank}"]):
                break
            if store.check([f"{attempt}/failed"]):
                raise ValueError(store.get(f"{attempt}/failed").decode())
            other = _other_group(store, rank, me, members)
            if other is not None:
                others, their_count = other
                theirs = _attempt(others, their_count)
                sentence = f"rank {rank} makes a Partition over the ranks {others}, rank {me} over {members}"
                # First, so that a rank that was refused in the one does not come to the other.
                store.set(f"{theirs}/settled/{me}", "1")
                store.set(f"{attempt}/settled/{rank}", "1")
                store.set(f"{theirs}/failed", sentence)
                refuse(sentence)
            if time.monotonic() > deadline:
                refuse(f"rank {rank} did not make the Partition of rank {me} over the ranks {members} within {TIMEOUT_S:.0f} s")
            time.sleep(min(0.05, 0.0005 * 2**turn))
        theirs = json.loads(store.get(f"{attempt}/{rank}").decode())
        if theirs["mask"] != description["mask"]:
            refuse(f"rank {rank} makes its Partition of another mask than rank {me}")
        for what, mine in description.items():
            if theirs[what] != mine:
                refuse(f"rank {rank} makes its Partition with {what} = {theirs[what]!r}, rank {me} with {mine!r}")
    if count > 2:  # everybody has read it: they have come to the one after it
        store.delete_key(f"{_attempt(members, count - 2)}/{me}")


def tell_failure(group, error):
    """In place of `agree`, where this rank cannot make its Partition: the others need not wait."""
    me, members, store, count = _begin(group)
    if len(members) > 1:
        store.set(f"{_attempt(members, count)}/failed", f"rank {me} cannot make its Partition: {error}")


def _begin(group):
    """(this rank, the group's ranks, the store, which of the group's partitions this one is)"""
    me = dist.get_rank()
    members = sorted(dist.get_process_group_ranks(group if group is not None else dist.group.WORLD))
    store = dist.distributed_c10d._get_default_store()
    count = _count(members) + 1
    while store.check([f"{_attempt(members, count)}/settled/{me}"]):
        count += 1
    _counts[tuple(members)] = count
    store.set(f"longca/latest/{me}", json.dumps([members, count]))
    return me, members, store, count


def _count(members):
    return _counts.get(tuple(members), 0)


def _attempt(members, count):
    """Where the store has what belongs to one partition: `RANK`, what it makes; `failed`, the sentence of a refusal;
    `settled/RANK`, that this rank makes another one instead and that both were refused."""
    return f"longca/{'-'.join(map(str, members))}/{count}"


def _other_group(store, rank, me, members):
    """(members, count) of another group's partition, which `rank` makes and waits for this rank in; None if it does not."""
    if not store.check([f"longca/latest/{rank}"]):
        return None
    others, count = json.loads(store.get(f"longca/latest/{rank}").decode())
    waits = others != members and me in others and _count(others) < count
    return None if not waits or store.check([f"{_attempt(others, count)}/settled/{me}"]) else (others, count)
