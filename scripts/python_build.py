"""How `pip install .` builds: by scikit-build-core, and by the CUDA compiler of PyPI where a GPU lacks one.

-C cmake.define.LONGCA_CUDA_ARCHITECTURES=all (or $LONGCA_CUDA_ARCHITECTURES) asks for code for all GPUs, also on a
machine without one; -C cmake.define.LONGCA_CUDA=OFF for none.
"""

import importlib.util
import os
import pathlib
import subprocess

from scikit_build_core import build as _build
from scikit_build_core.build import *  # noqa: F403  the hooks that need no compiler

_SCRIPTS = pathlib.Path(__file__).resolve().parent
_ARCHITECTURES = "LONGCA_CUDA_ARCHITECTURES"


def _needs_compiler(settings):
    define = {key.split(".")[-1]: value for key, value in (settings or {}).items() if "cmake.define." in key}
    if str(define.get("LONGCA_CUDA", "ON")).upper() in ("OFF", "0", "FALSE", "NO"):
        return False
    asked = define.get(_ARCHITECTURES) or os.environ.get(_ARCHITECTURES)
    options = ["--for-any-gpu"] if asked else []
    return subprocess.run([_SCRIPTS / "needs_cuda_compiler", *options], check=False).returncode == 0


def _compiler_packages():
    """NAME==VERSION of what scripts/python_packages.txt lists as the compiler."""
    lines = (_SCRIPTS / "python_packages.txt").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")] for line in lines if not line.startswith("#")]
    return [f"{row[0]}=={row[1]}" for row in rows if len(row) > 2 and row[2] == "compiler"]


def _requirements(hook, settings):
    return [*hook(settings), *(_compiler_packages() if _needs_compiler(settings) else [])]


def _use_compiler(settings):
    """Names the nvcc that was installed for this build in $CUDACXX."""
    if not _needs_compiler(settings):
        return
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else []
    found = [nvcc for folder in folders for nvcc in pathlib.Path(folder).glob("cu*/bin/nvcc")]
    if not found:  # without build isolation
        packages = " ".join(_compiler_packages())
        raise RuntimeError(f"there is no nvcc: pip install {packages}, or -C cmake.define.LONGCA_CUDA=OFF")
    os.environ["CUDACXX"] = str(found[0])


def get_requires_for_build_wheel(config_settings=None):
    return _requirements(_build.get_requires_for_build_wheel, config_settings)


def get_requires_for_build_editable(config_settings=None):
    return _requirements(_build.get_requires_for_build_editable, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _use_compiler(config_settings)
    return _build.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _use_compiler(config_settings)
    return _build.build_editable(wheel_directory, config_settings, metadata_directory)
