"""Which NCCL a process has that is a rank and also imports PyTorch."""

import importlib.util
import os


def own_nccl():
    """The file of this Python's nvidia-nccl package, "" without one."""
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
    """Has the program load the NCCL that PyTorch came with. Libraries of one name are loaded once per process: if
    the system's, often an older one, came first, PyTorch would get it and miss functions. LONGCA_NCCL
    still decides where it is set."""
    file = own_nccl()
    if file:
        os.environ.setdefault("LONGCA_NCCL", file)
