"""The program as a library: the C functions and structures of host_interface.h, through ctypes."""

import ctypes
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_void_p,
)


class Problem(Structure):
    """The shape of one attention. `dtype` and `device` are read by name: DTYPES, DEVICES."""

    _fields_ = [
        ("tokens_q", c_int64),
        ("tokens_k", c_int64),
        ("heads_q", c_int32),
        ("heads_k", c_int32),
        ("head_dim", c_int32),
        ("dtype_code", c_int32),
        ("device_code", c_int32),
        ("backward_code", c_int32),
        ("deterministic_code", c_int32),
        ("sink_code", c_int32),
        ("scale", c_double),
        ("softcap", c_double),
        ("value_dim", c_int32),  # of v and o, up to head_dim, that of q and k
        ("unused", c_int32),
    ]
    dtype = property(lambda self: DTYPES[self.dtype_code])
    device = property(lambda self: DEVICES[self.device_code])
    backward = property(lambda self: bool(self.backward_code))
    deterministic = property(lambda self: bool(self.deterministic_code))
    sink = property(lambda self: bool(self.sink_code))


DTYPES = ("float32", "bfloat16", "float16")
DEVICES = ("cpu", "cuda")


class CTensor(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("tokens", c_int64),
        ("heads", c_int64),
        ("dim", c_int64),
        ("token_stride", c_int64),
        ("head_stride", c_int64),
        ("dtype_code", c_int32),
        ("device_code", c_int32),
    ]


class CLse(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("heads", c_int64),
        ("tokens", c_int64),
        ("head_stride", c_int64),
        ("device_code", c_int32),
    ]


class CForward(Structure):
    _fields_ = [(name, CTensor) for name in "qkvo"] + [
        ("lse", CLse),
        ("sink", c_void_p),
        ("stream", c_void_p),
    ]


class CBackward(Structure):
    _fields_ = (
        [(name, CTensor) for name in ("dout", "q", "k", "v", "o")]
        + [("lse", CLse)]
        + [(name, CTensor) for name in ("dq", "dk", "dv")]
        + [(name, c_void_p) for name in ("sink", "dsink", "stream")]
    )


_SUPPORTS = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, POINTER(Problem), c_void_p)
_PLAN = ctypes.CFUNCTYPE(c_int64, c_void_p, c_char_p, POINTER(Problem), c_void_p)
_FORWARD = ctypes.CFUNCTYPE(None, c_void_p, c_int64, POINTER(CForward))
_BACKWARD = ctypes.CFUNCTYPE(None, c_void_p, c_int64, POINTER(CBackward))
_FACTS = ctypes.CFUNCTYPE(None, c_void_p, c_int64)
_RELEASE = ctypes.CFUNCTYPE(None, c_int64)
_VERSION = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class Callbacks(Structure):
    _fields_ = [
        ("supports", _SUPPORTS),
        ("plan", _PLAN),
        ("forward", _FORWARD),
        ("backward", _BACKWARD),
        ("facts", _FACTS),
        ("release", _RELEASE),
        ("version", _VERSION),
    ]


# name: (result, arguments). "longca_host_" where longca.h has the rest of the name: a plug-in that is
# linked to liblongca.so would bind to ours.
_FUNCTIONS = {
    "longca_structure_sizes": (None, [POINTER(c_int32)]),
    "longca_host_last_error": (c_char_p, []),
    "longca_reply": (None, [c_void_p, c_char_p, c_char_p]),
    "longca_reply_note": (None, [c_void_p, c_char_p, c_char_p]),
    "longca_reply_number": (None, [c_void_p, c_char_p, c_double]),
    "longca_python_rows": (c_char_p, []),
    "longca_add_kernel": (c_int, [c_char_p]),
    "longca_case_mask": (c_void_p, [c_char_p, POINTER(Problem)]),
    "longca_release_mask": (None, [c_void_p]),
    "longca_run_worker": (c_int, [c_int, POINTER(c_char_p), c_int, POINTER(Callbacks)]),
    "longca_stream": (c_void_p, [c_int32]),
    "longca_available_bytes": (c_int64, [c_int32]),
    "longca_bytes_in_use": (c_int64, [c_int32]),
    "longca_host_mask_shape": (None, [c_void_p, POINTER(c_int64)]),
    "longca_host_mask_slices": (c_int64, [c_void_p, POINTER(c_int64)]),
    "longca_host_mask_documents": (c_int64, [c_void_p, POINTER(c_int64), POINTER(c_int32)]),
    "longca_host_mask_window": (c_int64, [c_void_p, POINTER(c_int64)]),
    "longca_host_mask_rows": (
        c_int64,
        [c_void_p, c_int32, c_int64, POINTER(c_int32), POINTER(c_int32)],
    ),
    "longca_host_mask_columns": (c_int64, [c_void_p, c_int32, POINTER(c_int32)]),
    "longca_host_mask_tiles": (c_int64, [c_void_p, c_int32, c_int64, c_int64, POINTER(c_uint8)]),
    "longca_host_mask_block_sizes": (None, [c_void_p, POINTER(c_int64)]),
    "longca_host_mask_blocks": (None, [c_void_p] + 3 * [POINTER(c_int64)] + [POINTER(c_int32)]),
    "longca_host_mask_block_bits": (c_void_p, [c_void_p, POINTER(c_int64)]),
    "longca_copy_tensor": (c_int, [POINTER(CTensor), POINTER(CTensor), c_void_p]),
    "longca_torch_offer": (None, [c_void_p, c_int64]),
    "longca_torch_withdraw": (None, []),
    "longca_torch_take_refusal": (None, [c_char_p, c_int64]),
    "longca_torch_reset_peak": (None, []),
}

_FUNCTIONS_OF_RANK = {
    "longca_run_rank": (
        c_int,
        [c_char_p, c_char_p, POINTER(c_char_p), c_int, POINTER(Callbacks)],
    ),
}


loaded = None  # the Library of this process, once there is one


class Library:
    """The library's functions without "longca_" or "longca_host_" in their names, typed. `path`: its
    file; `of_rank`: whether it is the library of ranks."""

    def __init__(self, path, of_rank=False):
        global loaded
        self.path = path
        # Global, so that C++ plug-ins find the symbols that the program exports, and Open MPI's
        # plug-ins those of the MPI library that comes with ours.
        self._library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        functions = {**_FUNCTIONS, **(_FUNCTIONS_OF_RANK if of_rank else {})}
        for name, (result, arguments) in functions.items():
            function = getattr(self._library, name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name.removeprefix("longca_").removeprefix("host_"), function)
        self._compare_structures()
        loaded = self

    def _compare_structures(self):
        mirrors = (Problem, CTensor, CLse, CForward, CBackward, Callbacks)
        sizes = (c_int32 * len(mirrors))()
        self.structure_sizes(sizes)
        for mirror, size in zip(mirrors, sizes):
            if ctypes.sizeof(mirror) != size:
                raise RuntimeError(
                    f"{mirror.__name__} has {size} bytes in {self.path}, not as many as here"
                )

    def error(self):
        return self.last_error().decode(errors="replace")

    def take_refusal(self):
        """Why an allocation of PyTorch's was refused since the last call; "" if none was."""
        sentence = ctypes.create_string_buffer(1024)
        self.torch_take_refusal(sentence, len(sentence))
        return sentence.value.decode(errors="replace")
