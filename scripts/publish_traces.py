"""The table and the picture of one cell whose ops were traced, beside the same cell simulated."""

import dataclasses
import html
import json
import re

from publish_ranks import COLOURS
from publish_tables import CannotPublish, markdown, tokens_text

KINDS = {"attention": (COLOURS[0], "white"), "passes over memory": (COLOURS[4], "black"), "exchanges": (COLOURS[2], "black")}
IDLE = "#eeeeee"
COMPUTE, LANES = 0, 2
# Pixels: the picture's width, what is left free beside and above the boxes, and the height of a lane.
WIDTH, LEFT, RIGHT, TOP, LANE = 1080, 130, 70, 62, 15
CHARACTER = 0.55  # an average character's width over the size of the font


@dataclasses.dataclass
class Op:
    name: str
    kind: str
    lane: int
    begin: float  # ms since all ranks passed a barrier
    end: float


@dataclasses.dataclass
class Trace:
    case: dict
    ranks: dict  # of each rank, its ops

    @property
    def end(self):
        return max(map(end_of, self.ranks.values()))


def op_of(event):
    """The op of an event that `longca cp --trace` or `longca simulate --trace` wrote: attention has cells, an exchange has
    bytes."""
    figures = event["args"]
    kind = "attention" if "cells" in figures else \
           "exchanges" if {"bytes_sent", "bytes_received"} & set(figures) else "passes over memory"
    return Op(event["name"], kind, event["tid"], event["ts"] / 1e3, (event["ts"] + event["dur"]) / 1e3)


def read(path):
    try:
        content = json.loads(path.read_text())
        ranks = {}
        for event in content["traceEvents"]:
            if event["ph"] == "X":
                ranks.setdefault(event["pid"], []).append(op_of(event))
        if not ranks:
            raise CannotPublish(f"{path} has no ops")
        return Trace(dict(word.split("=", 1) for word in content["otherData"]["case"].split()), dict(sorted(ranks.items())))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotPublish(f"{path} is no trace of a cell: {error!r}") from error


def end_of(ops):
    return max(op.end for op in ops)


def time_in(ops):
    return sum(op.end - op.begin for op in ops)


def times_of(ops):
    """ms in each kind of op, in which the compute lane has none, and until the last has ended."""
    idle = end_of(ops) - time_in(op for op in ops if op.lane == COMPUTE)
    return [*(time_in(op for op in ops if op.kind == kind) for kind in KINDS), idle, end_of(ops)]


def calls(trace):
    """What a plan has in every trace of it: passes over memory may be one or several ops."""
    return {rank: sorted(op.name for op in ops if op.kind != "passes over memory") for rank, ops in trace.ranks.items()}


def percent_off(measured, simulated):
    return f"{100 * (simulated.end / measured.end - 1):+.1f} %"


def table(measured, simulated):
    """A row a rank: ms measured / simulated. That of the rank that ends last is bold."""
    def texts(trace, rank):
        *times, end = (f"{time:.3f}" for time in times_of(trace.ranks[rank]))
        return [*times, f"**{end}**" if end_of(trace.ranks[rank]) == trace.end else end]

    lines = [[str(rank), *map(" / ".join, zip(texts(measured, rank), texts(simulated, rank)))] for rank in measured.ranks]
    header = ["rank", *KINDS, "compute lane idle", "end"]
    return markdown(header, lines, right=range(1, len(header))) + \
        f"\nms, measured / simulated. The end, simulated over measured: {percent_off(measured, simulated)}." + \
        ("" if calls(measured) == calls(simulated) else " Plans have changed since the trace was measured.") + "\n"


def step_of(end):
    """A round number of ms, at most a tenth of which a pass has."""
    return next(step for power in range(-4, 9) for step in (10**power, 2 * 10**power, 5 * 10**power) if end <= 10 * step)


def text(x, y, words, size=11, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}"{more}>{html.escape(words)}</text>'


def box(x, y, width, fill, height=LANE, title=""):
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" fill="{fill}"' +
            (f' stroke="white" stroke-width="0.5"><title>{html.escape(title)}</title></rect>' if title else "/>"))


def label(op, x, y, width):
    """The op's name, or as much of it as its box has space for."""
    size = 10
    for words in (op.name, re.sub(r" \d.*", "", op.name), op.name.split()[0]):
        if CHARACTER * size * len(words) + 4 <= width:
            return [text(x + width / 2, y + LANE - 4, words, size, f' text-anchor="middle" fill="{KINDS[op.kind][1]}"')]
    return []


def lanes(ops, y, scale):
    """Both lanes of a rank, compute above communication, and when it ends."""
    drawn = [box(LEFT, y + lane * (LANE + 1), scale * end_of(ops), IDLE) for lane in range(LANES)]
    for op in ops:
        x, top, width = LEFT + scale * op.begin, y + op.lane * (LANE + 1), scale * (op.end - op.begin)
        drawn += [box(x, top, width, KINDS[op.kind][0], title=f"{op.name}, {op.begin:.3f} to {op.end:.3f} ms"),
                  *label(op, x, top, width)]
    return [*drawn, text(LEFT + scale * end_of(ops) + 5, y + LANE - 3, f"{end_of(ops):.3f} ms")]


def axis(end, scale, bottom):
    step = step_of(end)
    drawn = []
    for i in range(int(end / step) + 1):
        x = LEFT + scale * i * step
        drawn += [f'<line x1="{x:.1f}" y1="{TOP - 4}" x2="{x:.1f}" y2="{bottom}" stroke="#dddddd"/>',
                  text(x, bottom + 15, f"{i * step:g}", more=' text-anchor="middle"')]
    return [*drawn, text(WIDTH - RIGHT + 20, bottom + 15, "ms")]


def legend():
    drawn, x = [], LEFT
    for name, colour in [*((kind, colours[0]) for kind, colours in KINDS.items()), ("idle", IDLE)]:
        drawn += [box(x, 36, 12, colour, 12), text(x + 17, 46, name)]
        x += 45 + CHARACTER * 11 * len(name)
    return drawn


def picture(measured, simulated):
    """An SVG: the lanes of each rank, measured above simulated, on one axis of time."""
    end = max(measured.end, simulated.end)
    scale = (WIDTH - LEFT - RIGHT) / end
    pair = LANES * (LANE + 1)
    drawn, y = [], TOP
    for rank, ops in measured.ranks.items():
        drawn.append(text(12, y + pair + 5, f"rank {rank}", 12))
        for name, own in (("measured", ops), ("simulated", simulated.ranks[rank])):
            drawn += [text(LEFT - 8, y + LANE + 4, name, more=' text-anchor="end"'), *lanes(own, y, scale)]
            y += pair + 3
        y += 12
    case = measured.case
    title = (f"{case['scheme']} over {case['ranks']} GPUs, {case['mask'].replace('_', ' ')}, {case['pass']}, "
             f"{tokens_text(case['tokens'])} tokens: {measured.end:.3f} ms measured, {simulated.end:.3f} ms simulated "
             f"({percent_off(measured, simulated)})")
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 20}" '
                      f'viewBox="0 0 {WIDTH} {y + 20}" font-family="sans-serif">',
                      f'<rect width="{WIDTH}" height="{y + 20}" fill="white"/>',
                      text(WIDTH / 2, 22, title, 12, ' text-anchor="middle"'), *legend(), *axis(end, scale, y - 6), *drawn,
                      "</svg>", ""])
