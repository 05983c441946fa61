"""The tables of scripts/publish, on records made by hand."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import publish_tables as tables  # noqa: E402


def record(kernel, mask="causal", rate="100", time="1", **more):
    """A row as `report --csv` writes it."""
    axes = {"tokens": "8192", "heads": "64:8", "dim": "128", "dtype": "bfloat16", "pass": "forward", "lengths": "",
            "seed": "42", "window": "", "block_tokens": "", "density": "", "block": "", "block_heads": "", "scheme": "",
            "ranks": "", "mode": "burst", "shard": "", "inputs": "normal", "status": "ok", "machine": "here", "build": "one", "first": ""}
    ok = more.get("status", "ok") == "ok"
    return {"kernel": kernel, "mask": mask, **axes, **more, "tflops": rate if ok else "", "time_ms": time if ok else ""}


def pair(mask="causal", rate="200", other="100", **more):
    """slice and another kernel on one problem."""
    return [record("slice", mask, rate=rate, **more), record("a", mask, rate=other, **more)]


def rows_of(table):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")]


class Tables(unittest.TestCase):
    def test_leaders_are_the_fastest_and_failures_do_not_count(self):
        found = [record("a", rate="90"), record("b", rate="120"), record("c", rate="100"), record("d", status="wrong")]
        self.assertEqual(rows_of(tables.leaders(found))[2:], [["`causal`", "`b` **120**, `c` 100"]])

    def test_masks_and_lengths_come_in_their_order(self):
        found = [record("a", mask, tokens=tokens) for tokens in ("32768", "1024", "100") for mask in ("causal", "full")]
        rows = rows_of(tables.rates(found))
        self.assertEqual(rows[0], ["mask", "100", "1K", "32K"])
        self.assertEqual([row[0] for row in rows[2:]], ["`full`", "`causal`"])

    def test_rates_may_be_of_another_metric_with_three_digits(self):
        found = [record("a", rate="741.6") | {"time_ms": ms, "pass": which} for which, ms in (("forward", "0.5402"),
                                                                                             ("backward", "144.86"))]
        self.assertEqual(rows_of(tables.rates(found, passes="forward,backward"))[2], ["`causal`", "742 / 742"])
        self.assertEqual(rows_of(tables.rates(found, passes="forward,backward", metric="time_ms"))[2],
                         ["`causal`", "0.540 / 145"])

    def test_two_records_that_differ_in_an_axis_that_is_not_named_are_refused(self):
        for axis, values in {"heads": ("64:8", "64:64"), "machine": ("here", "there"), "build": ("one", "two")}.items():
            with self.assertRaisesRegex(tables.CannotPublish, f"differ in {axis}"):
                tables.leaders([record("a", **{axis: value}) for value in values])

    def test_ratios_are_of_the_same_problem_and_averaged_geometrically(self):
        found = [record("slice", rate="200"), record("a", rate="100"), record("b", rate="50"),
                 record("slice", "full", rate="80"), record("a", "full", rate="10"),
                 record("slice", "document", rate="999")]  # alone: no ratio
        text = tables.beside(found)
        self.assertEqual(rows_of(text)[2:], [["`full`", "80", "10 `a`", "8.00"], ["`causal`", "200", "100 `a`", "2.00"]])
        self.assertIn("geometric mean 4.00 over 2 cells, smallest 2.00 (`causal`, 8K), largest 8.00 (`full`, 8K)", text)

    def test_sustained_rates_stand_beside_those_in_bursts_of_the_same_problem(self):
        found = [record(kernel, mask, rate=rate, tokens=tokens) for mask in ("full", "causal")
                 for tokens in ("8192", "65536") for kernel, rate in (("slice", "200"), ("a", "160"), ("b", "100"))]
        # document is not in the table, and b overtakes a.
        lasting = [*pair("full", "180", "90"), record("b", "full", rate="120"), *pair("causal", "100"), *pair("document")]
        # A length without sustained records keeps its three columns.
        self.assertEqual(tables.beside(found, sustained=lasting), """\
| mask | 8K | best other | ratio | sustained | 64K | best other | ratio |
| --- | --: | --- | --: | --: | --: | --- | --: |
| `full` | 200 | 160 `a` | 1.25 | 180 (1.50) | 200 | 160 `a` | 1.25 |
| `causal` | 200 | 160 `a` | 1.25 | 100 (1.00) | 200 | 160 `a` | 1.25 |

Ratio: geometric mean 1.25 over 4 cells, smallest 1.25 (`full`, 8K), largest 1.25 (`full`, 8K).
No other kernel is first, or ties with it.
Sustained: geometric mean 1.22 over 2 cells, smallest 1.00 (`causal`, 8K), largest 1.50 (`full`, 8K); 1.25 over the same \
cells in bursts.
Sustained, no other kernel is first, or ties with it.
Rate of `slice` sustained over that in bursts: geometric mean 0.67 over 2 cells, smallest 0.50 (`causal`, 8K), largest \
0.90 (`full`, 8K).
""")

    def test_ties_and_kernels_ahead_are_listed_by_kernel_and_mask(self):
        found = [record(kernel, mask, tokens=tokens, first=first)
                 for mask, tokens, firsts in (("full", "8192", "11 "), ("full", "32768", "111"), ("causal", "8192", " 1 "),
                                              ("document", "8192", "1  "))
                 for kernel, first in zip(("slice", "a", "b"), firsts.replace(" ", "0"))]
        for one in found:
            one["first"] = one["first"].replace("0", "")
        lines = tables.beside(found).splitlines()
        self.assertIn("Ties with `slice`: `a` on full (8K, 32K); `b` on full (32K).", lines)
        self.assertIn("Ahead of `slice`: `a` on causal (8K).", lines)
        # Of sustained records those of the table's problems.
        lasting = [one | {"mode": "sustained"} for one in found] + \
            [record(kernel, tokens="1024", first="1", mode="sustained") for kernel in ("slice", "b")]
        text = tables.beside(found, sustained=lasting)
        for begin in ("Ties", "Sustained ties"):
            self.assertIn(f"\n{begin} with `slice`: `a` on full (8K, 32K); `b` on full (32K).", text)
        self.assertIn("\nSustained ahead of `slice`: `a` on causal (8K).", text)
        self.assertNotIn("1K", text)

    def test_a_mask_without_sustained_records_has_no_sustained_rate(self):
        lasting = [*pair("full", "150"), record("slice"), record("a", status="wrong")]  # causal: nobody to compare with
        text = tables.beside(pair("full") + pair("causal"), sustained=lasting)
        self.assertEqual([row[4] for row in rows_of(text)], ["sustained", "--:", "150 (1.50)", tables.NOTHING])
        self.assertIn("Sustained: geometric mean 1.50 over 1 cells", text)

    def test_a_problem_without_bursts_at_a_length_has_no_sustained_rate_there(self):
        found = pair("full") + pair("causal") + pair("full", tokens="32768")
        lasting = pair("full", "90", "60", tokens="32768") + pair("causal", "90", "60", tokens="32768")
        rows = rows_of(tables.beside(found, sustained=lasting))
        self.assertEqual(rows[2][4:], ["200", "100 `a`", "2.00", "90 (1.50)"])
        self.assertEqual(rows[3][4:], [tables.NOTHING] * 4)

    def test_sustained_records_of_other_problems_and_of_two_passes_are_refused(self):
        for other in ({"heads": "64:64"}, {"pass": "backward"}):
            with self.assertRaisesRegex(tables.CannotPublish, "no sustained record is of a problem of the table"):
                tables.beside(pair(), sustained=pair(**other))
        with self.assertRaisesRegex(tables.CannotPublish, "no problem has a record of slice and of another kernel"):
            tables.beside(pair(), sustained=[record("slice")])
        with self.assertRaisesRegex(tables.CannotPublish, "differ in build"):
            tables.beside(pair(), sustained=pair() + pair(build="two"))
        both = pair() + pair(**{"pass": "backward"})
        for lasting in (None, both):
            with self.assertRaisesRegex(tables.CannotPublish, "both passes of causal: name one"):
                tables.beside(both, sustained=lasting)

    def test_steps_add_times_and_count_the_flops_of_both_passes(self):
        found = [record("slice", rate="100", time="1"), record("slice", rate="50", time="5", **{"pass": "backward"}),
                 record("a", rate="100", time="1"), record("a", rate="25", time="10", **{"pass": "backward"}),
                 record("fast_but_forward_only", rate="900", time="0.1")]
        row = rows_of(tables.step(found))[2]
        self.assertEqual(row, ["`causal`", "6.00", f"{(100 * 1 + 50 * 5) / 6:.0f}", "1.83 × `a`"])

    def test_schemes_are_compared_with_one_gpu_that_runs_the_whole_problem(self):
        ranked = {"tokens": "16384", "ranks": "2"}
        found = [record("slice", rate="100", tokens="16384"), record("slice", rate="500"),
                 record("slice", rate="90", scheme="magi", **ranked), record("slice", rate="80", scheme="ulysses", **ranked)]
        rows = rows_of(tables.schemes(found))
        self.assertEqual(rows[0][4:], ["one GPU", "`ulysses`", "`magi`"])
        self.assertEqual(rows[2], ["`causal`", "8K", "forward", "2", "100", "80 (0.80)", "**90** (0.90)"])

    def test_one_gpu_is_of_the_same_mode_and_kind_whatever_cores_and_gpus_the_run_had(self):
        def column(**single):
            two = "A CPU, 64 cores, NVIDIA H200, NVIDIA H200 (driver 580)"
            found = [record("slice", tokens="16384", **single),
                     record("slice", scheme="magi", tokens="16384", ranks="2", machine=two)]
            return rows_of(tables.schemes(found))[2][4]
        self.assertEqual(column(machine="A CPU, 16 cores, NVIDIA H200 (driver 580)"), "100")
        self.assertEqual(column(machine="A CPU, 16 cores, NVIDIA H200 (driver 570)"), tables.NOTHING)
        self.assertEqual(column(machine="A CPU, 16 cores, NVIDIA H100 (driver 580)"), tables.NOTHING)
        self.assertEqual(column(machine="A CPU, 16 cores, NVIDIA H200 (driver 580)", mode="sustained"), tables.NOTHING)

    def test_shares_are_medians_over_problems(self):
        found = []
        for mask, rate in (("full", "50"), ("causal", "90"), ("document", "110")):
            found += [record("a", mask, rate=rate, heads="64:64"), record("a", mask, rate="100")]
        self.assertEqual(rows_of(tables.share(found))[2:], [["forward", "0.90"], ["backward", "–"]])

    def test_published_figures_stand_beside_ours_of_the_same_problem(self):
        found = [record("a", rate="120"), record("a", rate="90", tokens="4096"), record("b", rate="70"),
                 record("b", "full", status="wrong")]
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("kernel,mask,tokens,pass,tflops\na,causal,8192,forward,100\nb,causal,8192,backward,50\n")
            file.flush()
            rows = rows_of(tables.published(found, figures=file.name, kernels="a,b"))
            self.assertEqual(rows[2:], [["`causal`", "8K", "forward", "120 / 100 (1.20)", tables.NOTHING]])
            with self.assertRaisesRegex(tables.CannotPublish, "no figure of these"):
                tables.published(found, figures=file.name, kernels="b")

    def test_passes_are_compared_within_one_problem(self):
        back = {"pass": "backward"}
        found = [record("a", rate="100"), record("a", rate="80", **back), record("a", "full", rate="100"),
                 record("a", "full", rate="60", **back), record("a", "document", rate="1"), record("b", rate="9", **back)]
        self.assertEqual(rows_of(tables.passes(found, kernels="a,b"))[2:], [["`a`", "0.70", "2"]])

    def test_statuses_are_counted(self):
        found = [record("a"), record("b", status="wrong"), record("c", status="oom"), record("d")]
        self.assertEqual(tables.statuses(found), "4 cells: 2 `ok`, 1 `oom`, 1 `wrong`.\n")

    def test_a_comparison_with_nobody_is_refused(self):
        with self.assertRaisesRegex(tables.CannotPublish, "no problem has a record of slice and of another kernel"):
            tables.beside([record("slice")])

    def test_advice_has_a_line_for_each_way_or_each_name_and_no_figure_where_nothing_was_counted(self):
        score = {"cells": 3, "median_error_pct": 1.25, "p90_error_pct": 8.0, "coverage_pct": 90.0,
                 "p90_memory_error_pct": 0.5, "choices": 0, "mean_regret_pct": None, "p95_regret_pct": None,
                 "right_pct": None, "right_or_tied_pct": None, "could_not_run": 1, "no_answer": 2}
        evaluation = {"left_out": [{"by": "mask", "all": score, "kernels": [{**score, "name": "slice"}], "masks": []},
                                   {"by": "heads", "all": score, "kernels": [], "masks": []}]}
        figures = ["3", "1.2", "8.0", "90.0", "0.5", "0", "–", "–", "–", "–", "1", "2"]
        self.assertEqual(rows_of(tables.advice(evaluation))[2:], [["every mask in turn", *figures],
                                                                 ["each pair of heads", *figures]])
        self.assertEqual(rows_of(tables.advice(evaluation, left_out="mask", by="kernels"))[2:], [["`slice`", *figures]])
        for wrong in ({"left_out": "tokens"}, {"left_out": "mask", "by": "axes"}):
            with self.assertRaises(tables.CannotPublish):
                tables.advice(evaluation, **wrong)

    def test_workloads_stand_beside_the_advice_that_was_given(self):
        found = [{**record(kernel, rate=rate, time=ms), "peak_bytes": "2000"}
                 for kernel, rate, ms in (("slow", "50", "4"), ("quick", "100", "2"))]
        choices = [{"kernel": kernel, "rank": rank, "tied": tied, "time_ms": ms, "low_ms": 1, "high_ms": 6, "peak_bytes": 2100}
                   for kernel, rank, tied, ms in (("quick", 1, False, 2.2), ("slow", 2, True, 3))]
        answers = {tables.places(found, tables.PROBLEM_AXES)[0]: {"choices": choices}}
        rows = rows_of(tables.workloads(found, answers))[2:]
        self.assertEqual([row[1:] for row in rows], [["`quick`", "2.00", "1", "2.20", "1.00 to 6.00", "+10.0", "+5.0"],
                                                     ["`slow`", "4.00", "2, tied", "3.00", "1.00 to 6.00", "-25.0", "+5.0"]])
        del choices[0]
        with self.assertRaisesRegex(tables.CannotPublish, "no answer for quick"):
            tables.workloads(found, answers)

    def test_a_training_loop_is_compared_with_the_fastest_other_way_of_the_same_problem(self):
        def row(mask, tokens, way, forward, backward):
            return {"mask": mask, "tokens_per_gpu": tokens, "way": way, "forward_ms": forward, "backward_ms": backward}

        found = [row("causal", "8192", "longca", "1.0", "3.0"), row("causal", "8192", "torch cudnn", "4.0", "2.0"),
                 row("causal", "8192", "torch flash", "1.0", "9.0"), row("document", "100", "longca", "0.5", "0.7")]
        self.assertEqual(rows_of(tables.training_loop(found))[2:],
                         [["`causal`", "8K", "1.00 / 3.00", "4.00 / 2.00", "1.00 / 9.00", "1.50"],
                          ["`document`", "100", "0.500 / 0.700", "–", "–", "–"]])
        with self.assertRaisesRegex(tables.CannotPublish, "no row of causal with 8192 tokens is of longca"):
            tables.training_loop(found[1:])
        with self.assertRaisesRegex(tables.CannotPublish, "not a CSV of .*'way'"):
            tables.training_loop([{"mask": "causal", "tokens_per_gpu": "1"}])

    def test_a_claimed_error_is_not_below_that_of_the_files_it_names(self):
        page = {"error": {"measured": "the cells in results/h200x4/cp and results/h200x2/slice, 8 and 10 %", "p90": 0.1}}
        files = ["results/h200x4/cp.jsonl.gz", "results/h200x2/slice.jsonl.gz"]
        self.assertEqual(tables.files_of_error(page), [(file, None) for file in files])
        self.assertEqual(tables.files_of_error({"error": {"measured": "assumed", "p90": 0.25}}), [])
        comparisons = [(file, {"errors": [{"by": "pass", "p90_pct": 99}, {"by": "all", "p90_pct": p90}]})
                       for file, p90 in zip(files, (10.04, 10.06))]
        self.assertEqual(tables.too_low(page, comparisons),
                         ["[error] p90 is 10.0 %, and of results/h200x2/slice.jsonl.gz it is 10.1 %"])

    def test_a_claimed_error_by_rates_names_the_records_that_timed_the_kernels(self):
        page = {"error_by_rates": {"p90": 0.1, "measured": "the cells of results/a/cp and results/b/cp by the records of results/c/dense, "
                                   "and, with caps, of results/a/features by those of results/c/shapes, in bursts"}}
        self.assertEqual(tables.files_of_error(page, "error_by_rates"),
                         [("results/a/cp.jsonl.gz", "results/c/dense.jsonl.gz"), ("results/b/cp.jsonl.gz", "results/c/dense.jsonl.gz"),
                          ("results/a/features.jsonl.gz", "results/c/shapes.jsonl.gz")])
        comparisons = [("results/a/cp.jsonl.gz", {"errors": [{"by": "all", "p90_pct": 10.06}]})]
        self.assertEqual(tables.too_low(page, comparisons, "error_by_rates"),
                         ["[error_by_rates] p90 is 10.0 %, and of results/a/cp.jsonl.gz it is 10.1 %"])


if __name__ == "__main__":
    unittest.main()
