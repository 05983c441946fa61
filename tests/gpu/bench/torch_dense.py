"""Dense attention by PyTorch's operators in float32, any static mask, on a GPU: what the cheats of
tests/bench/cheats.py are put around there. $LONGCA_TEST_DEVICE=cpu runs it on a CPU."""

import contextlib
import os

import torch

DEVICE = os.environ.get("LONGCA_TEST_DEVICE", "cuda")

capabilities = {
    "name": "torch_dense",
    "device": DEVICE,
    "dtypes": ["float32"],
    "block_masks": False,
}

torch.backends.cuda.matmul.allow_tf32 = False


def supports(problem, mask):
    return None


def plan(problem, mask):
    return Plan(problem, mask)


class Memory:
    """What cheats do with tensors of a call."""

    @staticmethod
    def first(tensor):
        return torch.from_dlpack(tensor).flatten()[0].item()

    @staticmethod
    def copy_of(outputs):
        return [torch.from_dlpack(tensor).clone() for tensor in outputs]

    @staticmethod
    def fill(outputs, values):
        for tensor, value in zip(outputs, values):
            torch.from_dlpack(tensor).copy_(value)

    @staticmethod
    def fill_half(outputs, values, second):
        for tensor, value in zip(outputs, values):
            whole = torch.from_dlpack(tensor)
            middle = whole.shape[0] // 2
            part = slice(middle, None) if second else slice(middle)
            whole[part].copy_(value[part])

    @staticmethod
    def spoil(tensor):
        torch.from_dlpack(tensor).view(-1)[0] = 100.0

    @staticmethod
    def on_stream(call):
        """A context whose work is queued on the call's stream; none on a CPU."""
        if DEVICE == "cpu":
            return contextlib.nullcontext()
        return torch.cuda.stream(torch.cuda.ExternalStream(call.stream))


class Plan:
    def __init__(self, problem, mask):
        begins, ends = mask.row_intervals(max_intervals=len(mask.slices))
        rows, keys = mask.tokens_q, torch.arange(mask.tokens_k)
        allowed = torch.zeros(rows, mask.tokens_k, dtype=torch.bool)
        for i in range(0, len(begins), rows):
            begin = torch.tensor(begins[i : i + rows])[:, None]
            end = torch.tensor(ends[i : i + rows])[:, None]
            allowed |= (begin <= keys) & (keys < end)
        self.scale = problem.scale
        self.group = problem.heads_q // problem.heads_k
        self.forbidden = ~allowed.to(DEVICE)

    def of_query_heads(self, tensor):
        """[heads_q, tokens, dim] of k or v."""
        return tensor.repeat_interleave(self.group, dim=1).transpose(0, 1)

    def of_kv_heads(self, gradient):
        """[tokens, heads_k, dim]: the sums over the query heads of each group."""
        heads, tokens, dim = gradient.shape
        return gradient.view(heads // self.group, self.group, tokens, dim).sum(1).transpose(0, 1)

    def scores(self, q, k):
        scores = self.scale * q.transpose(0, 1) @ self.of_query_heads(k).transpose(1, 2)
        return scores.masked_fill(self.forbidden, float("-inf"))

    def forward(self, call):
        with Memory.on_stream(call):
            q, k, v, o, lse = map(torch.from_dlpack, (call.q, call.k, call.v, call.o, call.lse))
            scores = self.scores(q, k)
            lse.copy_(scores.logsumexp(2))
            o.copy_((scores - lse[:, :, None]).exp().matmul(self.of_query_heads(v)).transpose(0, 1))

    def backward(self, call):
        with Memory.on_stream(call):
            q, k, v, o, lse = map(torch.from_dlpack, (call.q, call.k, call.v, call.o, call.lse))
            dout, dq, dk, dv = map(torch.from_dlpack, (call.dout, call.dq, call.dk, call.dv))
            dout_by_head = dout.transpose(0, 1)
            p = (self.scores(q, k) - lse[:, :, None]).exp()
            delta = (dout * o).sum(2).t()[:, :, None]
            ds = self.scale * p * (dout_by_head @ self.of_query_heads(v).transpose(1, 2) - delta)
            dq.copy_((ds @ self.of_query_heads(k)).transpose(0, 1))
            dk.copy_(self.of_kv_heads(ds.transpose(1, 2) @ q.transpose(0, 1)))
            dv.copy_(self.of_kv_heads(p.transpose(1, 2) @ dout_by_head))


memory = Memory
