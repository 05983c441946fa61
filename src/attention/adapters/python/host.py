"""Makes this Python process a worker or a rank of longca: loads the program as a library, passes it
the kernels that are called from Python, and runs the program's own loop, which measures and
verifies them like any other. Needs Python 3.9 only.

    python3 host.py --library liblongca_host.so [--plugin FILE]… --socket N [--ahead FILE]
    python3 host.py --library liblongca_host.so [--plugin FILE]… --socket N --describe | --survey
    python3 host.py --library liblongca_rank.so [--plugin FILE]… --connect ADDRESS
                    [--suite-hash TEXT]

With --describe it only sends the plug-ins' capabilities over the socket; with --survey, which of
the program's own Python rows are installed. FILE has the later cases, as JSON: kernels compile for
them first, in processes of their own, so that no cell waits for it. With --connect it is a rank
that mpirun or srun has started, and takes longca-rank's arguments.
"""

import argparse
import ctypes
import json
import os
import signal
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from longca_host.ahead import compile_ahead, compile_shapes  # noqa: E402
from longca_host.kernels import Host, Unavailable, first_line  # noqa: E402
from longca_host.library import Library  # noqa: E402
from longca_host.nccl import prefer_own_nccl  # noqa: E402
from longca_host.plugins import BadPlugin, describe, load_plugin  # noqa: E402


def survey(host):
    """The answer to --survey."""
    rows = {}
    for name in host.rows:
        try:
            rows[name] = {"reason": "", "version": host.module(name).version()}
        except Unavailable as error:
            rows[name] = {"reason": str(error), "version": ""}
    return {"rows": rows}


def say(number, message):
    """A message to the runner, of the form that LineChannel has; the socket stays open."""
    channel = socket.socket(fileno=os.dup(number))
    secret = os.environ.get("LONGCA_SECRET", "")
    channel.sendall(f"{secret} {json.dumps(message)}\n".encode())
    channel.close()


def run(arguments):
    if arguments.socket >= 0:
        os.set_inheritable(arguments.socket, False)  # no process of a kernel's gets it
    if arguments.connect is not None:
        prefer_own_nccl()
    library = Library(arguments.library, of_rank=arguments.connect is not None)
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
        compile_ahead(host, arguments, lambda message: say(arguments.socket, message))
    files = (ctypes.c_char_p * len(in_cpp))(*in_cpp)
    if arguments.connect is not None:
        address, suite_hash = arguments.connect.encode(), arguments.suite_hash.encode()
        return library.run_rank(address, suite_hash, files, len(in_cpp), host.callbacks)
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
    parser.add_argument("--connect")
    parser.add_argument("--suite-hash", default="")
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
    # Skips the destructors of libraries, which could run in any order.
    os._exit(code)


if __name__ == "__main__":
    main()
