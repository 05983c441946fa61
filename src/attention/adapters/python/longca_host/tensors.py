"""Tensors of a call: the program's memory, shared without copying."""

import ctypes
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint64,
    c_void_p,
)

from longca_host.library import DEVICES, DTYPES, CTensor

_ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class Tensor:
    """`shape` [tokens, heads, dim], or [heads, tokens] for the LSE; `strides` count elements.

    torch.from_dlpack(tensor) and other readers of DLPack see the memory itself, on either device;
    so does numpy.asarray(tensor) on the CPU, where numpy has the dtype.
    """

    def __init__(self, data, shape, strides, dtype, device):
        self.data = data or 0
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.device = device

    @classmethod
    def of(cls, t):
        return cls(
            t.data,
            (t.tokens, t.heads, t.dim),
            (t.token_stride, t.head_stride, 1),
            DTYPES[t.dtype_code],
            DEVICES[t.device_code],
        )

    @classmethod
    def of_lse(cls, lse):
        shape, strides = (lse.heads, lse.tokens), (lse.head_stride, 1)
        return cls(lse.data, shape, strides, "float32", DEVICES[lse.device_code])

    @classmethod
    def of_heads(cls, data, q):
        """One float32 per head of q, a CTensor; None without memory."""
        return cls(data, (q.heads,), (1,), "float32", DEVICES[q.device_code]) if data else None

    def as_c(self):
        """The CTensor of a tensor of three dimensions."""
        return CTensor(
            self.data, *self.shape, *self.strides[:2],
            DTYPES.index(self.dtype), DEVICES.index(self.device),
        )  # fmt: skip

    @property
    def bytes(self):
        """Bytes of the elements, without gaps between them."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count * _ITEM_BYTES[self.dtype]

    @property
    def key(self):
        """Equal for equal memory seen in the same way."""
        return (self.data, self.shape, self.strides, self.dtype, self.device)

    def row(self, *index):
        """The elements of the last dimension as a ctypes array: float32 on the CPU only."""
        if self.dtype != "float32" or self.device != "cpu":
            raise TypeError(
                f"rows are for float32 on the CPU, not for {self.dtype} on {self.device}"
            )
        offset = sum(i * stride for i, stride in zip(index, self.strides))
        return (ctypes.c_float * self.shape[-1]).from_address(self.data + 4 * offset)

    @property
    def __array_interface__(self):
        if self.device != "cpu" or self.dtype == "bfloat16":
            raise AttributeError(f"numpy has no arrays of {self.dtype} on {self.device}")
        size = _ITEM_BYTES[self.dtype]
        return {
            "version": 3,
            "shape": self.shape,
            "strides": tuple(size * stride for stride in self.strides),
            "typestr": f"<f{size}",
            "data": (self.data, False),
        }

    def __dlpack_device__(self):
        return (_DLPACK_DEVICES[self.device], cuda_index() if self.device == "cuda" else 0)

    def __dlpack__(self, **_):
        # No synchronization: a call's work is queued on the call's stream.
        return _capsule(self)


_getenv = ctypes.CDLL(None).getenv
_getenv.restype, _getenv.argtypes = c_char_p, [c_char_p]


def cuda_index():
    """The GPU of this process. Asks the C library and not os.environ, because a rank's GPU is set
    after Python has read the environment."""
    return int(_getenv(b"LONGCA_DEVICE") or 0)


# DLPack (github.com/dmlc/dlpack): the exchange format of tensor libraries, first version.


class _DLDevice(Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class _DLDataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class _DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", _DLDevice),
        ("ndim", c_int32),
        ("dtype", _DLDataType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _DLManagedTensor(Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, POINTER(_DLManagedTensor))
_DLManagedTensor._fields_ = [
    ("dl_tensor", _DLTensor),
    ("manager_ctx", c_void_p),
    ("deleter", _DELETER),
]

_DLPACK_DEVICES = {"cpu": 1, "cuda": 2}
_DLPACK_TYPES = {"float32": (2, 32), "float16": (2, 16), "bfloat16": (4, 16)}

_shared = {}  # by address: a managed tensor and its arrays, kept until the reader frees it


@_DELETER
def _let_go(managed):
    _shared.pop(ctypes.addressof(managed.contents), None)


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [c_void_p, c_char_p, c_void_p]


def _capsule(tensor):
    dimensions = c_int64 * len(tensor.shape)
    shape, strides = dimensions(*tensor.shape), dimensions(*tensor.strides)
    managed = _DLManagedTensor()
    view = managed.dl_tensor
    view.data = tensor.data
    view.device.device_type, view.device.device_id = tensor.__dlpack_device__()
    view.ndim = len(tensor.shape)
    view.dtype.code, view.dtype.bits = _DLPACK_TYPES[tensor.dtype]
    view.dtype.lanes = 1
    view.shape, view.strides = shape, strides
    managed.deleter = _let_go
    address = ctypes.addressof(managed)
    _shared[address] = (managed, shape, strides)
    return _new_capsule(address, b"dltensor", None)
