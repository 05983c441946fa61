"""torch_tools.py: how results reach the program's outputs."""

import gc
import weakref

import torch
from conftest import torch_tools
from longca_host.tensors import Tensor


class Square(torch.autograd.Function):
    """Keeps its result for the backward pass, as attention keeps O and LSE."""

    @staticmethod
    def forward(ctx, x):
        result = x * x
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def test_outputs_keep_no_graph_of_results():
    memory = torch.zeros(2, 3, 4)
    output = Tensor(memory.data_ptr(), (2, 3, 4), (12, 4, 1), "float32", "cpu")
    results = []

    def call():
        x = torch.full((2, 3, 4), 3.0).requires_grad_()
        y = Square.apply(x)
        results.append(weakref.ref(y.grad_fn))
        return [y]

    for _ in range(3):
        torch_tools.into([output], call, in_place=False)
    gc.collect()
    assert torch.equal(memory, torch.full((2, 3, 4), 9.0))
    assert not torch_tools.view(output).requires_grad
    assert [node() for node in results] == [None] * 3
