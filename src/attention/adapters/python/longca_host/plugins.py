"""Plug-ins: users' kernels, each a Python file."""

import importlib.util
import json
import os
import sys
import traceback

from longca_host.kernels import first_line


class BadPlugin(Exception):
    """An unusable plug-in; the sentence follows its name."""


def place_of(error, file):
    """The line of `file` where an error arose, as " (line 7)"; "" if it arose elsewhere."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    if isinstance(error, SyntaxError) and error.filename == file:
        lines = [error.lineno]
    return f" (line {lines[-1]})" if lines else ""


def load_plugin(file):
    name = os.path.splitext(os.path.basename(file))[0]
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        raise BadPlugin(
            f"cannot be imported: {first_line(error)}{place_of(error, file)}"
        ) from error
    if not isinstance(getattr(module, "capabilities", None), dict):
        raise BadPlugin("has no dict `capabilities`")
    for function in ("supports", "plan"):
        if not callable(getattr(module, function, None)):
            raise BadPlugin(f"has no function `{function}`")
    return module


def describe(plugins):
    """The answer to --describe."""
    try:
        capabilities = [load_plugin(file).capabilities for file in plugins]
        # What Python takes for JSON and others do not: NaN, infinities, half of a surrogate pair.
        json.dumps(capabilities, allow_nan=False, ensure_ascii=False).encode()
    except BadPlugin as error:
        return {"error": str(error)}
    except (TypeError, ValueError) as error:
        return {"error": f"has capabilities that are no plain data: {error}"}
    return {"kernels": capabilities, "python": sys.version.split()[0]}
