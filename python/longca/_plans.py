"""Plans of the library, kept by mask and shape."""

import ctypes
import os
import threading
import time

import torch

from ._library import Problem, lib, made, released_with

DTYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}
DEVICES = {"cpu": 0, "cuda": 1}

# The plans that were used last are kept, up to so many and to so much workspace together; those of masks that somebody
# holds, as the layers of a model with several masks do, up to this part of a GPU's memory if that is more.
MAX_PLANS = 64
MAX_WORKSPACE_BYTES = 1 << 30
MAX_PART_OF_GPU = 1 / 16
# How tensors of calls lie (_attention._Call): all are forgotten at so many, and with each new plan.
MAX_CALLS = 1024


class Plan:
    """A plan of the library for a core and a shape (see Plans.find)."""

    def __init__(self, core, heads_q, heads_k, head_dim, head_dim_v, dtype, device, scale, deterministic, softcap, sink,
                 backward):
        problem = Problem(ctypes.sizeof(Problem), heads_q, heads_k, head_dim, DTYPES[dtype], DEVICES[device],
                          backward, deterministic, scale, None, None, softcap, sink, head_dim_v)
        begin = time.perf_counter()
        self.pointer = made(lib.longca_plan_create, ctypes.byref(problem), core.pointer)
        self.made_in_ms = (time.perf_counter() - begin) * 1e3
        released_with(self, lib.longca_plan_release, self.pointer)
        self.core = core  # keeps the mask, so that an equal one finds its plans
        self.backward = backward

    def workspace_bytes(self):
        return lib.longca_plan_workspace_bytes(self.pointer)


def workspace_limit():
    """Of the plans of masks that are held."""
    if not torch.cuda.is_initialized():
        return MAX_WORKSPACE_BYTES
    index = int(os.environ.get("LONGCA_DEVICE") or 0)
    return max(MAX_WORKSPACE_BYTES, int(torch.cuda.get_device_properties(index).total_memory * MAX_PART_OF_GPU))


class Plans:
    _of_parents = []

    def __init__(self):
        self._lock = threading.Lock()
        self._plans = {}
        self._calls = {}
        self.hits = self.misses = self.evictions = 0
        self.plan_ms = 0.0

    def after_fork(self):
        """Forgets all plans in a child: a thread of the parent may have been in a call of any, and left it, or the lock,
        locked for ever. They are kept, as releasing one waits for its call too."""
        self._of_parents.append((self._plans, self._calls))
        self.__init__()

    def call(self, key):
        """What `keep` was given for this key, as long as its plan is kept; None if there is nothing."""
        with self._lock:
            found = self._calls.get(key)
            if found is not None:
                self.hits += 1
                found.plan.last_use = self.hits + self.misses
            return found

    def keep(self, key, call):
        """Keeps a call, which has a plan, and returns it."""
        with self._lock:
            if len(self._calls) >= MAX_CALLS:
                self._calls.clear()
            if call.plan in self._plans.values():
                self._calls[key] = call
        return call

    def find(self, key, backward):
        """The plan for key = (core, heads_q, heads_k, head_dim, head_dim_v, dtype, device type, scale, deterministic,
        softcap, sink, stream)."""
        with self._lock:
            plan = self._plans.get(key)
            if plan is not None and (plan.backward or not backward):
                self.hits += 1
                plan.last_use = self.hits + self.misses
                return plan
            self.misses += 1
        plan = Plan(*key[:-1], backward)
        with self._lock:
            self.plan_ms += plan.made_in_ms
            plan.last_use = self.hits + self.misses
            self._plans[key] = plan  # in place of one without a backward pass
            self._calls.clear()
            self._evict()
        return plan

    def _evict(self):
        """All but the latest plan may go, those of masks that nobody holds first, and of these the oldest."""
        workspace = self.workspace_bytes()
        latest = max(plan.last_use for plan in self._plans.values())
        order = sorted(self._plans.items(), key=lambda item: (item[1].core.is_held(), item[1].last_use))
        for key, plan in order:
            limit = workspace_limit() if plan.core.is_held() else MAX_WORKSPACE_BYTES
            if len(self._plans) <= MAX_PLANS and workspace <= limit or plan.last_use == latest:
                continue
            del self._plans[key]
            workspace -= plan.workspace_bytes()
            self.evictions += 1

    def workspace_bytes(self):
        return sum(plan.workspace_bytes() for plan in self._plans.values())

    def stats(self):
        with self._lock:
            return {
                "plans": len(self._plans),
                "hits": self.hits,
                "misses": self.misses,
                "evictions": self.evictions,
                "plan_ms": self.plan_ms,
                "workspace_bytes": self.workspace_bytes(),
            }


plans = Plans()
os.register_at_fork(after_in_child=plans.after_fork)


def plan_stats() -> "dict[str, float]":
    """What plans have cost in this process: `plans` kept now, with their `workspace_bytes`; `hits` and `misses` of
    calls that looked for one; `evictions`; and `plan_ms`, the time that making them took, in milliseconds."""
    return plans.stats()


def use_device(index):
    """The library uses one GPU per process: the first one that a tensor is on."""
    chosen = os.environ.get("LONGCA_DEVICE") or os.environ.setdefault("LONGCA_DEVICE", str(index)) or "0"
    if chosen != str(index):
        raise ValueError(f"q is on cuda:{index}, and this process uses cuda:{chosen} (LONGCA_DEVICE): one GPU per process")


__all__ = ["DTYPES", "Plan", "plan_stats", "plans", "use_device"]
