"""What scripts/publish takes from screens and reports, on texts made by hand."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import publish_screens as screens  # noqa: E402
from publish_tables import CannotPublish  # noqa: E402


class Screens(unittest.TestCase):
    def expect_kept(self, part, kept, screen, refused, why):
        self.assertEqual(part(screen), f"```\n{kept}\n```\n")
        for wrong in refused:
            with self.assertRaisesRegex(CannotPublish, why):
                part(wrong)

    def test_of_the_screen_the_table_of_cells_is_kept(self):
        table = "                 forward\nmask    tokens  kernel  TFLOP/s\nfull        8K  fa3       759.8*"
        screen = f"8 cells: 8 ok\n\n         forward\nkernel    speed\nfa3       1.000\n\n{table}\n\n*  fastest\n"
        self.expect_kept(screens.console, table, screen, ("8 cells: 8 ok\n", f"{table}\n\nheads 8:2\n\n{table}\n"), "tables of cells")

    def test_of_the_screen_the_summary_is_kept(self):
        summary = "           forward\nkernel    speed\nfa3       1.000\nspeed: of the fastest's\nfirst: of these"
        screen = f"8 cells: 8 ok\n\n{summary}\n\nmask    tokens\nfull        8K\n"
        self.expect_kept(screens.summary, summary, screen,
                         ("8 cells: 8 ok\n", f"{summary}\n\nOver ranks: 1 cell\n\n{summary}\n"), "summaries")

    def test_of_a_report_the_tables_beside_dense_are_kept(self):
        section = "## Block-sparse attention beside dense\n\nheads 8:2\n\n### `a`, forward\n\n| 1 |\n|--:|\n\n### `b`, backward\n\n| 2 |\n"
        report = f"# longca-bench\n\n1 cell\n\n## density 0.2\n\n| 3 |\n\n{section}\n## Cells that cannot run\n\n- none\n"
        self.assertEqual(screens.beside_dense(report), "`a`, forward:\n\n| 1 |\n|--:|\n\n`b`, backward:\n\n| 2 |\n")
        with self.assertRaisesRegex(CannotPublish, "no block-sparse cells"):
            screens.beside_dense("# longca-bench\n\n## density 0.2\n\n| 3 |\n")

    def test_of_an_answer_the_files_are_left_out(self):
        choices = "NVIDIA H200: 3 cells\n\ncausal: step\n   1  slice  8.30"
        self.assertEqual(screens.answer(f"{choices}\n\nfrom the records in\n  results/a.jsonl\n"), f"```\n{choices}\n```\n")
        self.assertEqual(screens.answer(choices), f"```\n{choices}\n```\n")


if __name__ == "__main__":
    unittest.main()
