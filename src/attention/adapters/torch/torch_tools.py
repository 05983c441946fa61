"""What kernels that work on PyTorch's tensors share: the program's memory, stream and outputs."""

import contextlib
import functools

import torch
from longca_host import library
from longca_host.tensors import Tensor, cuda_index

LIBRARY = library.loaded


def _use_tracker():
    """Lets PyTorch allocate through the program's tracker. Before PyTorch's first allocation."""
    if not torch.cuda.is_available():
        raise ImportError(f"PyTorch {torch.__version__} does not find the GPU that CUDA finds here")
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        LIBRARY.path, "longca_torch_allocate", "longca_torch_free"
    )
    torch.cuda.memory.change_current_allocator(allocator)
    torch.cuda.set_device(cuda_index())


_use_tracker()


def version():
    return torch.__version__


@functools.lru_cache(maxsize=64)
def _stream(address):
    return torch.cuda.ExternalStream(address)


def on_stream(address=None):
    """A context whose work is queued on that cudaStream_t; without one on the program's own."""
    return torch.cuda.stream(_stream(LIBRARY.stream(1) if address is None else address))


@contextlib.contextmanager
def deterministic(wanted):
    """A context in which PyTorch's operators that can add in a fixed order do so. It does not fill
    what operators allocate, which would be work of its own."""
    if not wanted:
        yield
        return
    settings = torch.utils.deterministic
    filling, settings.fill_uninitialized_memory = settings.fill_uninitialized_memory, False
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        settings.fill_uninitialized_memory = filling


_views = {}  # by the memory and shape that they show


def view(tensor):
    """A tensor of the program as one of PyTorch's, in its shape; no copy."""
    found = _views.get(tensor.key)
    if found is None:
        if len(_views) > 256:
            _views.clear()
        found = _views[tensor.key] = torch.from_dlpack(tensor)
    return found


def views(*tensors):
    return [view(tensor) for tensor in tensors]


def _of_torch(tensor):
    """One of PyTorch's as one of the program's; [tokens, heads, dim], the last one contiguous."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Tensor(tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), dtype, "cuda")


def copy(source, target, stream):
    """Queues a copy between tensors of one shape, each of the program's or of PyTorch's, in any
    layout and from float32 into any dtype: PyTorch's own takes three times as long between layouts."""
    ends = [end if isinstance(end, Tensor) else _of_torch(end) for end in (source, target)]
    if LIBRARY.copy_tensor(*(end.as_c() for end in ends), stream) != 0:
        raise RuntimeError(LIBRARY.error())


def to_device(values, dtype=torch.int32):
    """A tensor on the GPU from numbers or from an array of masks.py."""
    return torch.as_tensor(values, dtype=dtype).cuda()


def _in_shape(result, shape):
    """A result with dimensions of size 1 that the shape has not, or the other way round."""
    if [n for n in result.shape if n != 1] != [n for n in shape if n != 1]:
        raise RuntimeError(f"a result has the shape {list(result.shape)}, not {list(shape)}")
    return result.reshape(shape)


def into(outputs, function, in_place=True):
    """Calls function(), whose results belong into `outputs`, tensors of the program of the same
    number of elements each, in the order in which they are allocated; returns all that it returned.

    PyTorch's operators allocate what they return. So that no copy is timed that is no work of the
    kernel, these allocations are served from the outputs' own memory; a result that came to lie
    elsewhere is copied. Not `in_place` where function() keeps what it allocates: the outputs are
    the program's to write to."""
    for output in outputs if in_place else ():
        LIBRARY.torch_offer(output.data, output.bytes)
    try:
        results = function()
    finally:
        LIBRARY.torch_withdraw()
    moved = [
        (view(output), result)
        for output, result in zip(outputs, results)
        if result.data_ptr() != output.data
    ]
    places = {output.data for output in outputs}
    moved = [(to, r.clone() if r.data_ptr() in places else r) for to, r in moved]
    for to, result in moved:
        to.copy_(_in_shape(result, to.shape))
    return results
