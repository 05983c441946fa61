"""The package in a process of its own: found, forked, left by a process group, ended."""

import os
import pathlib
import subprocess
import sys

import pytest


def run(script, **options):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120, **options)


def said(script):
    """What a script prints, which has to end well."""
    done = run(script)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout.split()


@pytest.mark.skipif("LONGCA_LIBRARY" not in os.environ, reason="the package has its library inside")
def test_the_library_may_be_named_from_where_the_process_is():
    library = pathlib.Path(os.environ["LONGCA_LIBRARY"]).absolute()
    done = run("import longca", cwd=library.parent, env={**os.environ, "LONGCA_LIBRARY": library.name})
    assert done.returncode == 0, done.stderr


# Names what is released: of the first things nothing before the end, of the others all but what a plan keeps.
RELEASED = """
import gc, tempfile
import longca, longca.parallel, torch
import torch.distributed as dist
from longca._library import lib
for name in ("mask", "plan", "partition", "rank_plan"):
    setattr(lib, f"longca_{name}_release", lambda handle, name=name: print(name))
dist.init_process_group("gloo", init_method=f"file://{tempfile.mkdtemp()}/store", rank=0, world_size=1)
def make(tokens):
    mask, q = longca.Mask("causal", tokens), torch.zeros(tokens, 1, 8)
    partition = longca.parallel.Partition(mask, heads=(1, 1), dim=8, device="cpu")
    longca.attention(q, q, q, mask)
    longca.parallel.attention(q, q, q, partition)
    return mask, partition
kept = make(8)
make(16)
longca.Mask("full", 8)
gc.collect()
dist.destroy_process_group()
"""


def test_handles_are_released_with_their_owners_and_not_at_exit():
    """At exit a daemon thread may still use them."""
    assert sorted(said(RELEASED)) == ["mask", "partition", "rank_plan"]


# The parent's first mask is being made in another thread when a child makes its own.
FORKED = """
import multiprocessing, threading, time
import longca
def make():
    longca.Mask("causal", 8)
threading.Thread(target=make).start()
time.sleep(0.1)
child = multiprocessing.get_context("fork").Process(target=make)
child.start()
child.join(20)
print(child.exitcode)
child.kill()
"""


def test_a_child_that_is_forked_while_the_first_mask_is_made_ends():
    assert said(FORKED) == ["0"]


NO_UTF8 = """
from longca import _library
class Last:
    def longca_last_error(self):
        return b"rank 1: caf\\xe9"
_library.lib = Last()
try:
    _library.check(5)
except RuntimeError as error:
    print(ascii(str(error)))
"""


def test_a_sentence_that_is_no_utf8_is_shown():
    assert said(NO_UTF8) == ["'rank", "1:", "caf\\ufffd'"]


DESTROYED = """
import os, tempfile, time
import longca
import torch.distributed as dist
dist.init_process_group("gloo", init_method=f"file://{tempfile.mkdtemp()}/store", rank=0, world_size=1)
longca.Mask("causal", 8)
def threads():
    names = [open(f"/proc/self/task/{thread}/comm").read().strip() for thread in os.listdir("/proc/self/task")]
    return names.count("pt_gloo_runloop")
begin = time.monotonic()
while threads() == 0 and time.monotonic() < begin + 5:  # a thread names itself
    time.sleep(0.01)
print(threads())
dist.destroy_process_group()
print(threads())
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs the threads' names")
def test_a_destroyed_process_group_leaves_no_thread():
    before, after = map(int, said(DESTROYED))
    if before == 0:
        pytest.skip("this PyTorch names its threads otherwise")
    assert after == 0


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asks typing for overloads")
def test_what_attention_returns_is_known_by_return_lse():
    import inspect
    import typing

    import longca

    both = "tuple[Tensor, Tensor]"
    seen = []
    for overload in typing.get_overloads(longca.attention):
        lse = inspect.signature(overload).parameters["return_lse"]
        result = typing.get_type_hints(overload)["return"]
        seen.append((str(lse.annotation).replace("typing.", ""), lse.kind is lse.KEYWORD_ONLY, str(result).replace("torch.", "")))
    assert seen == [
        ("Literal[False]", False, "<class 'Tensor'>"), ("Literal[True]", True, both), ("Literal[True]", False, both),
        ("<class 'bool'>", False, f"typing.Union[Tensor, {both}]")]


def test_what_the_package_offers_has_types():
    """For the editors and checkers of those who use it: py.typed promises it."""
    import inspect

    import longca
    import longca.parallel

    assert (pathlib.Path(longca.__file__).parent / "py.typed").exists()
    mask, partition = longca.Mask, longca.parallel.Partition
    offered = [longca.attention, longca.plan_stats, longca.parallel.attention, mask.__init__, partition.__init__,
               partition.shard, partition.unshard]
    members = {name: inspect.getattr_static(mask, name) for name in dir(mask) if not name.startswith("_")}
    offered += [member.fget if isinstance(member, property) else getattr(mask, name)
                for name, member in members.items()]
    assert len(offered) == 19, sorted(members)
    for function in offered:
        signature = inspect.signature(function)
        untyped = [name for name, parameter in signature.parameters.items()
                   if name != "self" and parameter.annotation is inspect.Parameter.empty]
        assert not untyped, (function, untyped)
        assert signature.return_annotation is not inspect.Signature.empty, function
