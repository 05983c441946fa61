import json
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import publish_traces as traces  # noqa: E402
from publish_tables import CannotPublish  # noqa: E402

CASE = "kernel=slice mask=causal_document tokens=8192 pass=forward scheme=magi ranks=2"


def event(rank, lane, name, begin, end, **args):
    return {"name": name, "ph": "X", "pid": rank, "tid": lane, "ts": begin, "dur": end - begin, "args": args}


def rows_of(table):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")][2:]


class Traces(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.events = [{"name": "process_name", "ph": "M", "pid": 0, "tid": 0, "args": {"name": "rank 0"}},
                       event(0, 0, "copy", 10, 30), event(0, 1, "group_cast 2 MiB", 0, 90, bytes_sent=2),
                       event(0, 0, "attend 4096 × 4096", 100, 900, cells=5.0), event(1, 0, "attend 9 × 9", 0, 1000, cells=7.0)]

    def read(self, events, case=CASE):
        file = self.folder / "trace.json"
        file.write_text(json.dumps({"otherData": {"case": case}, "traceEvents": events}))
        return traces.read(file)

    def test_a_row_has_the_ms_of_each_kind_and_what_is_left_of_the_compute_lane(self):
        text = traces.table(self.read(self.events), self.read(self.events[:-1] + [event(1, 0, "attend 9 × 9", 0, 500, cells=7.0)]))
        self.assertEqual(rows_of(text), [
            ["0", "0.800 / 0.800", "0.020 / 0.020", "0.090 / 0.090", "0.080 / 0.080", "0.900 / **0.900**"],
            ["1", "1.000 / 0.500", "0.000 / 0.000", "0.000 / 0.000", "0.000 / 0.000", "**1.000** / 0.500"]])
        self.assertTrue(text.endswith("simulated over measured: -10.0 %.\n"), text)

    def test_passes_over_memory_may_be_joined_and_other_calls_are_another_plan(self):
        measured = self.read(self.events)
        for name, more, says in [("copy", {}, False), ("attend 8 × 8", {"cells": 1.0}, True)]:
            other = self.read([*self.events, event(1, 0, name, 1000, 1001, **more)])
            self.assertEqual("Plans have changed" in traces.table(measured, other), says, name)

    def test_the_picture_has_every_op_and_names_those_that_have_space(self):
        trace = self.read(self.events)
        svg = xml.etree.ElementTree.fromstring(traces.picture(trace, trace))
        place = "{http://www.w3.org/2000/svg}"
        self.assertEqual(len(list(svg.iter(place + "title"))), 8)
        words = [text.text for text in svg.iter(place + "text")]
        self.assertIn("magi over 2 GPUs, causal document, forward, 8K tokens: 1.000 ms measured, 1.000 ms simulated (+0.0 %)", words)
        self.assertEqual([words.count(name) for name in ("attend 4096 × 4096", "group_cast", "group_cast 2 MiB", "copy")],
                         [2, 2, 0, 0])

    def test_what_is_no_trace_is_refused(self):
        for events, message in [([], "has no ops"), ([{"name": "copy"}], "is no trace of a cell: KeyError")]:
            with self.assertRaisesRegex(CannotPublish, message):
                self.read(events)


if __name__ == "__main__":
    unittest.main()
