"""The CUDA compiler from PyPI: when it is needed, what pip is told, and what scripts/setup fetches."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = {"nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-cccl", "nvidia-cuda-runtime"}


def listed():
    """(name, version, condition) of scripts/python_packages.txt."""
    lines = (ROOT / "scripts" / "python_packages.txt").read_text().splitlines()
    return [tuple(cell.strip() for cell in line.split("|")[:3]) for line in lines if not line.startswith("#")]


class Machine(unittest.TestCase):
    """A folder in front of PATH with a stand-in for nvidia-smi; no nvcc."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        self.environment = {**os.environ, "PATH": f"{self.tools}:{os.environ['PATH']}", "CUDACXX": "absent-nvcc"}
        self.environment.pop("LONGCA_CUDA_ARCHITECTURES", None)
        self.has_gpus(0)

    @staticmethod
    def executable(path, text):
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def has_gpus(self, count, driver="580.159.04", capability="9.0"):
        each = "; ".join(["echo {}"] * count)
        self.executable(self.tools / "nvidia-smi", f"""[ {count} -gt 0 ] || exit 9
case "$*" in
  -L) {each.format(*(f"'GPU {i}: H100'" for i in range(count))) or ":"} ;;
  *driver_version*) {each.format(*[driver] * count) or ":"} ;;
  *compute_cap*) {each.format(*[capability] * count) or ":"} ;;
esac""")

    def has_nvcc(self, release=""):
        self.executable(self.tools / "nvcc", f"echo 'Cuda compilation tools, release {release}, V{release}.1'")
        self.environment.pop("CUDACXX", None)

    def needs(self):
        """Whether the compiler is needed, and what is said."""
        ended = subprocess.run([ROOT / "scripts" / "needs_cuda_compiler"], env=self.environment, capture_output=True,
                               text=True, check=False)
        self.assertIn(ended.returncode, (0, 1))
        self.assertEqual(ended.stdout, "")
        return ended.returncode == 0, ended.stderr


class Needs(Machine):
    def test_nothing_without_a_gpu(self):
        self.assertEqual(self.needs(), (False, ""))

    def test_the_compiler_for_a_gpu(self):
        self.has_gpus(2)
        self.assertEqual(self.needs(), (True, ""))
        self.has_gpus(1, driver="1000.1", capability="12.0")
        self.assertEqual(self.needs(), (True, ""))

    def test_nothing_where_there_is_an_nvcc(self):
        self.has_gpus(1)
        self.has_nvcc()
        self.assertEqual(self.needs(), (False, ""))

    def test_the_compiler_where_the_nvcc_is_too_old(self):
        self.has_gpus(1)
        for release, needed in (("11.8", True), ("12.3", True), ("12.4", False), ("13.0", False), ("", False)):
            self.has_nvcc(release)
            self.assertEqual(self.needs(), (needed, ""), release)
        self.has_nvcc("11.8")
        self.environment["CUDACXX"] = str(self.tools / "nvcc")
        self.assertEqual(self.needs(), (False, ""), "what the user names is used, or refused by the build")

    def test_an_old_driver_is_named(self):
        self.has_gpus(1, driver="575.57.08")
        needed, said = self.needs()
        self.assertFalse(needed)
        self.assertRegex(said, r"driver is 575\.57\.08, .* wants 580 or later .*CPU alone\n$")

    def test_an_old_gpu_is_named(self):
        self.has_gpus(1, capability="7.5")
        needed, said = self.needs()
        self.assertFalse(needed)
        self.assertIn("compute capability 7.5, GPU kernels want 8.0 or later", said)


class PythonBuild(Machine):
    """scripts/python_build.py over a stand-in for scikit-build-core."""

    def setUp(self):
        super().setUp()
        hooks = types.ModuleType("scikit_build_core.build")
        hooks.get_requires_for_build_wheel = hooks.get_requires_for_build_editable = lambda settings=None: ["ninja"]
        hooks.build_wheel = hooks.build_editable = lambda *arguments: os.environ.get("CUDACXX")
        package = types.ModuleType("scikit_build_core")
        package.build = hooks
        for patch in (mock.patch.dict(sys.modules, {"scikit_build_core": package, "scikit_build_core.build": hooks}),
                      mock.patch.object(sys, "path", [str(self.folder), *sys.path])):
            patch.start()
            self.addCleanup(patch.stop)
        spec = importlib.util.spec_from_file_location("python_build", ROOT / "scripts" / "python_build.py")
        self.build = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.build)

    def call(self, hook, *arguments):
        with mock.patch.dict(os.environ, self.environment, clear=True):
            return hook(*arguments)

    def required(self, **define):
        settings = {f"cmake.define.{name}": value for name, value in define.items()}
        both = [self.call(hook, settings) for hook in
                (self.build.get_requires_for_build_wheel, self.build.get_requires_for_build_editable)]
        self.assertEqual(*both)
        self.assertEqual(both[0][0], "ninja")
        return set(both[0][1:])

    compiler = {f"{name}=={version}" for name, version, condition in listed() if condition == "compiler"}

    def test_the_list_has_the_whole_compiler(self):
        self.assertEqual({requirement.split("==")[0] for requirement in self.compiler}, COMPILER)

    def test_a_gpu_asks_for_the_compiler(self):
        self.assertEqual(self.required(), set())
        self.has_gpus(1)
        self.assertEqual(self.required(), self.compiler)
        self.assertEqual(self.required(LONGCA_CUDA="OFF"), set())
        self.has_nvcc()
        self.assertEqual(self.required(), set())

    def test_architectures_ask_for_it_without_a_gpu(self):
        self.assertEqual(self.required(LONGCA_CUDA_ARCHITECTURES="all"), self.compiler)
        self.assertEqual(self.required(LONGCA_CUDA_ARCHITECTURES="all", LONGCA_CUDA="OFF"), set())
        self.environment["LONGCA_CUDA_ARCHITECTURES"] = "90a-real"
        self.assertEqual(self.required(), self.compiler)
        self.has_nvcc("12.0")
        self.assertEqual(self.required(), self.compiler)
        self.has_nvcc()
        self.assertEqual(self.required(), set())

    def test_the_build_uses_the_compiler_that_was_installed(self):
        self.has_gpus(1)
        sys.modules.pop("nvidia", None)
        with self.assertRaisesRegex(RuntimeError, "pip install nvidia-cuda-nvcc=="):
            self.call(self.build.build_wheel, "out")
        nvcc = self.folder / "nvidia" / "cu13" / "bin" / "nvcc"
        nvcc.parent.mkdir(parents=True)
        nvcc.touch()
        importlib.invalidate_caches()
        self.assertEqual(self.call(self.build.build_wheel, "out"), str(nvcc))
        self.assertEqual(self.call(self.build.build_editable, "out"), str(nvcc))
        self.has_gpus(0)
        self.assertEqual(self.call(self.build.build_wheel, "out"), "absent-nvcc")


class SetUp(Machine):
    """scripts/setup in a checkout whose program is nothing, with an index of empty wheels."""

    def setUp(self):
        super().setUp()
        self.checkout = self.folder / "check out"
        (self.checkout / "scripts").mkdir(parents=True)
        for name in ("setup", "needs_cuda_compiler", "packages.txt", "python_packages.txt"):
            shutil.copy(ROOT / "scripts" / name, self.checkout / "scripts")
        shutil.copy(ROOT / "CMakePresets.json", self.checkout)
        (self.checkout / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(small NONE)\nadd_custom_target(nothing)\n")
        self.cuda = self.checkout / "build" / "deps" / "cuda"
        index = self.folder / "index"
        index.mkdir()
        for name, version, condition in listed():
            if condition != "tests":
                self.wheel(index, name.replace("-", "_"), version)
        # What is always wanted, and everything of apt, is there.
        for name, version, condition in listed():
            if condition == "always":
                (self.checkout / "build" / "deps" / "python" / f"{name}-{version}.dist-info").mkdir(parents=True)
        every_package = f"""awk '!/^#/ {{ print "ii  " $1 }}' '{ROOT}/scripts/packages.txt'"""
        self.executable(self.tools / "dpkg-query", every_package)
        self.environment.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index))

    @staticmethod
    def wheel(index, name, version):
        """Has one file, nvidia/NAME, or the folders that are kept of it."""
        info = f"{name}-{version}.dist-info"
        files = {f"nvidia/{name}": "", **{f"flashinfer/data/{folder}/file": "" for folder in (
            "include", "cutlass/include", "cutlass/tools/util/include", "cccl/libcudacxx/include")},
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/RECORD": ""}
        with zipfile.ZipFile(index / f"{name}-{version}-py3-none-any.whl", "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)

    def set_up(self, *arguments):
        ended = subprocess.run([self.checkout / "scripts" / "setup", "--target", "nothing", *arguments],
                               env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stderr

    def fetched(self):
        return {path.name.replace("_", "-") for path in (self.cuda / "nvidia").glob("*")}

    def test_nothing_comes_without_a_gpu_or_without_cuda(self):
        self.set_up()
        self.has_gpus(1)
        for arguments in (["--without-cuda"], ["--preset", "no-cuda"], ["--preset", "tsan"]):
            self.assertNotIn("CUDA compiler", self.set_up(*arguments))
        self.assertFalse(self.cuda.exists())
        headers = self.checkout / "build" / "deps" / "python" / "nvidia" / "flashinfer_python"
        self.assertFalse(headers.exists(), "headers for GPU code")

    def test_a_gpu_gets_the_compiler_once(self):
        self.has_gpus(1)
        self.assertIn("fetching the CUDA compiler", self.set_up())
        libraries = {name for name, _, condition in listed() if condition == "gpu"}
        self.assertLess({"nvidia-cublas", "nvidia-cudnn-cu13"}, libraries)
        self.assertEqual(self.fetched(), COMPILER | libraries)
        self.assertTrue((self.checkout / "build" / "deps" / "python" / "flashinfer").exists(), "headers for GPU code")
        (self.checkout / "scripts" / "packages.txt").touch()
        self.assertNotIn("fetching", self.set_up())

    def test_two_gpus_get_nccl(self):
        self.has_gpus(2)
        self.set_up()
        self.assertIn("nvidia-nccl-cu13", self.fetched())

    def test_what_cannot_be_fetched_is_said(self):
        self.has_gpus(1)
        self.environment["PIP_FIND_LINKS"] = str(self.folder)
        self.assertIn("the CUDA compiler could not be fetched: until it can, longca is built for the CPU alone",
                      self.set_up())
        self.assertFalse(self.cuda.exists())


if __name__ == "__main__":
    unittest.main()
