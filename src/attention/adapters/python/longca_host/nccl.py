"""The NCCL of a process that is a rank and also imports PyTorch."""

import importlib.util
import os


def own_nccl():
    """The library of this Python's nvidia-nccl package, "" without one."""
    try:
        package = importlib.util.find_spec("nvidia.nccl")
    except (ImportError, ValueError):
        return ""
    for folder in (package and package.submodule_search_locations) or ():
        file = os.path.join(folder, "lib", "libnccl.so.2")
        if os.path.exists(file):
            return file
    return ""


def prefer_own_nccl():
    """Makes the program load the NCCL that PyTorch came with, unless LONGCA_NCCL is set. A process
    loads libraries of one name once: after the system's, often an older one, PyTorch would miss
    functions."""
    file = own_nccl()
    if file:
        os.environ.setdefault("LONGCA_NCCL", file)
