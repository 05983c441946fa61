"""liblongca.so, loaded by ctypes: longca.h says what its functions do."""

import ctypes
import operator
import os
import pathlib
import weakref

ABI_VERSION = 1
INT32_MAX = 2**31 - 1
MAX_HEADS = 1 << 20

_ERRORS = {1: ValueError, 2: NotImplementedError, 3: RuntimeError, 4: MemoryError, 5: RuntimeError}


def _path():
    named = os.environ.get("LONGCA_LIBRARY")
    path = pathlib.Path(named) if named else pathlib.Path(__file__).parent / "lib" / "liblongca.so"
    if not path.exists():
        raise ImportError(f"{path} is missing: install the package longca with pip, or name the library in LONGCA_LIBRARY")
    return str(path.absolute())  # dlopen looks for a bare name elsewhere


def _load():
    library = ctypes.CDLL(_path())
    pointer, size, int32, int64 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32, ctypes.c_int64
    signatures = {
        "longca_last_error": (ctypes.c_char_p, []),
        "longca_version": (ctypes.c_char_p, []),
        "longca_check_abi": (ctypes.c_int, [int32]),
        "longca_mask_named": (ctypes.c_int, [ctypes.c_char_p, int64, pointer, pointer]),
        "longca_mask_from_cu_seqlens": (ctypes.c_int, [pointer, size, int32, int64, int64, pointer]),
        "longca_mask_from_slices": (ctypes.c_int, [int64, int64, pointer, size, pointer]),
        "longca_mask_from_blocks": (ctypes.c_int, [pointer, pointer]),
        "longca_mask_write": (ctypes.c_int, [pointer, pointer, size, pointer]),
        "longca_mask_read": (ctypes.c_int, [pointer, size, pointer]),
        "longca_mask_tokens_q": (int64, [pointer]),
        "longca_mask_tokens_k": (int64, [pointer]),
        "longca_mask_heads": (int32, [pointer]),
        "longca_mask_area": (ctypes.c_double, [pointer]),
        "longca_mask_slices": (size, [pointer, pointer, size]),
        "longca_mask_documents": (size, [pointer, pointer, size]),
        "longca_mask_dense": (ctypes.c_int, [pointer, int32, pointer]),
        "longca_mask_release": (None, [pointer]),
        "longca_plan_create": (ctypes.c_int, [pointer, pointer, pointer]),
        "longca_plan_workspace_bytes": (int64, [pointer]),
        "longca_plan_release": (None, [pointer]),
        "longca_partition_create": (ctypes.c_int, [pointer, pointer, pointer]),
        "longca_partition_ranges_of": (ctypes.c_int, [pointer, ctypes.c_int32, pointer, size, pointer]),
        "longca_partition_release": (None, [pointer]),
        "longca_rank_plan_create": (ctypes.c_int, [pointer, pointer, pointer, pointer]),
        "longca_rank_plan_create_on_gpus": (ctypes.c_int, [pointer, pointer, pointer, pointer]),
        "longca_gpu_group_create": (ctypes.c_int, [int32, int32, pointer, ctypes.c_char_p, pointer]),
        "longca_gpu_group_transport": (ctypes.c_char_p, [pointer]),
        "longca_rank_plan_state_bytes": (int64, [pointer]),
        "longca_rank_plan_release": (None, [pointer]),
        "longca_rank_forward": (ctypes.c_int, [pointer, ctypes.c_char_p, pointer]),
        "longca_rank_backward": (ctypes.c_int, [pointer, ctypes.c_char_p, pointer]),
        "longca_forward": (ctypes.c_int, [pointer, ctypes.c_char_p]),
        "longca_backward": (ctypes.c_int, [pointer, ctypes.c_char_p]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


lib = _load()


def check(status):
    """Raises what a status stands for, with the library's sentence."""
    if status != 0:
        raise _ERRORS[status](lib.longca_last_error().decode(errors="replace"))


def made(function, *arguments):
    """The handle that a longca_…(…, handle) function makes."""
    handle = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(handle)))
    return handle.value


def released_with(owner, release, handle):
    """Releases a handle with its owner. Not at exit: another thread may still use it, in a forked child for ever."""
    weakref.finalize(owner, release, handle).atexit = False


def whole(value, name, least, most):
    """value as an int. ctypes wraps what its type cannot hold."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} = {value!r}: a whole number is meant") from None
    if not least <= number <= most:
        raise ValueError(f"{name} = {number}: at least {least}, at most {most}")
    return number


def head_counts(heads):
    """(query heads, KV heads)"""
    if not isinstance(heads, (tuple, list)) or len(heads) != 2:
        raise ValueError(f"heads = {heads!r}: (query heads, KV heads) is meant")
    return tuple(whole(count, "heads", 1, MAX_HEADS) for count in heads)


def text(value, name):
    """A string's bytes, which end at the first NUL in C."""
    if not isinstance(value, str):
        raise TypeError(f"{name} = {value!r}: a string is meant")
    if "\0" in value:
        raise ValueError(f"{name} = {value!r}: a string without NUL is meant")
    return value.encode()


def version():
    return lib.longca_version().decode()


check(lib.longca_check_abi(ABI_VERSION))


class MaskOptions(ctypes.Structure):
    """longca_mask_options"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("lengths", ctypes.c_char_p),
        ("document_lengths", ctypes.c_void_p),
        ("document_count", ctypes.c_size_t),
        ("seed", ctypes.c_uint64),
        ("window", ctypes.c_int64),
        ("block_tokens", ctypes.c_int64),
        ("block", ctypes.c_int64),
        ("density", ctypes.c_double),
        ("heads_q", ctypes.c_int32),
        ("heads_k", ctypes.c_int32),
        ("per_query_head", ctypes.c_int32),
        ("block_causal", ctypes.c_int32),
    ]


class Slice(ctypes.Structure):
    """longca_slice"""

    _fields_ = [
        ("q_begin", ctypes.c_int64),
        ("q_end", ctypes.c_int64),
        ("k_begin", ctypes.c_int64),
        ("k_end", ctypes.c_int64),
        ("type", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class Blocks(ctypes.Structure):
    """longca_blocks"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("q_bounds", ctypes.c_void_p),
        ("q_bound_count", ctypes.c_size_t),
        ("k_bounds", ctypes.c_void_p),
        ("k_bound_count", ctypes.c_size_t),
        ("heads", ctypes.c_int32),
        ("causal", ctypes.c_int32),
        ("offsets", ctypes.c_void_p),
        ("indices", ctypes.c_void_p),
    ]


class Problem(ctypes.Structure):
    """longca_problem"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("heads_q", ctypes.c_int32),
        ("heads_k", ctypes.c_int32),
        ("head_dim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("backward", ctypes.c_int32),
        ("deterministic", ctypes.c_int32),
        ("scale", ctypes.c_double),
        ("kernel", ctypes.c_char_p),
        ("allocator", ctypes.c_void_p),
        ("softcap", ctypes.c_double),
        ("sink", ctypes.c_int32),
        ("head_dim_v", ctypes.c_int32),
    ]


class PartitionOptions(ctypes.Structure):
    """longca_partition_options"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("rank", ctypes.c_int32),
        ("ranks", ctypes.c_int32),
        ("scheme", ctypes.c_char_p),
        ("shard", ctypes.c_char_p),
        ("factor", ctypes.c_int32),
        ("ranks_per_node", ctypes.c_int32),
        ("heads_q", ctypes.c_int32),
        ("heads_k", ctypes.c_int32),
        ("head_dim", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class Message(ctypes.Structure):
    """longca_message"""

    _fields_ = [
        ("peer", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_int64),
    ]


_Messages = ctypes.POINTER(Message)
StartMessages = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, _Messages, ctypes.c_size_t,
                                 _Messages, ctypes.c_size_t)
FinishMessages = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)


class Transport(ctypes.Structure):
    """longca_transport"""

    _fields_ = [("context", ctypes.c_void_p), ("start", StartMessages), ("finish", FinishMessages)]
