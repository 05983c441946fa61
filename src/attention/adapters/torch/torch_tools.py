"""Shared by kernels on PyTorch's tensors: the program's memory, stream and outputs."""

import contextlib
import functools
import time

import torch
from longca_host import library
from longca_host.tensors import Tensor, cuda_index

LIBRARY = library.loaded


def _use_tracker():
    """Makes PyTorch allocate through the program's tracker; before its first allocation."""
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
    """A context whose work is queued on that cudaStream_t; by default on the program's own."""
    return torch.cuda.stream(_stream(LIBRARY.stream(1) if address is None else address))


@contextlib.contextmanager
def deterministic(wanted):
    """A context in which PyTorch's operators add in a fixed order if they can. Memory that they
    allocate is not filled, which would be timed with the kernel."""
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


class FirstCalls:
    """Makes calls by name. The first one of a name compiles; `ms` is what those took."""

    def __init__(self):
        self.ms = 0.0
        self._made = set()

    def prepare(self, function):
        """Runs what a plan needs once per process, and counts it as compiling."""
        begin = time.perf_counter()
        function()
        torch.cuda.current_stream().synchronize()
        self.ms += (time.perf_counter() - begin) * 1e3

    def call(self, name, function):
        """Queues function() on the current stream."""
        if name not in self._made:
            self.prepare(function)
            self._made.add(name)
        return function()


_views = {}  # by memory and shape


def view(tensor):
    """The program's tensor as a PyTorch tensor of the same shape, without a copy."""
    found = _views.get(tensor.key)
    if found is None:
        if len(_views) > 256:
            _views.clear()
        found = _views[tensor.key] = torch.from_dlpack(tensor)
    return found


def views(*tensors):
    return [view(tensor) for tensor in tensors]


def _of_torch(tensor):
    """A PyTorch tensor [tokens, heads, dim] as the program's; the last dimension is contiguous."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Tensor(tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), dtype, "cuda")


def copy(source, target, stream):
    """Queues a copy between tensors of one shape, the program's or PyTorch's, of any strides, and
    from float32 to any dtype. PyTorch's own copy takes three times as long between layouts."""
    ends = [end if isinstance(end, Tensor) else _of_torch(end) for end in (source, target)]
    if LIBRARY.copy_tensor(*(end.as_c() for end in ends), stream) != 0:
        raise RuntimeError(LIBRARY.error())


def to_device(values, dtype=torch.int32):
    """A tensor on the GPU from numbers or from an array of masks.py."""
    return torch.as_tensor(values, dtype=dtype).cuda()


def _in_shape(result, shape):
    """Reshapes a result whose shape differs from `shape` in dimensions of size 1 only."""
    if [n for n in result.shape if n != 1] != [n for n in shape if n != 1]:
        raise RuntimeError(f"a result has the shape {list(result.shape)}, not {list(shape)}")
    return result.reshape(shape)


def into(outputs, function, in_place=True):
    """Calls function() and puts its results into `outputs`, the program's tensors, in the order in
    which the results are allocated; returns all that function() returned.

    PyTorch's operators allocate what they return. To time no copy that the kernel does not make,
    these allocations are served from the outputs' memory; a result that lies elsewhere is copied.
    `in_place` is False where function() keeps what it allocates: the program overwrites outputs."""
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
    # A copy that autograd saw would join the results' graph to the output's tensor, which is kept:
    # the tensors of every call would stay.
    with torch.no_grad():
        for to, result in moved:
            to.copy_(_in_shape(result, to.shape))
    return results
