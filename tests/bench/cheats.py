"""Kernels that are right when they are verified and do less work when they are timed: the example
plug-in underneath, and around its calls the cheat that $LONGCA_CHEAT names."""

import importlib.util
import os
import threading
import time

CHEAT = os.environ["LONGCA_CHEAT"]

_spec = importlib.util.spec_from_file_location("rowwise", os.environ["LONGCA_EXAMPLE"])
rowwise = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rowwise)

capabilities = dict(rowwise.capabilities, name="cheat")
supports = rowwise.supports


def plan(problem, mask):
    return Plan(problem, mask)


def rows(tensor):
    """All rows of a tensor [tokens, heads, dim] or of an lse [heads, tokens]."""
    if len(tensor.shape) == 2:
        return [tensor.row(head) for head in range(tensor.shape[0])]
    return [tensor.row(t, h) for t in range(tensor.shape[0]) for h in range(tensor.shape[1])]


def results(outputs):
    return [list(row) for tensor in outputs for row in rows(tensor)]


def give(outputs, values):
    for row, value in zip((row for tensor in outputs for row in rows(tensor)), values):
        row[:] = value


class Pass:
    """What is kept from call to call of one pass."""

    def __init__(self):
        self.calls = 0
        self.results = None
        self.sample = None
        self.behind = None

    def run(self, inputs, outputs, compute):
        self.calls += 1
        getattr(self, CHEAT)(inputs, outputs, compute)

    def filled(self, inputs, outputs, compute):
        first = rows(outputs[0])[0][0]
        if self.calls == 1 or first != first:
            compute()

    def address(self, inputs, outputs, compute):
        if self.results is None:
            compute()
            self.results = results(outputs)
        else:
            give(outputs, self.results)

    def samples(self, inputs, outputs, compute):
        sample = [rows(tensor)[0][0] for tensor in inputs]
        if sample != self.sample:
            compute()
            self.sample, self.results = sample, results(outputs)
        else:
            give(outputs, self.results)

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
            rows(outputs[0])[0][0] = 100.0

    def halves(self, inputs, outputs, compute):
        before = results(outputs)
        compute()
        if self.calls > 1:
            mine = [row for tensor in outputs for row in rows(tensor)]
            for i, row in enumerate(mine):
                if (i < len(mine) // 2) == (self.calls % 2 == 0):
                    row[:] = before[i]

    def honest(self, inputs, outputs, compute):
        compute()


class Plan:
    def __init__(self, problem, mask):
        self.inner = rowwise.Plan(problem, mask)
        self.passes = Pass(), Pass()

    def forward(self, call):
        self.passes[0].run(
            (call.q, call.k, call.v), (call.o, call.lse), lambda: self.inner.forward(call)
        )

    def backward(self, call):
        self.passes[1].run(
            (call.dout, call.q, call.k, call.v),
            (call.dq, call.dk, call.dv),
            lambda: self.inner.backward(call),
        )

    def close(self):
        for kept in self.passes:
            kept.wait()
