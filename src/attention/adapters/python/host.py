"""Makes this Python process a worker of longca: it loads the program as a library, lends it the
kernels that are called from Python, and runs the program's own worker loop, which measures and
verifies them as it does any other. Needs nothing but Python 3.9.

    python3 host.py --library liblongca_host.so [--plugin FILE]… --socket N [--ahead FILE]
    python3 host.py --library liblongca_host.so [--plugin FILE]… --socket N --describe | --survey

With --describe it only says, over the socket, which kernels the plug-ins have; with --survey, which
packages of the program's own rows are here. FILE has the cases to come, as JSON: what kernels can
compile for them is compiled first, in processes of their own, so that no cell waits for it.
"""

import argparse
import ctypes
import importlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import traceback

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)
sys.path.insert(0, os.path.join(FOLDER, "adapters"))

from library import Callbacks, Library, Problem  # noqa: E402
from masks import Mask  # noqa: E402
from tensors import Tensor  # noqa: E402

# What to install for a row whose file cannot import its package.
PACKAGES = {
    "sdpa": "PyTorch with CUDA (pip install torch)",
    "fa2": "PyTorch with CUDA (pip install torch)",
    "flex": "PyTorch with CUDA and Triton (pip install torch)",
    "fa1": "PyTorch and flash-attn 1 (pip install flash-attn==1.0.9 --no-build-isolation)",
    "fa3": "PyTorch and FlashAttention 3: flash_attn_interface from the hopper folder of its source, "
    "or its forward pass alone (pip install fa3-fwd)",
    "ffa": "PyTorch and magi_attention, built from its source",
    "flashmask": "PaddlePaddle 3 for GPUs (paddlepaddle-gpu from paddlepaddle.org.cn)",
}


class Call:
    """The tensors of one forward or backward call by name, and its stream (a cudaStream_t)."""

    def __init__(self, arguments):
        for name, _ in arguments._fields_:
            if name == "stream":
                self.stream = arguments.stream or 0
            elif name == "lse":
                self.lse = Tensor.of_lse(arguments.lse)
            else:
                setattr(self, name, Tensor.of(getattr(arguments, name)))


def first_line(error):
    text = str(error).strip()
    line = text.splitlines()[0][:400] if text else ""
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


def place_of(error, file):
    """Where in `file` an error arose, as " (line 7)"; "" if not there."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    if isinstance(error, SyntaxError) and error.filename == file:
        lines = [error.lineno]
    return f" (line {lines[-1]})" if lines else ""


class Host:
    """The kernels by name, the plans by number, and the calls that C++ makes."""

    def __init__(self, library):
        self.library = library
        self._modules = {}
        self._plans = {}
        self._next_plan = 0
        self.callbacks = Callbacks()
        for name, kind in Callbacks._fields_:
            setattr(self.callbacks, name, kind(getattr(self, name)))

    def add_plugin(self, module):
        self._modules[module.capabilities["name"]] = module

    def module(self, kernel):
        """The file behind a kernel. What it fails to import is remembered: it would not be found
        the next time either."""
        if kernel not in self._modules:
            try:
                self._modules[kernel] = importlib.import_module(kernel)
            except Exception as error:  # a wheel for another version fails in any way
                self._modules[kernel] = error
        module = self._modules[kernel]
        if isinstance(module, Exception):
            raise Unavailable(f"{kernel} needs {PACKAGES[kernel]}: {first_line(module)}")
        return module

    def ask_about(self, case, module):
        """What module.to_compile says of a case; None if that is nothing or the case is refused."""
        problem = Problem()
        handle = self.library.case_mask(json.dumps(case).encode(), problem)
        if not handle:
            return None
        try:
            mask = Mask(self.library, handle)
            return None if module.supports(problem, mask) else module.to_compile(problem, mask)
        finally:
            self.library.release_mask(handle)

    def _answer(self, reply, call):
        """The result of call(); what it raises becomes the reply."""
        try:
            return call()
        except Unavailable as error:
            self._reply(reply, "unavailable", str(error))
        except BaseException as error:
            refusal = self.library.take_refusal()
            if refusal or isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
                self._reply(reply, "oom", refusal or first_line(error))
            else:
                traceback.print_exc()
                self._reply(reply, "crash", first_line(error))
        return None

    def _reply(self, reply, code, sentence):
        self.library.reply(reply, code.encode(), sentence.encode(errors="replace"))

    # The functions of host_interface.h.

    def supports(self, reply, kernel, problem, mask):
        def ask():
            module = self.module(kernel.decode())
            reason = module.supports(problem.contents, Mask(self.library, mask))
            if reason:
                self._reply(reply, "unsupported", str(reason))

        self._answer(reply, ask)

    def plan(self, reply, kernel, problem, mask):
        def make():
            number, self._next_plan = self._next_plan, self._next_plan + 1
            module = self.module(kernel.decode())
            self._plans[number] = module.plan(problem.contents, Mask(self.library, mask))
            return number

        number = self._answer(reply, make)
        return -1 if number is None else number

    def forward(self, reply, plan, arguments):
        self._answer(reply, lambda: self._plans[plan].forward(Call(arguments.contents)))

    def backward(self, reply, plan, arguments):
        self._answer(reply, lambda: self._plans[plan].backward(Call(arguments.contents)))

    def facts(self, reply, plan):
        def tell():
            made = self._plans[plan]
            for name, text in getattr(made, "notes", {}).items():
                self.library.reply_note(reply, name.encode(), str(text).encode(errors="replace"))
            for name in ("workspace_bytes", "compile_ms"):
                self.library.reply_number(reply, name.encode(), float(getattr(made, name, 0)))

        self._answer(reply, tell)

    def release(self, plan):
        try:
            made = self._plans.pop(plan, None)
            if hasattr(made, "close"):
                made.close()
        except BaseException:
            traceback.print_exc()

    def version(self, reply, kernel):
        def tell():
            module = self.module(kernel.decode())
            version = module.version() if hasattr(module, "version") else ""
            self.library.reply_note(reply, b"version", version.encode())

        self._answer(reply, tell)


class Unavailable(Exception):
    """A kernel whose package is not here; the sentence says what to install."""


class BadPlugin(Exception):
    """A plug-in that cannot be used; the sentence follows its name."""


def load_plugin(file):
    name = os.path.splitext(os.path.basename(file))[0]
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        raise BadPlugin(f"cannot be imported: {first_line(error)}{place_of(error, file)}") from error
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
        json.dumps(capabilities)
    except BadPlugin as error:
        return {"error": str(error)}
    except (TypeError, ValueError) as error:
        return {"error": f"has capabilities that are no plain data: {error}"}
    return {"kernels": capabilities, "python": sys.version.split()[0]}


def survey(host):
    """The answer to --survey."""
    rows = {}
    for name in PACKAGES:
        try:
            rows[name] = {"reason": "", "version": host.module(name).version()}
        except Unavailable as error:
            rows[name] = {"reason": str(error), "version": ""}
    return {"rows": rows}


def ahead(host, arguments):
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
        say(arguments.socket, {"stage": "compile"})
        compile_apart(arguments, kernel, list(distinct))
    os.truncate(arguments.ahead, 0)


def compile_apart(arguments, kernel, shapes):
    """Shares the shapes among processes, which leave what they compile in the cache on disk. One
    that fails costs nothing but its head start: the kernel's own call will tell."""
    count = min(len(shapes), max(1, (os.cpu_count() or 1) // 2), 8)
    environment = dict(os.environ, TORCHINDUCTOR_COMPILE_THREADS="1")
    command = [sys.executable, os.path.abspath(__file__), "--library", arguments.library]
    processes = [
        subprocess.Popen(
            [*command, "--compile", json.dumps([kernel, shapes[i::count]])], env=environment
        )
        for i in range(count)
    ]
    for process in processes:
        process.wait()


def compile_shapes(host, kernel, shapes):
    """The life of one of these processes."""
    for shape in shapes:
        host.module(kernel).compile_shape(*shape)
    return 0


def say(number, message):
    """A message to the runner; the socket stays open."""
    channel = socket.socket(fileno=os.dup(number))
    channel.sendall((json.dumps(message) + "\n").encode())
    channel.close()


def run(arguments):
    library = Library(arguments.library)
    host = Host(library)
    if arguments.describe:
        say(arguments.socket, describe(arguments.plugin))
        return 0
    if arguments.survey:
        say(arguments.socket, survey(host))
        return 0
    if arguments.compile:
        return compile_shapes(host, *json.loads(arguments.compile))
    in_cpp = []
    for file in arguments.plugin:
        if not file.endswith(".py"):
            in_cpp.append(file.encode())
            continue
        module = load_plugin(file)
        if library.add_kernel(json.dumps(module.capabilities).encode()) != 0:
            raise BadPlugin(library.error())
        host.add_plugin(module)
    if arguments.ahead:
        ahead(host, arguments)
    files = (ctypes.c_char_p * len(in_cpp))(*in_cpp)
    if library.run_worker(arguments.socket, files, len(in_cpp), host.callbacks) != 0:
        raise RuntimeError(library.error())
    return 0


def main():
    if sys.version_info < (3, 9):
        sys.exit(f"Python {sys.version.split()[0]} is too old, 3.9 is needed")
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--plugin", action="append", default=[])
    parser.add_argument("--socket", type=int, default=-1)
    parser.add_argument("--ahead")
    parser.add_argument("--compile")
    parser.add_argument("--describe", action="store_true")
    parser.add_argument("--survey", action="store_true")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        code = run(parser.parse_args())
    except (BadPlugin, OSError, RuntimeError, AttributeError) as error:
        print(first_line(error), flush=True)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # Libraries that are taken down in an order of their own have nothing left to do.
    os._exit(code)


if __name__ == "__main__":
    main()
