"""How ranks of a torch.distributed group send each other what a plan of the library asks for."""

import collections
import ctypes
import os
import threading

import torch
import torch.distributed as dist

from ._library import FinishMessages, StartMessages, Transport, lib, made


class _Callbacks:
    """A longca_transport of the methods `_begin(group, receives, sends)` and `_end(group)`."""

    _lock = threading.Lock()  # a rank sends for one plan at a time

    def __init__(self, group):
        self._group = group
        self._failure = None
        self._callbacks = StartMessages(self._start), FinishMessages(self._finish)
        self.functions = Transport(None, *self._callbacks)

    def run(self, call):
        """Calls the library; what a callback raised comes out of here."""
        with self._lock:
            self._failure = None
            try:
                return call()
            except Exception:
                if self._failure is None:
                    raise
                failure, self._failure = self._failure, None  # kept, its traceback would keep the callers' frames
                try:
                    raise failure from None
                finally:
                    del failure

    @classmethod
    def _after_fork(cls):
        """Another thread may have held the lock, and will not release it here."""
        cls._lock = threading.Lock()

    def _guard(self, body):
        try:
            body()
            return 0
        except BaseException as failure:  # KeyboardInterrupt too: none may reach C, each comes out of run()
            self._failure = failure
            return 1

    def _start(self, _, group, receives, receive_count, sends, send_count):
        return self._guard(lambda: self._begin(group, receives[:receive_count], sends[:send_count]))

    def _finish(self, _, group):
        return self._guard(lambda: self._end(group))


os.register_at_fork(after_in_child=_Callbacks._after_fork)


class TensorMessages(_Callbacks):
    """Messages of a plan on CPUs as point-to-point operations of a group."""

    def __init__(self, group):
        super().__init__(group)
        self._works, self._buffers = {}, {}

    def _peers(self, messages):
        """(global rank, the message's bytes as a tensor) of each; they stay the same for a group of messages."""
        views = []
        for message in messages:
            memory = (ctypes.c_char * message.bytes).from_address(message.data)
            peer = message.peer if self._group is None else dist.get_global_rank(self._group, message.peer)
            views.append((peer, torch.frombuffer(memory, dtype=torch.uint8)))
        return views

    def _begin(self, group, receives, sends):
        if group not in self._buffers:
            with torch.inference_mode(False):  # later calls, which may be outside of it, write to them
                self._buffers[group] = self._peers(receives), self._peers(sends)
        incoming, outgoing = self._buffers[group]
        works = [dist.irecv(view, src=peer, group=self._group) for peer, view in incoming]
        works += [dist.isend(view, dst=peer, group=self._group) for peer, view in outgoing]
        self._works[group] = works

    def _end(self, group):
        for work in self._works.pop(group):
            work.wait()


class StoreMessages(_Callbacks):
    """Small messages between hosts by the store that all processes share, whatever a group's backend can send."""

    def __init__(self, group, transport):
        super().__init__(group)
        self._members = dist.get_process_group_ranks(group if group is not None else dist.group.WORLD)
        self._me = self._members.index(dist.get_rank())
        self._name = self._namespace(transport)
        self._counts = collections.Counter()
        self._coming = []

    def _namespace(self, transport):
        """What the store's keys for these messages begin with. Messages of the same ranks over another transport, or of an
        attempt that failed before, have other keys. The store counts the attempts: a process may come to another store."""
        among = f"longca/hosts/{'-'.join(map(str, self._members))}/{transport or 'any'}"
        return f"{among}/{_store().add(f'{among}/count/{self._me}', 1)}"

    def _key(self, sender, receiver):
        pair = sender, receiver
        self._counts[pair] += 1
        return f"{self._name}/{sender}-{receiver}/{self._counts[pair]}"

    def _begin(self, _, receives, sends):
        store = _store()
        for message in sends:
            store.set(self._key(self._me, message.peer), ctypes.string_at(message.data, message.bytes))
        self._coming = [(self._key(message.peer, self._me), message.data, message.bytes) for message in receives]

    def _end(self, _):
        store = _store()
        for key, data, size in self._coming:
            text = store.get(key)
            if len(text) != size:
                raise RuntimeError(f"{key} has {len(text)} bytes, {size} were expected: ranks make different calls")
            ctypes.memmove(data, text, size)
            store.delete_key(key)
        self._coming = []


class Gpus:
    """A longca_gpu_group, which lasts as long as the process: ending it would be one more thing to do together."""

    _made = {}

    @classmethod
    def of(cls, group, transport):
        """The GPUs of a group, connected by the first call, which all ranks make."""
        members = tuple(dist.get_process_group_ranks(group if group is not None else dist.group.WORLD))
        key = members, transport
        if key not in cls._made:
            cls._made[key] = cls(group, members, transport)
        return cls._made[key]

    def __init__(self, group, members, transport):
        self.messages = StoreMessages(group, transport)
        name = None if transport is None else transport.encode()
        self.pointer = self.messages.run(
            lambda: made(lib.longca_gpu_group_create, members.index(dist.get_rank()), len(members),
                         ctypes.byref(self.messages.functions), name))
        self.transport = lib.longca_gpu_group_transport(self.pointer).decode()


def _store():
    return dist.distributed_c10d._get_default_store()
