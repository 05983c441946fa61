"""longca.h's DLPack functions on the capsules that PyTorch makes."""

import ctypes

import pytest
import torch

from longca._library import Problem, lib

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

CPU = 0
DTYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}


class Tensor(ctypes.Structure):
    """longca_tensor, and with two sizes and a stride longca_lse."""

    _fields_ = [("data", ctypes.c_void_p), ("members", ctypes.c_int64 * 5)]


def problem(dtype):
    return Problem(ctypes.sizeof(Problem), 4, 2, 8, DTYPES[dtype], CPU, 0, 0, 0.0, None, None, 0.0, 0, 0)


def read(x, dtype, versioned, what="tensor"):
    """(status, members) of what longca makes of x."""
    if versioned:
        capsule = x.__dlpack__(max_version=(1, 0))
        pointer = _pointer_of(capsule, b"dltensor_versioned")
    else:
        capsule = x.__dlpack__()
        pointer = _pointer_of(capsule, b"dltensor")
    function = getattr(lib, f"longca_{what}_from_dlpack" + ("_versioned" if versioned else ""))
    tensor = Tensor()
    given = [ctypes.c_void_p(pointer), ctypes.byref(problem(dtype)), *([ctypes.c_int32(1)] if versioned else []),
             ctypes.byref(tensor)]
    status = function(*given)
    return status, (tensor.data, *tensor.members)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_a_tensor_is_where_pytorch_has_it(versioned, dtype):
    whole = torch.zeros(30, 8, 8, dtype=dtype)
    for x in (whole[3:, 2:6], whole.transpose(0, 1)[:, 5:]):
        assert read(x, dtype, versioned) == (0, (x.data_ptr(), *x.shape, *x.stride()[:2]))


@pytest.mark.parametrize("versioned", [False, True])
def test_lse(versioned):
    x = torch.zeros(4, 30)[:, 2:]
    assert read(x, torch.bfloat16, versioned, "lse") == (0, (x.data_ptr(), *x.shape, x.stride(0), 0, 0))


@pytest.mark.parametrize("versioned", [False, True])
def test_another_dtype_is_named(versioned):
    status, _ = read(torch.zeros(3, 4, 8), torch.float16, versioned)
    assert status == 1
    assert lib.longca_last_error() == b"the DLPack tensor has float32, not float16"
