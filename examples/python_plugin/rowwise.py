"""A complete plug-in kernel in plain Python: attention one query row at a time, forward and
backward. It is slow but short, and enters every command of longca
(docs/guide/adding-a-kernel.md):

    longca bench --plugin ./rowwise.py -a kernel=rowwise_python,flash -a tokens=64 -a dim=16

It needs no package. With PyTorch or NumPy, torch.from_dlpack(call.q) or numpy.asarray(call.q)
shares a tensor of a call without copying; on a GPU, queue the work on
torch.cuda.ExternalStream(call.stream).
"""

from math import exp, inf, log

capabilities = {
    "name": "rowwise_python",
    "description": "one query row at a time, in plain Python; the example plug-in",
    "origin": "examples/python_plugin",
    "device": "cpu",
    "dtypes": ["float32"],
    "block_masks": False,
}


def supports(problem, mask):
    """None, or a sentence that says what the kernel cannot do."""
    if problem.tokens_q * problem.tokens_k > 2**20:
        return f"rowwise_python is too slow for {problem.tokens_q} × {problem.tokens_k} tokens"
    return None


def plan(problem, mask):
    """Everything that depends on the mask. Its time is reported apart."""
    return Plan(problem, mask)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


class Plan:
    def __init__(self, problem, mask):
        self.scale = problem.scale
        self.heads_q = problem.heads_q
        self.group = problem.heads_q // problem.heads_k
        begins, ends = mask.row_intervals(max_intervals=len(mask.slices))
        rows = mask.tokens_q
        self.keys = [
            [k for i in range(q, len(begins), rows) for k in range(begins[i], ends[i])]
            for q in range(rows)
        ]
        self.tokens_k = mask.tokens_k
        self.workspace_bytes = 8 * sum(map(len, self.keys))
        self.notes = {"language": "Python"}

    def forward(self, call):
        """call.q, k, v and the outputs call.o [tokens, heads, dim], call.lse [heads, tokens]."""
        for head in range(self.heads_q):
            lse = call.lse.row(head)
            for q, keys in enumerate(self.keys):
                lse[q] = self._forward_row(call, head, q, keys)

    def _forward_row(self, call, head, q, keys):
        query, out, kv_head = call.q.row(q, head), call.o.row(q, head), head // self.group
        scores = [self.scale * dot(query, call.k.row(k, kv_head)) for k in keys]
        top = max(scores, default=-inf)
        weights = [exp(score - top) for score in scores]
        total = sum(weights)
        values = [call.v.row(k, kv_head) for k in keys]
        for i in range(len(out)):
            out[i] = sum(w * v[i] for w, v in zip(weights, values)) / total if keys else 0.0
        return top + log(total) if keys else -inf

    def backward(self, call):
        """Writes call.dq, call.dk, call.dv from call.dout and what the forward pass left."""
        for gradient, rows in (
            (call.dq, len(self.keys)),
            (call.dk, self.tokens_k),
            (call.dv, self.tokens_k),
        ):
            for token in range(rows):
                for head in range(gradient.shape[1]):
                    row = gradient.row(token, head)
                    row[:] = [0.0] * len(row)
        for head in range(self.heads_q):
            lse = call.lse.row(head)
            for q, keys in enumerate(self.keys):
                self._backward_row(call, head, q, keys, lse[q])

    def _backward_row(self, call, head, q, keys, lse):
        kv_head = head // self.group
        query, dout, dq = call.q.row(q, head), call.dout.row(q, head), call.dq.row(q, head)
        delta = dot(dout, call.o.row(q, head))
        for k in keys:
            key, value = call.k.row(k, kv_head), call.v.row(k, kv_head)
            dk, dv = call.dk.row(k, kv_head), call.dv.row(k, kv_head)
            p = exp(self.scale * dot(query, key) - lse)
            ds = p * (dot(dout, value) - delta) * self.scale
            for i in range(len(query)):
                dv[i] += p * dout[i]
                dk[i] += ds * query[i]
                dq[i] += ds * key[i]
