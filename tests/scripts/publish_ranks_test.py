import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import publish_ranks as ranks  # noqa: E402
from publish_tables import CannotPublish  # noqa: E402


def record(scheme="magi", ranks="8", rate="100", mask="full", which="forward", **more):
    return {"kernel": "fa3", "mask": mask, "tokens": "8192", "pass": which, "scheme": scheme, "ranks": ranks, "factor": "",
            "platform": "p", "status": "ok", "tflops": rate, "time_ms": "4", "exposed_comm_ms": "1", "compute_ms": "3",
            "bytes_sent": "2e6", "imbalance": "1.5", "time_imbalance": "1.25", "machine": "m", "build": "b", **more}


def rows_of(table):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")]


class Ranks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.figures = pathlib.Path(folder.name) / "published.csv"
        self.figures.write_text("scheme,mask,ranks,pass,tflops\nmagi,full,8,forward,80\nmagi,full,64,forward,50\n"
                                "usp,full,8,forward,40\nusp,full,64,forward,20\n")
        self.found = [record(), record(ranks="64", rate="40"), record("usp", rate="50"), record("usp", "64", "20"),
                      record("usp", "16", "30"), record("magi", mask="causal")]

    def test_published_figures_stand_beside_simulated_ones(self):
        text = ranks.ranks_published(self.found, self.figures, "fa3,slice")
        self.assertEqual(rows_of(text)[2:], [["`full`", "forward", "`usp`", "40 → 20", "50 → 20", "–"],
                                             ["`full`", "forward", "`magi`", "80 → 50", "100 → 40", "–"]])

    def test_their_agreement_is_of_the_figures_that_both_have(self):
        theirs = {("full", "forward", "magi", "8"): 100, ("full", "forward", "magi", "64"): 50, ("full", "forward", "usp", "8"): 1}
        ours = {("full", "forward", "magi", "8"): 110, ("full", "forward", "magi", "64"): 40, ("causal", "forward", "magi", "8"): 7}
        self.assertEqual(ranks.agreement(ours, theirs), "2 figures, correlation 1.00 (of logarithms 1.00), mean error 15 %, "
                                                        "median 15 %")

    def test_a_kernel_without_figures_says_so(self):
        with self.assertRaisesRegex(CannotPublish, "no figure of these masks"):
            ranks.ranks_published([record("ring_p2p")], self.figures, "fa3")

    def test_latency_is_what_a_pass_without_it_takes_less(self):
        found = [record(), record(platform="p-set1234", time_ms="3.5"), record("usp", time_ms="2", exposed_comm_ms="0.5")]
        self.assertEqual(rows_of(ranks.limits(found))[2:],
                         [["`full`", "8", "forward", "`usp`", "100", "2", "1.50", "1.25", "3.00", "0.50", "25", "–"],
                          ["`full`", "8", "forward", "`magi`", "100", "2", "1.50", "1.25", "3.00", "1.00", "25", "0.50"]])

    def test_the_picture_has_a_line_of_each_scheme_and_the_published_points(self):
        program = ranks.picture(self.found, self.figures)
        self.assertIn("'full, forward'", program)
        self.assertNotIn("causal", program)
        self.assertIn("8 100.0\n64 40.0\ne", program)  # simulated
        self.assertIn("8 80.0\n64 50.0\ne", program)   # published
        self.assertIn("8 50.0\n16 30.0\n64 20.0\ne", program)


if __name__ == "__main__":
    unittest.main()
