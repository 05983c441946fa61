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
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

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
    """A browser and what it says of a page. Each test opens one."""

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
        """What a reader sees of each; in one call, as the driver's own takes seconds over a table."""
        return self.run_script(
            "return [...document.querySelectorAll(arguments[0])].map(e => e.tagName === 'OPTION' || e.checkVisibility() ? e.innerText.trim() : '')", selector)

    def click(self, selector):
        self.run_script("document.querySelector(arguments[0]).click()", selector)

    def click_chip(self, dimension, value):
        self.click(f'.filter-group[data-dimension="{dimension}"] input[value="{value}"]')

    def bars(self, figure):
        """Bars of a figure by kernel: the traces that plotly drew."""
        self.wait_for_plot(figure)
        return self.run_script(
            "const bars = {}; for (const trace of document.getElementById('plot-' + arguments[0]).data ?? [])"
            " if (trace.type === 'bar') bars[trace.name] = (bars[trace.name] ?? 0) + trace.y.length; return bars", figure)

    def traces(self, figure, *fields):
        """What plotly drew, each trace as the values of these fields."""
        self.wait_for_plot(figure)
        return self.run_script(
            "return (document.getElementById('plot-' + arguments[0]).data ?? []).map(t => arguments[1].map(f => t[f]))",
            figure, fields)

    def wait_for_plot(self, figure):
        """Figures are drawn when they come near the screen; so they do when it is scrolled there."""
        self.run_script("document.getElementById('figure-' + arguments[0]).scrollIntoView()", figure)
        self.wait(f"return document.getElementById('figure-{figure}').hidden || !pending.has(document.getElementById('figure-{figure}'))")

    def annotations(self, figure):
        self.wait_for_plot(figure)
        return self.run_script("return document.getElementById('plot-' + arguments[0]).layout.annotations.map(a => a.text)", figure)

    def choose(self, kind, axis, value):
        self.run_script(
            "const s = document.querySelector(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))",
            f'#fastest-{kind} select[data-axis="{axis}"]', value)

    def legend(self, figure):
        """The series of a figure's legend, and whether each is drawn."""
        self.wait_for_plot(figure)
        return dict(self.run_script(
            "return [...document.querySelectorAll(arguments[0])].map(b => [b.lastChild.textContent, b.getAttribute('aria-pressed') === 'true'])",
            f"#figure-{figure} .series"))


class SamplePageTest(PageTest):
    """Of one page, which stands open."""

    def setUp(self):
        super().setUp()
        self.open(self.page)

    def test_renders(self):
        self.assertIn("Example CPU 9000", self.browser.title)
        self.assertEqual(self.count("#cells-devices tbody tr"), CELLS)
        self.assertEqual(self.count("#masks-section .picture"), MASKS)
        self.assertEqual(self.count("#fastest-devices tbody tr"), MASKS)
        self.assertEqual(self.count("#fastest-devices tbody th svg"), MASKS)
        self.assertEqual(self.count(".warning"), 0)
        self.assertIn("0123456789ab", self.run_script("return document.querySelector('.environment').textContent"))

    def test_the_first_screen_ranks_as_the_program_does(self):
        full = self.texts("#fastest-devices tbody tr:first-child td")
        self.assertEqual(full[0].split(), ["forward", "backward", "step"])
        forward, backward, step = full[1].split("\n")
        for line in [forward, backward, step]:
            self.assertRegex(line, r"^flash.*×$")
        sparse = self.texts("#fastest-devices tbody tr:last-child td:last-child .fastest:first-child")[0]
        best = {cell["kernel"]: cell["time"] for cell in self.run_script(
            "return cells.filter(c => c.mask === 'block_sparse' && c.tokens === 4096 && c.pass === 'forward' && c.status === 'ok')"
            ".map(c => ({kernel: c.kernel, time: c.metrics.time_ms}))")}
        self.assertTrue(sparse.startswith(min(best, key=best.get)), (sparse, best))

    def test_plots_exist(self):
        per_kernel = MASKS * LENGTHS
        self.assertEqual(self.bars("forward"), {"naive": per_kernel - 2, "flash": per_kernel, "block_sparse": LENGTHS})
        for figure in ["forward", "backward", "forward-memory", "backward-memory"]:
            self.bars(figure)
            self.assertGreater(self.count(f"#plot-{figure} svg.main-svg"), 0)
            self.assertEqual(self.count(f"#plot-{figure} .subplot"), MASKS)
        marks = {mark for trace in self.traces("backward", "text") for mark in (trace[0] or [])}
        self.assertEqual(marks, {"E", "W", "N"})
        self.assertIn("no number: block_sparse X", self.annotations("backward")[0])
        self.assertIn("E out of memory", self.texts("#figure-backward .legend")[0])

    def test_filters_change_what_is_shown(self):
        self.click_chip("kernel", "naive")
        self.assertEqual(set(self.bars("forward")), {"flash", "block_sparse"})
        self.assertEqual(self.count("#cells-devices tbody tr"), CELLS * 2 // 3)
        self.click_chip("mask", "full")
        self.assertEqual(self.count("#masks-section .picture"), MASKS - 1)
        self.assertNotIn("full", self.texts("#fastest-devices tbody th"))
        self.click_chip("tokens", "1024")
        self.assertEqual(self.bars("forward"), {"flash": MASKS - 1, "block_sparse": 1})
        self.assertEqual(set(self.texts("#cells-devices tbody td:nth-child(3)")), {"4K"})
        self.click_chip("pass", "backward")
        self.wait_for_plot("backward")
        self.assertEqual(self.count("#figure-backward"), 0)
        self.assertEqual(self.count("#cells-devices tbody tr"), (MASKS - 1) * 2)

    def test_none_and_all(self):
        group = '.filter-group[data-dimension="kernel"] button'
        self.click(group + ":last-of-type")
        self.assertEqual(self.count("#cells-devices tbody tr"), 0)
        self.wait_for_plot("forward")
        self.assertEqual(self.count("#plots-devices .plot svg"), 0)
        self.click(group)
        self.assertEqual(self.count("#cells-devices tbody tr"), CELLS)
        self.assertEqual(set(self.bars("forward")), {"naive", "flash", "block_sparse"})

    def test_the_address_keeps_what_was_chosen(self):
        self.click_chip("kernel", "naive")
        self.click_chip("tokens", "1024")
        self.click("#cells-devices tbody tr")
        self.wait_for_plot("forward")
        self.click("#figure-forward .series")
        address = self.run_script("return location.href")
        self.open(self.page)
        self.assertEqual(self.count("#cells-devices tbody tr:not(.details)"), CELLS)
        self.browser.get("about:blank")
        self.browser.get(address)
        self.assertEqual(self.count("#cells-devices tbody tr:not(.details)"), CELLS // 3)
        self.assertEqual(self.count("#cells-devices .details"), 1)
        self.assertIn("kernel", self.texts("#filter-summary")[0])
        self.assertEqual(list(self.legend("forward").values()), [False, True])

    def test_from_a_bar_to_its_cell(self):
        self.wait_for_plot("forward")
        cell = self.run_script(
            "const plot = document.getElementById('plot-forward'); const bar = plot.data.find(t => t.name === 'flash');"
            "plot.emit('plotly_click', {points: [{customdata: bar.customdata[0]}]}); return bar.customdata[0]")
        details = self.texts("#cells-devices .details")
        self.assertEqual(len(details), 1)
        self.assertIn("longca bench -a kernel=flash", details[0])
        self.assertIn("3 samples", details[0])
        self.assertIn("Example CPU 9000", details[0])
        self.assertEqual(self.count("#cells-devices .details circle"), 3)
        place = self.run_script("const r = document.getElementById('cell-' + arguments[0]).getBoundingClientRect(); return [r.top, r.bottom]", cell)
        self.assertTrue(0 <= place[0] and place[1] <= 900, place)
        command = self.run_script("return document.querySelector('.details .command').textContent").split()
        self.assertIn("-a", command)
        dry = subprocess.run([LONGCA, *command[1:], "--dry-run"], check=True, capture_output=True, text=True).stdout
        self.assertIn("1 cell of 1 problem,", dry)

    def test_from_the_first_screen_to_its_cell(self):
        self.click("#fastest-devices tbody .winner")
        self.assertIn("-a kernel=flash", self.texts("#cells-devices .command")[0])
        self.click("#cells-devices tbody tr:has(+ .details)")
        self.assertEqual(self.count("#cells-devices .details"), 0)

    def test_from_a_status_to_its_cells(self):
        self.click('.tiles [data-status="wrong"]')
        titles = self.texts("#cells-devices thead th")
        statuses = self.texts(f"#cells-devices tbody td:nth-child({titles.index('status') + 1})")
        self.assertEqual(set(statuses), {"wrong"})
        self.assertEqual(len(statuses), int(self.texts('.tiles [data-status="wrong"] b')[0]))
        self.assertIn("off by 0.5", self.texts("#cells-devices .notes")[0])
        self.assertIn("status", self.texts("#filter-summary")[0])
        self.click('.filter-group[data-dimension="status"] button')
        self.assertEqual(self.count("#cells-devices tbody tr"), CELLS)

    def test_memory_far_above_the_others_is_named_and_does_not_flatten_them(self):
        self.assertIn("above: naive from 1K", self.annotations("forward-memory")[0])
        top = self.run_script("return document.getElementById('plot-forward-memory').layout.yaxis.range[1]")
        others = [max(y) for name, y in self.traces("forward-memory", "name", "y") if name != "naive"]
        self.assertAlmostEqual(top, 1.1 * max(others), places=4)

    def test_what_scrolls_and_what_bold_figures_are_shows(self):
        self.assertEqual(self.run_script("return getComputedStyle(document.querySelector('.scroll')).backgroundAttachment"), "local, scroll")
        self.assertIn("Bold: GFLOP/s. Behind it", self.texts("#fastest-devices .hint")[1])

    def test_no_buttons_cover_notes_where_nothing_hovers(self):
        self.wait_for_plot("forward")
        self.assertFalse(self.run_script("return matchMedia('(hover: hover)').matches"))
        self.assertEqual(self.count(".modebar"), 0)

    def test_sorting(self):
        column = "#cells-devices thead th:nth-child(6) button"
        self.assertEqual(self.texts(column), ["ms"])
        for sign in [-1, 1]:
            self.click(column)
            shown = [float(text.split()[0]) for text in self.texts("#cells-devices tbody td:nth-child(6)") if text]
            self.assertEqual(shown, sorted(shown, key=lambda ms: sign * ms))
            last = self.texts("#cells-devices tbody tr:last-child td:nth-child(6)")
            self.assertEqual(last, [""], "cells without a time come last")

    def test_injected_markup_stays_text(self):
        reasons = [text for text in self.texts("#cells-devices .notes") if HOSTILE in text]
        self.assertEqual(len(reasons), 1)
        self.assertNotEqual(self.browser.title, "injected")
        hover = self.run_script("return cells.map(hoverText).filter(t => t.includes('injected'))")
        self.assertEqual(len(hover), 1)
        self.assertNotIn("<script", hover[0])
        self.assertEqual(self.run_script("return [...document.scripts].filter(s => s.textContent.startsWith('document.title')).length"), 0)

    def test_hostile_texts_everywhere(self):
        scripts = "return document.scripts.length"
        self.wait_for_plot("forward")  # plotly's own script is gone by then
        clean = self.run_script(scripts)
        self.open(os.path.join(self.folder.name, "hostile.html"))
        self.wait_for_plot("forward")
        self.assertEqual(self.run_script(scripts), clean)
        self.assertIn(HOSTILE, self.browser.title)
        self.assertIn(HOSTILE, " ".join(self.texts("#cells-devices tbody td")))
        self.assertIn(HOSTILE, " ".join(self.texts("#fastest-devices")))
        for kind in ["devices", "ranks"]:
            self.run_script("openCell(cells.find(c => c.kind === arguments[0] && c.command.includes('script')))", kind)
            self.assertIn(HOSTILE.replace("'", "'\\''"), self.texts(f"#cells-{kind} .command")[0])
        for figure in ["forward", "cp-forward-tflops"]:
            self.assertTrue(any(HOSTILE in name for name in self.legend(figure)), figure)
        self.assertNotEqual(self.browser.title, "injected")
        self.assertEqual(self.run_script(scripts), clean)

    def test_resizing_redraws(self):
        self.wait_for_plot("forward")
        self.set_width(900)
        self.wait("return document.querySelector('#plot-forward svg').getBoundingClientRect().right <= 900")

    def test_dark_scheme(self):
        self.wait_for_plot("forward")
        ground = "return getComputedStyle(document.body).backgroundColor"
        light = self.run_script(ground)
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
        self.addCleanup(self.browser.execute_cdp_cmd, "Emulation.setEmulatedMedia", {"features": []})
        self.assertNotEqual(self.run_script(ground), light)
        self.wait_for_plot("forward")
        self.wait("return document.getElementById('plot-forward').layout.font.color ==="
                  " getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()")

    def test_clock_and_power(self):
        self.assertEqual(self.count("#trace-section"), 0)
        self.open(self.write_page("traced"))
        self.assertEqual(self.count("#trace-section"), 1)
        self.run_script("document.getElementById('trace-section').scrollIntoView()")
        self.wait("return document.getElementById('plot-trace').data")
        lines = self.run_script("return document.getElementById('plot-trace').data.map(line => [line.name, line.x, line.y])")
        seconds = [0, 0.02, 0.04, None, 0.04, 0.06, 0.08, None]
        self.assertEqual(lines, [["SM clock", seconds, [1980, 1905, 1890, None] * 2],
                                 ["power", seconds, [350, 610, 640, None] * 2]])
        shaded = self.run_script("return document.getElementById('plot-trace').layout.shapes.map(s => [s.x0, s.x1])")
        self.assertEqual(shaded, [[0.04, 0.08]])
        self.click_chip("kernel", "flash")
        self.assertEqual(self.count("#trace-section"), 0)

    def test_over_ranks_the_schemes_come_first(self):
        self.assertEqual(self.count("#fastest-ranks"), 0)
        self.open(self.write_page("ranks"))
        self.assertIn("Context parallelism over 1, 2 and 4 ranks", self.browser.title)
        self.assertEqual(self.count("#fastest-ranks tbody tr"), RANK_MASKS)
        for section in ["fastest", "plots", "cells"]:
            self.assertEqual(self.count(f"#{section}-devices"), 0)
        self.assertEqual(self.run_script("return document.querySelector('main section:not([hidden])').id"), "fastest-ranks")
        self.assertEqual(self.texts("#fastest-ranks thead th"), ["mask", "", "1K · 1 rank", "2K · 2 ranks", "4K · 4 ranks"])
        self.assertEqual(self.count("#cells-ranks tbody tr"), RANK_CELLS)
        self.assertEqual(self.count("#masks-section .picture"), RANK_MASKS)
        self.assertIn("zigzag: usp", self.texts("#fastest-ranks .setting")[0])


class OtherPagesTest(PageTest):
    def test_what_was_not_measured_names_its_command(self):
        """One mask lacks its longer length, another the backward pass of it."""
        with open(os.path.join(self.folder.name, "sample.jsonl")) as file:
            records = [json.loads(line) for line in file]
        longest = max(record["case"]["tokens"] for record in records)
        masks = list(dict.fromkeys(record["case"]["mask"] for record in records))
        is_left_out = lambda case: case["tokens"] == longest and (
            case["mask"] == masks[0] or (case["mask"] == masks[1] and case["pass"] == "backward"))
        with open(os.path.join(self.folder.name, "holes.jsonl"), "w") as file:
            file.writelines(json.dumps(record) + "\n" for record in records if not is_left_out(record["case"]))
        self.open(self.write_page("holes"))
        self.assertEqual(self.count("#fastest-devices .unmeasured"), 3, "a problem, a pass and its step")
        self.click("#fastest-devices .unmeasured")
        command = self.texts("#fastest-devices .to-measure code")[0]
        for part in ["longca bench ", f"-a tokens={longest}", "-a pass=forward,backward"]:
            self.assertIn(part, command)

    def test_two_machines_are_never_mixed(self):
        self.open(self.write_page("machines"))
        self.assertEqual(self.texts("#fastest-devices option"), ["Example CPU 9000, 2 cores", "Other CPU, 2 cores"])
        self.assertIn("Example CPU 9000, 2 cores and Other CPU, 2 cores", self.texts("h1")[0])
        per_kernel = MASKS * LENGTHS
        self.assertEqual(self.bars("forward")["flash"], per_kernel)
        self.assertEqual(self.count("#cells-devices tbody tr"), CELLS)
        slow = self.texts("#fastest-devices .fastest")
        self.choose("devices", "machine", "Other CPU, 2 cores")
        self.assertNotEqual(self.texts("#fastest-devices .fastest"), slow)
        self.assertIn("naive", self.texts("#fastest-devices .fastest")[0])
        self.assertEqual(self.count("#cells-devices tbody tr"), CELLS)
        self.click("#cells-devices label input")
        self.assertEqual(self.count("#cells-devices tbody tr") + 0, 2 * CELLS)
        self.assertEqual(self.bars("forward")["flash"], per_kernel)

    def test_several_problems_are_chosen_one_by_one(self):
        self.open(self.write_page("problems"))
        axes = self.run_script("return [...document.querySelectorAll('#fastest-devices select')].map(s => [s.dataset.axis, s.value])")
        self.assertEqual(axes, [["heads", "8:2"], ["dtype", "float32"]])
        self.choose("devices", "heads", "8:8")
        heads = self.texts("#cells-devices thead th").index("heads") + 1
        self.assertEqual(set(self.texts(f"#cells-devices tbody td:nth-child({heads})")), {"8:8"})
        self.choose("devices", "dtype", "bfloat16")
        self.assertIn("No cell has this combination", self.texts("#fastest-devices .nothing")[0])
        self.assertEqual(self.count("#fastest-devices tbody tr"), 0)

    def test_at_most_eight_series(self):
        self.open(self.write_page("many"))
        legend = self.legend("forward")
        self.assertEqual(sum(legend.values()), 8)
        self.assertEqual(len(legend), 12)
        drawn = lambda: {name for name, in self.traces("forward", "name")}
        self.assertEqual(len(drawn()), 8)
        last = list(legend)[-1]
        self.assertNotIn(last, drawn())
        self.run_script("[...document.querySelectorAll('#figure-forward .series')].at(-1).click()")
        self.assertIn(last, drawn())
        self.assertEqual(len(drawn()), 8)
        symbols = [marker["symbol"] for marker, in self.traces("forward", "marker")]
        colors = [marker["color"] for marker, in self.traces("forward", "marker")]
        for values in [symbols, colors]:
            self.assertEqual(len(set(values)), 8, "one symbol and colour for each")

    def test_a_colour_belongs_to_a_kernel(self):
        colors = {}
        for page in [self.page, self.write_page("sparse"), self.write_page("problems")]:
            self.open(page)
            for kind in self.run_script("return data.kinds.map(k => k.series)"):
                for series in kind:
                    self.assertEqual(colors.setdefault(series["name"], series["color"]), series["color"])
        self.assertEqual(len(set(colors.values())), len(colors))

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
        self.assertLessEqual(self.run_script("return Math.max(...[...document.querySelectorAll('.series')].map(e => e.getBoundingClientRect().right))"), 390)

    def test_without_plotly(self):
        page = self.write_page("sample-bare", LONGCA_PLOTLY_JS=os.path.join(self.folder.name, "none.js"))
        self.open(page)
        self.assertIn("no plots", self.texts(".warning")[0])
        self.assertEqual(self.count("#plots-devices"), 0)
        self.click_chip("kernel", "naive")
        self.assertEqual(self.count("#cells-devices tbody tr"), CELLS * 2 // 3)
        self.click("#cells-devices tbody tr")
        self.assertEqual(self.count("#cells-devices .details circle"), 3)

    def test_all_masks(self):
        self.open(self.write_page("all_masks"))
        self.assertEqual(self.count("#masks-section .picture"), 14)
        self.assertEqual(self.count("#fastest-devices tbody tr"), 14)

    def test_block_sparse_beside_dense(self):
        self.open(self.write_page("sparse"))
        axes = self.run_script("return [...document.querySelectorAll('#fastest-devices select')].map(s => s.dataset.axis)")
        self.assertEqual(sorted(axes), ["block", "density", "heads", "selection"])
        self.choose("devices", "heads", "64:8")
        self.choose("devices", "block", "64")
        self.choose("devices", "selection", "random")
        curves = [(name, x, y) for name, x, y in self.traces("sparse-forward-time", "name", "x", "y")]
        slices = [(x, y) for name, x, y in curves if name == "slice"]
        self.assertEqual([x for x, _ in slices], [[0.2, 0.5, 0.8]] * 2)
        for ratio, wanted in zip(slices[0][1], [0.2488, 0.592, 0.9352]):
            self.assertAlmostEqual(ratio, wanted, places=4)
        self.assertEqual({name for name, _, _ in curves}, {"slice", "flex", "fastest dense kernel", "dense × density"})
        self.assertIn("above: naive from 5.02", self.annotations("sparse-forward-time")[0])
        self.assertIn("always, 0.2–0.8", self.texts("#cells-devices tbody td"))

    def test_speed_beside_the_kept_mass(self):
        self.open(self.write_page("sparse"))
        self.choose("devices", "heads", "64:8")
        self.choose("devices", "selection", "scores")
        curves = self.traces("sparse-forward-mass", "name", "x", "y", "line")
        alone, in_all = [(x, y) for name, x, y, line in curves if name == "slice"]
        for x, _ in [alone, in_all]:
            for mass, wanted in zip(x, [0.6, 0.8, 0.92], strict=True):
                self.assertAlmostEqual(mass, wanted)
        for speed, slower in zip(alone[1], in_all[1], strict=True):
            self.assertGreater(speed, slower)
        dashes = [line.get("dash") for name, _, _, line in curves if name == "slice"]
        self.assertEqual(dashes, ["solid", "dash"])

    def test_block_sparse_on_a_phone_and_without_plots(self):
        self.set_width(390, is_phone=True)
        self.open(self.write_page("sparse"))
        self.assertLessEqual(self.run_script("return document.documentElement.scrollWidth"), 390)
        self.set_width(1280)
        self.open(self.write_page("sparse-bare", LONGCA_PLOTLY_JS=os.path.join(self.folder.name, "none.js")))
        self.click("#cells-devices label input")
        self.assertIn(str(SPARSE_CELLS), self.run_script("return document.querySelector('#cells-devices .count').textContent + ' ' + cells.filter(c => c.break_even !== undefined).length"))

    def test_plots_have_their_height_before_they_are_drawn(self):
        """What a click or a link scrolled to stays where it is."""
        for page in [self.write_page("ranks-both", "one_device"), self.write_page("traced")]:
            self.open(page)
            heights = "return [...document.querySelectorAll('figure:not([hidden]) .plot, section:not([hidden]) > .plot')].map(e => e.offsetHeight)"
            before = self.run_script(heights)
            self.wait("return window.Plotly")
            self.run_script("drawAllPending()")
            self.assertGreater(len(before), 2)
            self.assertEqual(self.run_script(heights), before)

    def test_both_kinds_on_one_page(self):
        self.open(self.write_page("ranks-both", "one_device"))
        self.assertEqual(self.count("#cells-devices tbody tr"), RANK_COUNTS * PASSES)
        self.assertEqual(self.count("#cells-ranks tbody tr"), RANK_CELLS)
        self.assertEqual(self.bars("forward"), {"flash": RANK_COUNTS})
        grey = [y for name, x, y in self.traces("cp-forward-tflops", "name", "x", "y") if name == "one device"]
        self.assertEqual(grey, [[510, 510, 510]])
        titles = self.texts("#cells-ranks thead th")
        row = self.texts("#cells-ranks tbody tr:first-child td")
        self.assertEqual(row[titles.index("efficiency")], "0.98")

    def test_a_series_per_scheme_over_ranks(self):
        self.open(self.write_page("ranks"))
        self.assertEqual(set(self.legend("cp-forward-tflops")), {"ulysses", "ring_p2p · zigzag", "ring_p2p · balanced", "usp"})
        lines = self.traces("cp-forward-tflops", "name", "type", "y")
        for name, wanted in {"ulysses": 2, "usp": 3}.items():
            self.assertEqual([len(y) for known, kind, y in lines if known == name and kind == "bar"], [wanted] * RANK_MASKS)
        self.assertIn("1 rank", {name for name, _, _ in lines})
        self.assertIn("X unsupported", self.texts("#figure-cp-forward-tflops .legend")[0])

    def test_exposed_communication_stands_on_the_steps(self):
        self.open(self.write_page("ranks"))
        bars = [(y, base) for kind, y, base in self.traces("cp-forward-exposed", "type", "y", "base") if kind == "bar"]
        self.assertEqual(len(bars), 2 * LINES * RANK_MASKS)
        for (steps, ground), (added, base) in zip(bars[::2], bars[1::2]):
            self.assertIsNone(ground)
            self.assertEqual(base, steps)
            self.assertEqual(added[0], 0, "noise below zero is no bar")
            self.assertAlmostEqual(added[1] / (steps[1] + added[1]), 0.1, places=3)

    def test_bytes_beside_the_formula(self):
        self.open(self.write_page("ranks"))
        traces = [trace[1:] for trace in self.traces("cp-forward-bytes", "mode", "type", "name", "y") if trace[0] != "text"]
        self.assertEqual([kind for kind, _, _ in traces], ["bar", "scatter", "scatter"] * LINES * RANK_MASKS)
        off = [name for (_, name, sent), (_, _, formula) in zip(traces[::3], traces[1::3]) if sent != formula]
        self.assertEqual(off, ["ring_p2p · zigzag"])
        self.assertIn("≠ 1572864 (sent 1581056)", self.texts("#cells-ranks td"))

    def test_filters_over_ranks(self):
        self.open(self.write_page("ranks"))
        self.click_chip("scheme", "ring_p2p")
        self.assertEqual(set(self.legend("cp-forward-tflops")), {"ulysses", "usp"})
        self.assertEqual(self.count("#cells-ranks tbody tr"), RANK_CELLS // 2)
        self.click_chip("ranks", "1")
        self.assertEqual(self.texts("#fastest-ranks thead th")[2:], ["2K · 2 ranks", "4K · 4 ranks"])
        self.click_chip("mask", "full")
        self.wait_for_plot("cp-forward-tflops")
        self.assertEqual(self.count("#plot-cp-forward-tflops .subplot"), 1)
        self.click('.filter-group[data-dimension="scheme"] button:last-of-type')
        self.assertEqual(self.count("#cells-ranks tbody tr"), 0)
        self.wait_for_plot("cp-forward-tflops")
        self.assertEqual(self.count("#plots-ranks .plot svg"), 0)

    def test_what_only_figures_have_is_chosen_above_them(self):
        """The same schemes with twice as many tokens per rank."""
        with open(os.path.join(self.folder.name, "ranks.jsonl")) as file:
            records = [json.loads(line) for line in file]
        with open(os.path.join(self.folder.name, "longer.jsonl"), "w") as file:
            for record in records:
                file.write(json.dumps(record) + "\n")
                tokens = record["case"]["tokens"]
                key = record["key"].replace(f"tokens={tokens}", f"tokens={2 * tokens}")
                twice = {**record, "key": key, "case": {**record["case"], "tokens": 2 * tokens}}
                file.write(json.dumps(twice) + "\n")
        self.open(self.write_page("longer"))
        axes = lambda section: self.run_script(
            "return [...document.querySelectorAll(arguments[0] + ' select')].map(s => s.dataset.axis)", section)
        self.assertEqual(axes("#fastest-ranks"), [])
        self.assertEqual(axes("#plots-ranks"), ["tokens over ranks"])
        self.assertEqual(self.count("#cells-ranks .controls label"), 0)

    def test_notes_stay_within_their_panel(self):
        self.open(self.write_page("kernels"))
        notes = self.annotations("cp-forward-tflops")
        tops = self.run_script("return [...document.querySelectorAll('#plot-cp-forward-tflops .annotation text')].slice(0, 2).map(e => e.getBoundingClientRect().top)")
        self.assertAlmostEqual(tops[0], tops[1], delta=1)
        self.assertNotIn("no number", notes[0])
        self.assertIn("no number: ", notes[1])
        self.set_width(390, is_phone=True)
        self.open(os.path.join(self.folder.name, "hostile.html"))
        for note in self.annotations("cp-backward-tflops"):
            self.assertLessEqual(note.count("<br>"), 2)
        ends = self.run_script("return [...document.querySelectorAll('#plot-cp-backward-tflops .annotation')].map(e => e.getBoundingClientRect().right)")
        self.assertLessEqual(max(ends), 390)

    def test_over_ranks_on_a_phone(self):
        self.set_width(390, is_phone=True)
        self.open(self.write_page("ranks"))
        self.assertLessEqual(self.run_script("return document.documentElement.scrollWidth"), 390)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
