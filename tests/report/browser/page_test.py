#!/usr/bin/python3
"""The HTML report in headless Chromium: page_test.py LONGCA WRITE_SAMPLES.

Needs chromium, chromium-driver and python3-selenium (./test --browser installs them)."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

LONGCA, WRITE_SAMPLES = sys.argv[1:3]
HOSTILE = "<script>document.title='injected'</script>"
KERNELS, MASKS, LENGTHS, PASSES = 3, 4, 2, 2
CELLS = KERNELS * MASKS * LENGTHS * PASSES
# Of the run over ranks; a line is a scheme with a shard.
LINES, RANK_MASKS, RANK_COUNTS = 4, 2, 3
RANK_CELLS = LINES * RANK_MASKS * RANK_COUNTS * PASSES
# Of the run of block-sparse attention: two heads, two lengths, two blocks, three densities, four kernels; and
# three densities and two kernels with selected blocks.
SPARSE_CELLS = 2 * 2 * 2 * 3 * 4 * PASSES + 3 * 2


def start_browser():
    options = Options()
    options.binary_location = shutil.which("chromium")
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1280,1000", "--force-device-scale-factor=1"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([WRITE_SAMPLES, cls.folder.name], check=True)
        cls.page = cls.write_page("sample")
        cls.browser = start_browser()
        cls.addClassCleanup(cls.browser.quit)

    @classmethod
    def write_page(cls, name, *others, **environment):
        page = os.path.join(cls.folder.name, name + ".html")
        records = [os.path.join(cls.folder.name, other + ".jsonl") for other in [name.split("-")[0], *others]]
        subprocess.run([LONGCA, "report", *records, "--html", page], check=True,
                       stderr=subprocess.PIPE if environment else None, env={**os.environ, **environment})
        return page

    def setUp(self):
        self.set_width(1280)
        self.open(self.page)

    def tearDown(self):
        """Whatever a test did, nothing was complained about and nothing was fetched."""
        complaints = [entry["message"] for entry in self.browser.get_log("browser")]
        self.assertEqual(complaints, [])
        for entry in self.browser.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                self.assertTrue(url.startswith(("file://" + self.folder.name, "data:", "blob:")), url)

    def open(self, page):
        self.browser.get("file://" + page)
        self.wait("return document.readyState === 'complete'")

    def set_width(self, width, is_phone=False):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": is_phone})

    def run_script(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def wait(self, script, timeout=60):
        deadline = time.monotonic() + timeout
        while not self.run_script(script):
            self.assertLess(time.monotonic(), deadline, "still not: " + script)
            time.sleep(0.05)

    def count(self, selector):
        return self.run_script(
            "return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility()).length",
            selector)

    def texts(self, selector):
        return [e.text for e in self.browser.find_elements(By.CSS_SELECTOR, selector)]

    def click(self, selector):
        self.run_script("document.querySelector(arguments[0]).click()", selector)

    def click_chip(self, dimension, value):
        self.click(f'.filter-group[data-dimension="{dimension}"] input[value="{value}"]')

    def bars(self, figure):
        """Bars of a figure by kernel: the traces that plotly drew."""
        return self.run_script(
            "const bars = {}; for (const trace of document.getElementById('plot-' + arguments[0]).data ?? [])"
            " bars[trace.name] = (bars[trace.name] ?? 0) + trace.y.length; return bars", figure)

    def test_renders(self):
        self.assertIn("Example CPU 9000", self.browser.title)
        self.assertEqual(self.count("#cells tbody tr"), CELLS)
        self.assertEqual(self.count(".picture"), MASKS * LENGTHS)
        self.assertEqual(self.count("#winners tbody tr"), MASKS)
        self.assertEqual(self.count(".warning"), 0)
        self.assertIn("0123456789ab", self.run_script("return document.querySelector('.environment').textContent"))

    def test_plots_exist(self):
        per_kernel = MASKS * LENGTHS
        for figure in ["forward", "backward", "memory"]:
            self.assertEqual(self.bars(figure), {"naive": per_kernel, "flash": per_kernel, "block_sparse": per_kernel})
            self.assertGreater(self.count(f"#plot-{figure} svg.main-svg"), 0)
            self.assertGreater(self.count(f"#plot-{figure} .bars .point path"), per_kernel)
        marks = self.run_script("return [...document.querySelectorAll('#plot-backward .bartext')].map(e => e.textContent)")
        self.assertEqual({mark for mark in marks if mark}, {"X", "E", "W", "N"})
        self.assertIn("E out of memory", self.texts("#marks")[0])

    def test_filters_change_what_is_shown(self):
        self.click_chip("kernel", "naive")
        self.assertEqual(set(self.bars("forward")), {"flash", "block_sparse"})
        self.assertEqual(self.count("#cells tbody tr"), CELLS * 2 // 3)
        self.click_chip("mask", "full")
        self.assertEqual(self.count(".picture"), (MASKS - 1) * LENGTHS)
        self.assertNotIn("full", self.texts("#winners tbody td:first-child"))
        self.click_chip("length", "1024")
        self.assertEqual(self.count(".picture"), MASKS - 1)
        self.assertEqual(self.bars("forward"), {"flash": MASKS - 1, "block_sparse": MASKS - 1})
        self.assertEqual(set(self.texts("#cells tbody td:nth-child(3)")), {"4K"})
        self.click_chip("pass", "backward")
        self.assertEqual(self.count("#figure-backward"), 0)
        self.assertEqual(self.count("#cells tbody tr"), (MASKS - 1) * 2)

    def test_none_and_all(self):
        group = '.filter-group[data-dimension="kernel"] button'
        self.click(group + ":last-of-type")
        self.assertEqual(self.count("#cells tbody tr"), 0)
        self.assertEqual(self.count("#plots-section .plot svg"), 0)
        self.click(group)
        self.assertEqual(self.count("#cells tbody tr"), CELLS)
        self.assertEqual(set(self.bars("forward")), {"naive", "flash", "block_sparse"})

    def test_panels_per_mask(self):
        self.assertEqual(self.count("#plot-forward .subplot"), LENGTHS)
        self.run_script("const s = document.getElementById('panels'); s.value = 'mask'; s.dispatchEvent(new Event('change'))")
        self.assertEqual(self.count("#plot-forward .subplot"), MASKS)

    def test_sorting(self):
        column = "#cells thead th:nth-child(6) button"
        self.assertEqual(self.texts(column), ["ms"])
        for sign in [-1, 1]:
            self.click(column)
            shown = [float(text.split()[0]) for text in self.texts("#cells tbody td:nth-child(6)") if text]
            self.assertEqual(shown, sorted(shown, key=lambda ms: sign * ms))
            last = self.texts("#cells tbody tr:last-child td:nth-child(6)")
            self.assertEqual(last, [""], "cells without a time come last")

    def test_injected_markup_stays_text(self):
        reasons = [text for text in self.texts("#cells .reason") if HOSTILE in text]
        self.assertEqual(len(reasons), 1)
        self.assertNotEqual(self.browser.title, "injected")
        hover = self.run_script(
            "return document.getElementById('plot-forward').data.flatMap(t => t.hovertext).filter(t => t.includes('injected'))")
        self.assertEqual(len(hover), 1)
        self.assertNotIn("<script", hover[0])
        self.assertEqual(self.run_script("return [...document.scripts].filter(s => s.textContent.startsWith('document.title')).length"), 0)

    def test_hostile_texts_everywhere(self):
        scripts = "return document.scripts.length"
        clean = self.run_script(scripts)
        self.open(os.path.join(self.folder.name, "hostile.html"))
        self.assertEqual(self.run_script(scripts), clean)
        self.assertIn(HOSTILE, self.browser.title)
        self.assertIn(HOSTILE, " ".join(self.texts("#cells tbody td:first-child")))
        for plot in ["forward", "ranks-forward"]:
            legend = self.run_script("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)",
                                     f"#plot-{plot} .legendtext")
            self.assertTrue(any(HOSTILE in text for text in legend), legend)

    def test_phone_width(self):
        self.set_width(390, is_phone=True)
        self.open(self.page)
        self.assertLessEqual(self.run_script("return document.documentElement.scrollWidth"), 390)
        self.assertEqual(self.count("#filter-groups .chip"), 0, "the filters begin folded")
        self.click("#filters summary")
        self.assertGreater(self.count("#filter-groups .chip"), 0)
        self.click_chip("kernel", "naive")
        self.assertEqual(set(self.bars("forward")), {"flash", "block_sparse"})
        width = self.run_script("return document.querySelector('#plot-forward svg').getBoundingClientRect().right")
        self.assertLessEqual(width, 390)

    def test_resizing_redraws(self):
        self.set_width(900)
        self.wait("return document.querySelector('#plot-forward svg').getBoundingClientRect().right <= 900")

    def test_dark_scheme(self):
        ground = "return getComputedStyle(document.body).backgroundColor"
        light = self.run_script(ground)
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        self.addCleanup(self.browser.execute_cdp_cmd, "Emulation.setEmulatedMedia", {"features": []})
        self.assertNotEqual(self.run_script(ground), light)
        self.wait("return document.getElementById('plot-forward').layout.font.color ==="
                  " getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()")

    def test_without_plotly(self):
        page = self.write_page("sample-bare", LONGCA_PLOTLY_JS=os.path.join(self.folder.name, "none.js"))
        self.open(page)
        self.assertIn("no plots", self.texts(".warning")[0])
        self.assertEqual(self.count("#plots-section"), 0)
        self.click_chip("kernel", "naive")
        self.assertEqual(self.count("#cells tbody tr"), CELLS * 2 // 3)

    def test_all_masks(self):
        self.open(self.write_page("all_masks"))
        self.assertEqual(self.count(".picture"), 14)
        self.assertEqual(self.count("#winners tbody tr"), 14)

    def test_clock_and_power(self):
        self.assertEqual(self.count("#trace-section"), 0)
        self.open(self.write_page("traced"))
        self.assertEqual(self.count("#trace-section"), 1)
        lines = self.run_script("return document.getElementById('plot-trace').data.map(line => [line.name, line.x, line.y])")
        seconds = [0, 0.02, 0.04, None, 0.04, 0.06, 0.08, None]
        self.assertEqual(lines, [["SM clock", seconds, [1980, 1905, 1890, None] * 2],
                                 ["power", seconds, [350, 610, 640, None] * 2]])
        shaded = self.run_script("return document.getElementById('plot-trace').layout.shapes.map(s => [s.x0, s.x1])")
        self.assertEqual(shaded, [[0.04, 0.08]])
        self.click_chip("kernel", "flash")
        self.assertEqual(self.count("#trace-section"), 0)

    def traces(self, figure, *fields):
        """What plotly drew, each trace as the values of these fields."""
        return self.run_script(
            "return (document.getElementById('plot-ranks-' + arguments[0]).data ?? []).map(t => arguments[1].map(f => t[f]))",
            figure, fields)

    def sparse_traces(self, figure, *fields):
        return self.run_script(
            "return (document.getElementById('plot-sparse-' + arguments[0]).data ?? []).map(t => arguments[1].map(f => t[f]))",
            figure, fields)

    def choose(self, select, text):
        self.run_script(
            "const s = document.getElementById(arguments[0]);"
            "s.value = [...s.options].find(o => o.textContent === arguments[1]).value; s.dispatchEvent(new Event('change'))", select, text)

    def test_block_sparse_beside_dense(self):
        self.assertEqual(self.count("#sparse-section"), 0)
        self.open(self.write_page("sparse"))
        self.assertEqual(self.count("#sparse-cells tbody tr"), SPARSE_CELLS)
        self.assertIn("device cuda", self.texts("#sparse-setting")[0])
        self.assertEqual(len(self.texts("#sparse-blocks option")), 5)
        self.assertEqual(self.texts("#sparse-pass option"), ["forward", "backward"])
        curves = [(name, x, y) for name, x, y in self.sparse_traces("time", "name", "x", "y")]
        slices = [(x, y) for name, x, y in curves if name == "slice"]
        self.assertEqual([x for x, _ in slices], [[0.2, 0.5, 0.8]] * 2)
        for _, ratios in slices:
            for ratio, wanted in zip(ratios, [0.2488, 0.592, 0.9352]):
                self.assertAlmostEqual(ratio, wanted, places=9)
        self.assertEqual({name for name, _, _ in curves}, {"slice", "flex", "naive", "fastest dense kernel", "dense × density"})
        self.assertIn("more than 2 times dense: naive", self.texts("#sparse-beyond")[0])
        self.assertEqual(self.count("#figure-sparse-mass"), 0)
        self.assertIn("always, 0.2–0.8", self.texts("#sparse-cells tbody tr:first-child td"))

    def test_blocks_and_pass_are_chosen(self):
        self.open(self.write_page("sparse"))
        self.choose("sparse-blocks", "block_sparse · heads 64:64 · block 64 · selection random")
        panels = self.run_script("return document.getElementById('plot-sparse-time').layout.annotations.map(a => a.text)")
        self.assertEqual(len(panels), 1, "no dense cells, no panel")
        self.assertIn("dense: fa3, 50.3 ms", panels[0])
        self.assertIn("vsa", {name for name, in self.sparse_traces("time", "name")})
        self.choose("sparse-pass", "backward")
        panels = self.run_script("return document.getElementById('plot-sparse-time').layout.annotations.map(a => a.text)")
        self.assertIn("dense: fa3, 125.7 ms", panels[0])
        self.click_chip("kernel", "vsa")
        self.assertNotIn("vsa", {name for name, in self.sparse_traces("time", "name")})

    def test_speed_beside_the_kept_mass(self):
        self.open(self.write_page("sparse"))
        self.choose("sparse-blocks", "block_sparse · heads 64:8 · block 64 · selection scores")
        curves = self.sparse_traces("mass", "name", "x", "y", "line")
        alone, in_all = [(x, y) for name, x, y, line in curves if name == "slice"]
        for x, _ in [alone, in_all]:
            for mass, wanted in zip(x, [0.6, 0.8, 0.92], strict=True):
                self.assertAlmostEqual(mass, wanted)
        for speed, slower in zip(alone[1], in_all[1], strict=True):
            self.assertGreater(speed, slower)
        self.assertAlmostEqual(alone[1][1], 1 / 0.2488)
        dashes = [line.get("dash") for name, _, _, line in curves if name == "slice"]
        self.assertEqual(dashes, [None, "dash"])

    def test_block_sparse_on_a_phone_and_without_plots(self):
        self.set_width(390, is_phone=True)
        self.open(self.write_page("sparse"))
        self.assertLessEqual(self.run_script("return document.documentElement.scrollWidth"), 390)
        self.set_width(1280)
        self.open(self.write_page("sparse-bare", LONGCA_PLOTLY_JS=os.path.join(self.folder.name, "none.js")))
        self.assertEqual(self.count("#sparse-cells tbody tr"), SPARSE_CELLS)
        self.assertEqual(self.count("#sparse-section select"), 0)

    def test_over_ranks_only_where_there_are_such_cells(self):
        self.assertEqual(self.count("#ranks-section"), 0)
        self.open(self.write_page("ranks"))
        self.assertEqual(self.count("#ranks-section"), 1)
        for section in ["winners", "plots", "cells"]:
            self.assertEqual(self.count(f"#{section}-section"), 0)
        self.assertEqual(self.count("#rank-cells tbody tr"), RANK_CELLS)
        self.assertEqual(self.count(".picture"), RANK_MASKS)
        self.assertIn("zigzag: usp", self.texts("#ranks-section .hint")[0])
        self.assertEqual(self.texts("#scaling option"), ["1K tokens per rank"])

    def test_both_kinds_on_one_page(self):
        self.open(self.write_page("ranks-both", "one_device"))
        self.assertEqual(self.count("#cells tbody tr"), RANK_COUNTS * PASSES)
        self.assertEqual(self.count("#rank-cells tbody tr"), RANK_CELLS)
        self.assertEqual(self.bars("forward"), {"flash": RANK_COUNTS})
        grey = [y for name, x, y in self.traces("forward", "name", "x", "y") if name == "one device"]
        self.assertEqual(grey, [[510, 510, 510]])
        of_one = self.texts("#rank-cells tbody tr:first-child td:nth-child(9)")
        self.assertEqual(of_one, ["0.98"])

    def test_lines_over_ranks(self):
        self.open(self.write_page("ranks"))
        lines = self.traces("forward", "name", "x")
        names = ["ulysses", "ring_p2p · zigzag", "ring_p2p · balanced", "usp"]
        for name in names:
            own = [x for known, x in lines if known == name]
            self.assertEqual(own, [["1", "2"] if name == "ulysses" else ["1", "2", "4"]] * RANK_MASKS)
        self.assertEqual({name for name, _ in lines}, {*names, "1 rank"})
        notes = self.run_script("return document.getElementById('plot-ranks-backward').layout.annotations.map(a => a.text)")
        self.assertIn("no number: ulysses 4 X; usp 4 C", notes[0])
        self.assertIn("X unsupported, C crash", self.texts("#rank-marks")[0])

    def test_exposed_communication_stands_on_the_steps(self):
        self.open(self.write_page("ranks"))
        bars = self.traces("exposed", "y", "base")
        self.assertEqual(len(bars), 2 * LINES * RANK_MASKS)
        for (steps, ground), (added, base) in zip(bars[::2], bars[1::2]):
            self.assertIsNone(ground)
            self.assertEqual(base, steps)
            self.assertEqual(added[0], 0, "noise below zero is no bar")
            self.assertAlmostEqual(added[1] / (steps[1] + added[1]), 0.1)

    def test_bytes_beside_the_formula(self):
        self.open(self.write_page("ranks"))
        traces = self.traces("bytes", "type", "legendgroup", "y")
        self.assertEqual([kind for kind, _, _ in traces], ["bar", "scatter", "scatter"] * LINES * RANK_MASKS)
        off = [(name, sent[-1] - formula[-1]) for (_, name, sent), (_, _, formula) in zip(traces[::3], traces[1::3])
               if sent != formula]
        self.assertEqual(off, [("ring_p2p · zigzag", 8)])
        self.assertIn("≠ 1572864 (sent 1581056)", self.texts("#rank-cells td:nth-child(14)"))

    def test_the_pass_of_figures_over_ranks(self):
        self.open(self.write_page("ranks"))
        forward = self.traces("error", "y")
        self.run_script("const s = document.getElementById('ranks-pass'); s.value = 'backward'; s.dispatchEvent(new Event('change'))")
        self.assertNotEqual(self.traces("error", "y"), forward)
        for figure in ["error", "imbalance", "exposed", "bytes"]:
            self.assertEqual(self.count(f"#plot-ranks-{figure} svg.main-svg") > 0, True)

    def test_filters_over_ranks(self):
        self.open(self.write_page("ranks"))
        self.click_chip("scheme", "ring_p2p")
        self.assertEqual({name for name, in self.traces("forward", "name")}, {"ulysses", "usp", "1 rank"})
        self.assertEqual(self.count("#rank-cells tbody tr"), RANK_CELLS // 2)
        self.click_chip("ranks", "1")
        self.assertEqual(set(self.texts("#rank-cells tbody td:nth-child(3)")), {"2", "4"})
        self.click_chip("mask", "full")
        self.assertEqual(self.count("#plot-ranks-forward .subplot"), 1)
        self.click('.filter-group[data-dimension="scheme"] button:last-of-type')
        self.assertEqual(self.count("#rank-cells tbody tr"), 0)
        self.assertEqual(self.count("#ranks-section .plot svg"), 0)

    def test_one_number_of_ranks_gives_bars(self):
        self.open(self.write_page("ranks"))
        for ranks in ["1", "4"]:
            self.click_chip("ranks", ranks)
        for figure in ["forward", "error"]:
            kinds = [kind for name, kind in self.traces(figure, "name", "type") if name != "1 rank"]
            self.assertEqual(kinds, ["bar"] * LINES * RANK_MASKS)
        self.assertEqual([tuple(trace) for trace in self.traces("imbalance", "type", "mode")],
                         [("bar", None), ("scatter", "markers")] * LINES * RANK_MASKS)

    def annotations(self, figure):
        return self.run_script("return document.getElementById('plot-ranks-' + arguments[0]).layout.annotations.map(a => a.text)", figure)

    def test_many_kernels_have_a_short_legend(self):
        self.open(self.write_page("kernels"))
        for figure in ["forward", "exposed", "bytes", "imbalance", "error"]:
            shown = [name for name, is_shown in self.traces(figure, "name", "showlegend") if is_shown]
            self.assertEqual(shown, ["ulysses", "ring_p2p", "usp", "naive · peer", "flash", "naive · nccl"], figure)
        bars = [(name, marker["color"], marker["pattern"]["shape"]) for name, marker, y in self.traces("forward", "name", "marker", "y") if y != [None]]
        self.assertEqual({(name.split(" · ", 1)[1], shape) for name, _, shape in bars},
                         {("naive · peer", ""), ("flash", "/"), ("naive · nccl", ".")})
        self.assertEqual(len({color for _, color, _ in bars}), 3)
        for place in [0, 3]:  # a scheme; a variant, which hides nothing
            ActionChains(self.browser).click(self.browser.find_elements(By.CSS_SELECTOR, "#plot-ranks-forward .legendtoggle")[place]).perform()
            time.sleep(0.5)  # plotly waits for a second click
            hidden = {name for name, visible in self.traces("forward", "name", "visible") if visible == "legendonly"}
            self.assertEqual(hidden, {"ulysses", "ulysses · naive · peer", "ulysses · flash"})
        self.click_chip("kernel", "naive")
        shown = [name for name, is_shown in self.traces("forward", "name", "showlegend") if is_shown]
        self.assertEqual(shown, ["ulysses", "ring_p2p", "usp", "flash"])

    def test_what_has_no_number_stays_within_its_panel(self):
        self.open(self.write_page("kernels"))
        notes = self.annotations("forward")
        self.assertNotIn("no number", notes[0])
        self.assertIn("no number: flash X (all 3 schemes)", notes[1])
        self.set_width(390, is_phone=True)
        self.open(os.path.join(self.folder.name, "hostile.html"))
        self.click('.filter-group[data-dimension="scheme"] button')
        for note in self.annotations("backward"):
            if "no number" in note:
                self.assertLessEqual(note.count("<br>"), 2)
        ends = self.run_script("return [...document.querySelectorAll('#plot-ranks-backward .annotation')].map(e => e.getBoundingClientRect().right)")
        self.assertLessEqual(max(ends), 390)

    def test_sorting_over_ranks(self):
        self.open(self.write_page("ranks"))
        column = "#rank-cells thead th:nth-child(10) button"
        self.assertEqual(self.texts(column), ["ms"])
        self.click(column)
        shown = [float(text) for text in self.texts("#rank-cells tbody td:nth-child(10)") if text]
        self.assertEqual(shown, sorted(shown, reverse=True))

    def test_over_ranks_on_a_phone(self):
        self.set_width(390, is_phone=True)
        self.open(self.write_page("ranks"))
        self.assertLessEqual(self.run_script("return document.documentElement.scrollWidth"), 390)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
