"""Compiles for later cases before the first of them runs, in processes of their own."""

import json
import os
import subprocess
import sys

from longca_host.kernels import Unavailable

HOST = os.path.abspath(sys.argv[0])


def compile_ahead(host, arguments, say):
    """Compiles for the cases to come, unless an earlier worker of the run has."""
    with open(arguments.ahead, encoding="utf-8") as file:
        text = file.read()
    if not text:
        return
    shapes = {}  # by kernel: what its `to_compile` named, each once
    for case in json.loads(text):
        try:
            module = host.module(case["kernel"])
        except Unavailable:
            continue
        if not hasattr(module, "to_compile"):
            continue
        shape = host.ask_about(case, module)
        if shape is not None:
            shapes.setdefault(case["kernel"], {})[tuple(shape)] = None
    for kernel, distinct in shapes.items():
        say({"stage": "compile"})
        compile_apart(arguments, kernel, list(distinct))
    os.truncate(arguments.ahead, 0)


def compile_apart(arguments, kernel, shapes):
    """Compiles the shapes in several processes, into the cache on disk. If one fails, the kernel's
    own call compiles again and reports the error."""
    count = min(len(shapes), max(1, (os.cpu_count() or 1) // 2), 8)
    environment = dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS="1")
    command = [sys.executable, HOST, "--library", arguments.library]
    processes = [
        subprocess.Popen(
            [*command, "--compile", json.dumps([kernel, shapes[i::count]])], env=environment
        )
        for i in range(count)
    ]
    for process in processes:
        process.wait()


def compile_shapes(host, kernel, shapes):
    """What such a process does."""
    for shape in shapes:
        host.module(kernel).compile_shape(*shape)
    return 0
