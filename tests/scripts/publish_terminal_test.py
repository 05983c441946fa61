import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import publish_terminal as terminal  # noqa: E402
from publish_tables import CannotPublish  # noqa: E402

SPACE = "{http://www.w3.org/2000/svg}"


def texts_of(svg):
    """(y, x, words) of every text below the title bar."""
    found = [(float(text.get("y")), float(text.get("x")), text.text) for text in svg.iter(SPACE + "text")]
    return [place for place in found if place[0] > terminal.BAR]


class Terminal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "own").mkdir()
        (self.root / "own/docs.txt").write_text("300 200\n100\n")
        self.program = self.root / "program"

    def outputs(self, *commands, script="echo $*"):
        self.program.write_text(f"#!/bin/sh\n{script}\n")
        self.program.chmod(0o755)
        return terminal.outputs(commands, str(self.program), ["own/docs.txt"], self.root)

    def test_commands_run_where_the_files_are_and_nothing_else(self):
        self.assertEqual(self.outputs("head -1 own/docs.txt", "./longca ask 'a b' *", script='echo "$2"; find . -type f'),
                         ["300 200\n", "a b\n./own/docs.txt\n"])

    def test_the_picture_has_every_line_on_its_own_row_and_the_same_bytes_twice(self):
        printed = ["a < b & c > d\n\n  column     7\n"]
        made = terminal.picture(["./longca advise"], printed)
        self.assertEqual(made, terminal.picture(["./longca advise"], printed))
        svg = xml.etree.ElementTree.fromstring(made)
        words = [words for _, _, words in texts_of(svg)]
        self.assertEqual(words, ["$", "./longca advise", "a < b & c > d", "column", "7", "$"])
        self.assertLess(max(y for y, _, _ in texts_of(svg)), float(svg.get("height")))

    def test_no_row_is_wider_than_the_window(self):
        command = "./longca advise" + " --layers 32" * 30
        svg = xml.etree.ElementTree.fromstring(terminal.picture([command], ["word " * 99 + "\n" + "x" * 300 + "\n"]))
        texts = [text for text in svg.iter(SPACE + "text") if text.get("textLength")]
        ends = [float(text.get("x")) + float(text.get("textLength")) for text in texts]
        self.assertLessEqual(max(ends), float(svg.get("width")) - terminal.MARGIN + 1)

    def test_a_long_line_goes_on_once_and_is_cut(self):
        first, second = terminal.rows_of("word " * 60)
        self.assertEqual(first, " ".join(["word"] * 20))
        self.assertEqual((second[:9], second[-1], len(second)), ("    word ", terminal.CUT, terminal.COLUMNS))
        self.assertEqual(terminal.rows_of("x" * 101), ["x" * 99 + terminal.CUT])
        self.assertEqual(terminal.rows_of("x" * 100), ["x" * 100])

    def test_a_table_is_broken_between_columns_that_stay_aligned(self):
        rows = [terminal.rows_of(f"  {name:<40}  {7:>48}  {size:>9}  basis") for name in ("a b", "c")
                for size in ("9.5 GiB", "10.5 GiB")]
        self.assertEqual({row[1].index("basis") for row in rows}, {terminal.BREAKS[0][2] + 11})
        self.assertEqual([row[1].split("  ")[-2].strip() for row in rows], ["9.5 GiB", "10.5 GiB"] * 2)

    def test_a_long_command_is_continued_as_a_shell_has_it(self):
        command = "./longca advise" + " --tokens-per-step 256K" * 5
        rows = terminal.command_rows(command)
        self.assertEqual([row.endswith(" \\") for row in rows], [True, False])
        self.assertEqual("".join(row.removesuffix("\\").replace("    ", "") for row in rows), command)
        self.assertEqual(terminal.to_copy(["head a", command]), "```sh\nhead a\n" + "\n".join(rows) + "\n```\n")

    def test_what_cannot_be_recorded_is_named(self):
        for command, script, message in [("rm own/docs.txt", "", "not 'rm'"), ("head absent.txt", "", "absent.txt"),
                                         ("./longca ask", "exit 3", "./longca ask ended with 3"),
                                         ("./longca ask", "pwd", "prints a path of this machine")]:
            with self.assertRaisesRegex(CannotPublish, message):
                self.outputs(command, script=script)
        with self.assertRaisesRegex(CannotPublish, "needs commands="):
            terminal.commands_of(" ; ")


if __name__ == "__main__":
    unittest.main()
