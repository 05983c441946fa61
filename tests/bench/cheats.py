"""Kernels that are right when they are verified and do less work when they are timed: underneath
the plug-in that $LONGCA_EXAMPLE names, and around its calls the cheat that $LONGCA_CHEAT names."""

import contextlib
import importlib.util
import os
import threading
import time

CHEAT = os.environ["LONGCA_CHEAT"]

_spec = importlib.util.spec_from_file_location("underneath", os.environ["LONGCA_EXAMPLE"])
underneath = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(underneath)

capabilities = dict(underneath.capabilities, name="cheat")
supports = underneath.supports


def plan(problem, mask):
    return Plan(problem, mask)


class Rows:
    """What cheats do with tensors of a call: float32 on the CPU, row by row."""

    @staticmethod
    def of(tensor):
        """All rows of a tensor [tokens, heads, dim] or of an lse [heads, tokens]."""
        if len(tensor.shape) == 2:
            return [tensor.row(head) for head in range(tensor.shape[0])]
        return [tensor.row(t, h) for t in range(tensor.shape[0]) for h in range(tensor.shape[1])]

    @classmethod
    def first(cls, tensor):
        return cls.of(tensor)[0][0]

    @classmethod
    def copy_of(cls, outputs):
        return [list(row) for tensor in outputs for row in cls.of(tensor)]

    @classmethod
    def fill(cls, outputs, values):
        for row, value in zip((row for tensor in outputs for row in cls.of(tensor)), values):
            row[:] = value

    @classmethod
    def fill_half(cls, outputs, values, second):
        """Gives the first or the second half of all rows their values back."""
        mine = [row for tensor in outputs for row in cls.of(tensor)]
        for i, row in enumerate(mine):
            if (i >= len(mine) // 2) == second:
                row[:] = values[i]

    @classmethod
    def spoil(cls, tensor):
        cls.of(tensor)[0][0] = 100.0

    @staticmethod
    def on_stream(call):
        return contextlib.nullcontext()


memory = getattr(underneath, "memory", Rows)


class Pass:
    """What is kept from call to call of one pass."""

    def __init__(self):
        self.calls = 0
        self.results = None
        self.sample = None
        self.behind = None

    def run(self, call, inputs, outputs, compute):
        self.calls += 1
        with memory.on_stream(call):
            getattr(self, CHEAT)(inputs, outputs, compute)

    def filled(self, inputs, outputs, compute):
        if self.calls == 1:
            return compute()
        first = memory.first(outputs[0])
        if first != first:
            compute()

    def address(self, inputs, outputs, compute):
        if self.results is None:
            compute()
            self.results = memory.copy_of(outputs)
        else:
            memory.fill(outputs, self.results)

    def samples(self, inputs, outputs, compute):
        sample = [memory.first(tensor) for tensor in inputs]
        if sample != self.sample:
            compute()
            self.sample, self.results = sample, memory.copy_of(outputs)
        else:
            memory.fill(outputs, self.results)

    def wait(self):
        if self.behind:
            self.behind.join()

    def early(self, inputs, outputs, compute):
        if self.calls == 1:
            return compute()
        if self.behind and self.behind.is_alive():
            return

        def later():
            time.sleep(0.001)  # lets the call return: else this thread may keep the interpreter
            compute()

        self.behind = threading.Thread(target=later)
        self.behind.start()

    def odd(self, inputs, outputs, compute):
        if self.calls == 1 or self.calls % 2 == 0:
            compute()

    def third(self, inputs, outputs, compute):
        compute()
        if self.calls % 3 == 0:
            memory.spoil(outputs[0])

    def halves(self, inputs, outputs, compute):
        before = memory.copy_of(outputs)
        compute()
        if self.calls > 1:
            memory.fill_half(outputs, before, second=self.calls % 2 != 0)

    def honest(self, inputs, outputs, compute):
        compute()


class Plan:
    def __init__(self, problem, mask):
        self.inner = underneath.Plan(problem, mask)
        self.passes = Pass(), Pass()

    def forward(self, call):
        self.passes[0].run(
            call,
            (call.q, call.k, call.v),
            (call.o, call.lse),
            lambda: self.inner.forward(call),
        )

    def backward(self, call):
        self.passes[1].run(
            call,
            (call.dout, call.q, call.k, call.v),
            (call.dq, call.dk, call.dv),
            lambda: self.inner.backward(call),
        )

    def close(self):
        for kept in self.passes:
            kept.wait()
