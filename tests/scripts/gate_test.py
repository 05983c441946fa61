"""The arguments of scripts/gate, and what it says without a GPU."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

GATE = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "gate"


class Gate(unittest.TestCase):
    def setUp(self):
        """A checkout of two commits whose `longca` prints its arguments, and no GPU."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "checkout"
        self.tools = pathlib.Path(folder.name) / "tools"
        (self.root / "scripts").mkdir(parents=True)
        self.tools.mkdir()
        shutil.copy(GATE, self.root / "scripts" / "gate")
        self.executable(self.root / "longca", 'echo "$*"; exit "${LONGCA_EXIT:-0}"')
        self.executable(self.tools / "nvidia-smi", "exit 9")
        self.git("init", "--quiet", "--initial-branch", "main")
        self.first = self.commit()
        self.second = self.commit()

    @staticmethod
    def executable(path, text):
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def git(self, *arguments):
        identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
        command = ["git", "-C", str(self.root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **identity}).stdout.strip()

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "--quiet", "--allow-empty", "--message", "one")
        return self.git("rev-parse", "HEAD")

    def gate(self, *arguments, **environment):
        path = f"{self.tools}:{os.environ['PATH']}"
        return subprocess.run([self.root / "scripts" / "gate", *arguments], capture_output=True, text=True,
                              env={**os.environ, "PATH": path, **environment})

    def expect_refusal(self, code, sentence, *arguments):
        ended = self.gate(*arguments)
        self.assertEqual((ended.returncode, ended.stdout), (code, ""))
        self.assertEqual(ended.stderr, f"gate: {sentence}\n")

    def test_without_a_gpu_it_says_so(self):
        self.expect_refusal(69, "nvidia-smi finds no GPU on this machine: nothing was compared")

    def test_wrong_arguments_are_refused(self):
        self.expect_refusal(2, "unknown option '--round'; there are --rounds N and --dry-run", "--round", "3")
        self.expect_refusal(2, "--rounds needs a number from 1 to 1000, not '0'", "--rounds", "0")
        self.expect_refusal(2, "--rounds needs a number from 1 to 1000, not '1001'", "--rounds", "1001")
        self.expect_refusal(2, "--rounds needs a number from 1 to 1000, not ''", "--rounds")
        self.expect_refusal(2, "one commit is compared with HEAD, not 'HEAD~1' and 'HEAD'", "HEAD~1", "HEAD")
        self.expect_refusal(2, "git knows no commit 'nothing'", "nothing")
        self.expect_refusal(2, "'main' is HEAD itself: there is nothing to compare", "main")

    def test_changes_that_are_not_committed_are_refused(self):
        (self.root / "longca").write_text("changed")
        self.expect_refusal(2, "there are changes that are not committed, and would not be measured")

    def test_on_main_the_commit_before_is_compared_and_on_a_branch_where_it_left(self):
        self.assertIn(f"--commits {self.first} {self.second} slice", self.gate("--dry-run").stdout)
        self.git("checkout", "--quiet", "-b", "branch")
        self.commit()
        third = self.commit()
        self.assertIn(f"--commits {self.second} {third} slice", self.gate("--dry-run").stdout)
        self.assertIn(f"--commits {self.first} {third} slice", self.gate("--dry-run", self.first).stdout)

    def test_on_a_gpu_the_verdict_of_compare_is_its_own(self):
        self.executable(self.tools / "nvidia-smi", "exit 0")
        ended = self.gate("--rounds", "3", LONGCA_EXIT="1")
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stdout, rf"^compare --commits {self.first} {self.second} slice .* --rounds 3 --out ")


if __name__ == "__main__":
    unittest.main()
