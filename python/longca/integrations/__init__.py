"""longca inside other libraries."""

import importlib


def __getattr__(name):
    """`longca.integrations.transformers` is imported when it is first named: it needs that library."""
    if name == "transformers":
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'longca.integrations' has no attribute {name!r}")
