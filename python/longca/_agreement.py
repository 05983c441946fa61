"""Whether all ranks of a torch.distributed group make the same thing."""

import itertools
import json
import time

import torch.distributed as dist

# After which a rank that waits looks which one is missing, and whether that one waits in another group.
PATIENCE_S = 0.1


def agree(group, description, timeout_s):
    """Raises ValueError that names a rank whose Partition is another one, by the store that all ranks share.

    A collective would hang where the ranks' groups differ. The rank that comes first posts what it makes, the others compare,
    and the last one to agree says so: as many operations of the store for each rank, however many there are. A rank that waits
    for this one in another group will never come, nor does a rank wait longer than the timeout."""
    me, members, store, count = _begin(group)
    if len(members) == 1:
        return
    attempt = _attempt(members, count)
    if store.add(f"{attempt}/steps", 1) == 1:
        store.set(f"{attempt}/first", json.dumps({"rank": me, **description}))
    else:
        _wait(store, attempt, "first", me, members, count, timeout_s)
        first = json.loads(store.get(f"{attempt}/first").decode())
        rank = first.pop("rank")
        if first["mask"] != description["mask"]:
            _refuse(store, attempt, f"rank {rank} makes its Partition of another mask than rank {me}")
        for what, mine in description.items():
            if first[what] != mine:
                _refuse(store, attempt, f"rank {rank} makes its Partition with {what} = {first[what]!r}, rank {me} with {mine!r}")
    if store.add(f"{attempt}/steps", 1) == 2 * len(members) and not store.check([f"{attempt}/verdict"]):
        store.set(f"{attempt}/verdict", "")
    else:
        _wait(store, attempt, "verdict", me, members, count, timeout_s)
    if count > 2:  # everybody has read it: they have come to the one after it
        for name, rank in zip(("steps", "first", "verdict"), itertools.cycle(members)):
            if rank == me:
                store.delete_key(f"{_attempt(members, count - 2)}/{name}")


def tell_failure(group, error):
    """In place of `agree`, where this rank cannot make its Partition: the others need not wait."""
    me, members, store, count = _begin(group)
    if len(members) > 1:
        store.set(f"{_attempt(members, count)}/verdict", f"rank {me} cannot make its Partition: {error}")


def _begin(group):
    """(this rank, the group's ranks, the store, which of the group's partitions this one is)"""
    me = dist.get_rank()
    members = sorted(dist.get_process_group_ranks(group if group is not None else dist.group.WORLD))
    store = dist.distributed_c10d._get_default_store()
    count = store.add(_counter(members, me), 1)
    while store.check([f"{_attempt(members, count)}/settled/{me}"]):
        count = store.add(_counter(members, me), 1)
    store.set(f"longca/latest/{me}", json.dumps([members, count]))
    return me, members, store, count


def _counter(members, rank):
    """Where the store has how many of a group's partitions a rank has come to, refused ones too. The process has no count:
    it may come to another store, or to this one as another rank."""
    return f"longca/{'-'.join(map(str, members))}/count/{rank}"


def _attempt(members, count):
    """Where the store has what belongs to one partition: `steps`, of which each rank takes one when it comes and one when it
    agrees; `first`, what the first rank to come makes; `verdict`, the sentence of a refusal, or nothing where all agree;
    `settled/RANK`, that this rank makes another one instead and that both were refused."""
    return f"longca/{'-'.join(map(str, members))}/{count}"


def _refuse(store, attempt, sentence):
    store.set(f"{attempt}/verdict", sentence)
    raise ValueError(sentence)


def _wait(store, attempt, name, me, members, count, timeout_s):
    """Until the store has `name` of the attempt. Raises ValueError with the verdict if that is a refusal."""
    begin = time.monotonic()
    missing = 0  # the members before this one have come
    for turn in itertools.count():
        if name != "verdict" and store.check([f"{attempt}/{name}"]):
            return
        if store.check([f"{attempt}/verdict"]):
            if sentence := store.get(f"{attempt}/verdict").decode():
                raise ValueError(sentence)
            return
        waited = time.monotonic() - begin
        if waited > PATIENCE_S:
            while missing < len(members) and _has_come(store, members[missing], members, count):
                missing += 1
            if missing < len(members):
                _look_elsewhere(store, attempt, members[missing], me, members)
        if waited > timeout_s:
            late = f"rank {members[missing]}" if missing < len(members) else "a rank"
            _refuse(store, attempt,
                    f"{late} did not make the Partition of rank {me} over the ranks {members} within {timeout_s:g} s")
        time.sleep(min(0.01, 5e-5 * 1.5**min(turn, 20)))


def _has_come(store, rank, members, count):
    """Whether a rank has come to this partition of the group, or to a later one."""
    others, their_count = _latest(store, rank)
    return others == members and their_count >= count


def _latest(store, rank):
    """(members, count) of the partition that a rank came to last."""
    if not store.check([f"longca/latest/{rank}"]):
        return [], 0
    return json.loads(store.get(f"longca/latest/{rank}").decode())


def _look_elsewhere(store, attempt, rank, me, members):
    """Raises ValueError if `rank`, which has not come, makes another group's partition and waits for this rank in it."""
    others, their_count = _latest(store, rank)
    if others == members or me not in others or store.add(_counter(others, me), 0) >= their_count:
        return
    theirs = _attempt(others, their_count)
    if store.check([f"{theirs}/settled/{me}"]):
        return
    sentence = f"rank {rank} makes a Partition over the ranks {others}, rank {me} over {members}"
    # First, so that a rank that was refused in the one does not come to the other.
    store.set(f"{theirs}/settled/{me}", "1")
    store.set(f"{attempt}/settled/{rank}", "1")
    store.set(f"{theirs}/verdict", sentence)
    _refuse(store, attempt, sentence)
