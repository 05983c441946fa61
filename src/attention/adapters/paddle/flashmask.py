"""FlashMask of PaddlePaddle: per key, the intervals of rows that are masked. PaddlePaddle allocates
by its own pool and works on its own stream, so the calls wait for each other and its memory is not
counted in `peak_bytes`."""

import paddle
from paddle.nn.functional import flashmask_attention


def version():
    return paddle.__version__


def supports(problem, mask):
    if abs(problem.scale * problem.head_dim**0.5 - 1) > 1e-6:
        return "flashmask has no argument for the softmax scale, which is 1/√dim"
    return None


def plan(problem, mask):
    return Plan(problem, mask)


def _view(tensor):
    return paddle.utils.dlpack.from_dlpack(tensor.__dlpack__())


class Plan:
    def __init__(self, problem, mask):
        columns = mask.column_intervals()
        lower_begin, lower_end, upper_begin, upper_end = (
            columns[i * mask.tokens_k : (i + 1) * mask.tokens_k] for i in range(4)
        )
        self.causal = mask.window == (-1, 0)
        parts = (lower_begin, lower_end, upper_begin, upper_end)
        self.rows = None  # no mask but `causal`
        if not self.causal and mask.window != (-1, -1):
            table = paddle.to_tensor([list(part) for part in parts], dtype="int32")
            self.rows = table.transpose([1, 0]).reshape([1, 1, mask.tokens_k, 4])
        self.inputs = self.o = None
        self.notes = {"memory": "PaddlePaddle's own, beside peak_bytes"}

    def forward(self, call):
        """Keeps the autograd graph for the backward pass."""
        self.inputs = [_view(t).unsqueeze(0) for t in (call.q, call.k, call.v)]
        for tensor in self.inputs:
            tensor.stop_gradient = False
        self.o, lse = flashmask_attention(
            *self.inputs,
            startend_row_indices=self.rows,
            causal=self.causal,
            return_softmax_lse=True,
        )
        paddle.assign(self.o[0], _view(call.o))
        paddle.assign(lse[0, :, : call.lse.shape[1]], _view(call.lse))
        paddle.device.synchronize()

    def backward(self, call):
        gradients = paddle.grad(
            self.o, self.inputs, _view(call.dout).unsqueeze(0), retain_graph=True
        )
        for to, gradient in zip((call.dq, call.dk, call.dv), gradients):
            paddle.assign(gradient[0], _view(to))
        paddle.device.synchronize()
