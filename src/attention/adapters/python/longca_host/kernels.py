"""The kernels that are called from Python, and the calls that C++ makes of them."""

import gc
import importlib
import json
import traceback

from longca_host.library import Callbacks, Problem
from longca_host.masks import Mask
from longca_host.tensors import Tensor


class Unavailable(Exception):
    """A kernel whose package is missing; the sentence says what to install."""


class Call:
    """The tensors of one forward or backward call by name, and its stream (a cudaStream_t). `sink`
    and `dsink`, [heads_q] float32, are None in a call without sinks."""

    def __init__(self, arguments):
        for name, _ in arguments._fields_:
            if name == "stream":
                self.stream = arguments.stream or 0
            elif name == "lse":
                self.lse = Tensor.of_lse(arguments.lse)
            elif name in ("sink", "dsink"):
                setattr(self, name, Tensor.of_heads(getattr(arguments, name), arguments.q))
            else:
                setattr(self, name, Tensor.of(getattr(arguments, name)))


def short(value):
    """repr(value), the rest of a long one left out."""
    text = repr(value)
    return text if len(text) <= 100 else text[:99] + "…"


def first_line(error):
    text = str(error).strip()
    line = text.splitlines()[0][:400] if text else ""
    return f"{type(error).__name__}: {line}" if line else type(error).__name__


class Host:
    """The kernels by name, the plans by number, and the calls that C++ makes."""

    def __init__(self, library):
        self.library = library
        self.rows = json.loads(library.python_rows())  # what to install, by row
        self._modules = {}
        self._plans = {}
        self._found_in_use = {}  # by plan: the device, and its bytes in use before the plan was made
        self._next_plan = 0
        self.callbacks = Callbacks()
        for name, kind in Callbacks._fields_:
            setattr(self.callbacks, name, kind(getattr(self, name)))

    def add_plugin(self, module):
        self._modules[module.capabilities["name"]] = module

    def module(self, kernel):
        """The module of a kernel. A failed import is remembered and not tried again."""
        if kernel not in self._modules:
            try:
                self._modules[kernel] = importlib.import_module(f"longca_adapters.{kernel}")
            except Exception as error:  # a wheel for another version fails in any way
                self._modules[kernel] = error
        module = self._modules[kernel]
        if isinstance(module, Exception):
            raise Unavailable(f"{kernel} needs {self.rows[kernel]}: {first_line(module)}")
        return module

    def ask_about(self, case, module):
        """What module.to_compile returns for a case; None if the kernel refuses the case."""
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
        """The result of call(); an exception becomes the reply."""
        try:
            return call()
        except Unavailable as error:
            self._reply(reply, "unavailable", str(error))
        except BaseException as error:
            refusal = self.library.take_refusal()
            if (
                refusal
                or isinstance(error, MemoryError)
                or type(error).__name__ == "OutOfMemoryError"
            ):
                said = str(error) if isinstance(error, MemoryError) else ""
                self._reply(reply, "oom", refusal or said or first_line(error))
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
            copy = Problem.from_buffer_copy(problem.contents)
            reason = module.supports(copy, Mask(self.library, mask))
            if isinstance(reason, str) and reason:
                self._reply(reply, "unsupported", reason)
            elif reason is not None:
                raise TypeError(f"supports returned {reason!r}: None, or a sentence that says why not")

        self._answer(reply, ask)

    def plan(self, reply, kernel, problem, mask):
        def make():
            number, self._next_plan = self._next_plan, self._next_plan + 1
            module = self.module(kernel.decode())
            # A copy: the plan may keep it, and the program's own ends with this call.
            kept = Problem.from_buffer_copy(problem.contents)
            device = kept.device_code
            before = self.library.bytes_in_use(device)
            made = module.plan(kept, Mask(self.library, mask))
            for name in ("forward", "backward") if kept.backward else ("forward",):
                if not callable(getattr(made, name, None)):
                    raise TypeError(
                        f"plan returned {short(made)}, without {name}: an object with forward(call) "
                        "and, where problem.backward, backward(call)"
                    )
            self._plans[number] = made
            self._found_in_use[number] = (device, before)
            return number

        number = self._answer(reply, make)
        return -1 if number is None else number

    def forward(self, reply, plan, arguments):
        self._answer(reply, lambda: self._plans[plan].forward(Call(arguments.contents)))

    def backward(self, reply, plan, arguments):
        self._answer(reply, lambda: self._plans[plan].backward(Call(arguments.contents)))

    def facts(self, reply, plan):
        def answer():
            made = self._plans[plan]
            for name, text in getattr(made, "notes", {}).items():
                self.library.reply_note(reply, name.encode(), str(text).encode(errors="replace"))
            for name in ("workspace_bytes", "compile_ms"):
                self.library.reply_number(reply, name.encode(), float(getattr(made, name, 0)))

        self._answer(reply, answer)

    def release(self, plan):
        try:
            made = self._plans.pop(plan, None)
            if hasattr(made, "close"):
                made.close()
            del made
            # Tensors in a cycle of references would stay until Python looks for such cycles, and the
            # next cells would find the device full.
            device, before = self._found_in_use.pop(plan)
            if self.library.bytes_in_use(device) > before:
                gc.collect()
        except BaseException:
            traceback.print_exc()

    def version(self, reply, kernel):
        def answer():
            module = self.module(kernel.decode())
            version = module.version() if hasattr(module, "version") else ""
            self.library.reply_note(reply, b"version", version.encode())

        self._answer(reply, answer)
