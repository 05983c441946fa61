"""The tables that scripts/publish writes: records (rows of `longca report --csv`, as dictionaries) in, Markdown out.

A table lays records out by axes (`rows`, `columns`: lists of their names, in order). In each place it then has the
records of one problem; two that answer the same question differ in an axis that neither the page nor the table names,
and are refused.
"""

import csv
import math
import re
import statistics

KILO = 1024
MASKS = ["full", "causal", "sliding_window", "sliding_window_causal", "document", "causal_document", "shared_question",
         "global_sliding_window", "causal_blockwise", "prefix_lm_causal", "prefix_lm_document", "block_causal_document",
         "block_sparse", "block_sparse_variable"]
SCHEMES = ["ulysses", "ring_p2p", "ring_allgather", "usp", "loongtrain", "magi"]
ORDERS = {"mask": MASKS, "scheme": ["", *SCHEMES], "pass": ["forward", "backward"]}
NUMBERS = ["tokens", "density", "block", "ranks", "window", "block_tokens", "seed", "factor"]
# What may differ between two records of one problem, one kernel and one pass.
MEASURED = ["time_ms", "status"]
NOTHING = "–"
# What a question to `longca advise` names.
PROBLEM_AXES = ("mask", "tokens", "heads", "dim", "dtype", "pass", "lengths", "seed", "window", "block_tokens", "density",
                "block", "block_heads")


class CannotPublish(Exception):
    pass


def read_csv(path):
    try:
        with open(path, newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise CannotPublish(f"cannot read {path}: {error.strerror}") from error


def is_ok(record):
    return record["status"] == "ok"


def rate(record):
    """TFLOP/s, per GPU over ranks."""
    return float(record["tflops"])


def flops(record):
    return rate(record) * float(record["time_ms"])


def number(value):
    """Three significant digits, as the console's table."""
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:.{digits}f}"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def tokens_text(tokens):
    tokens = int(tokens)
    return f"{tokens // KILO}K" if tokens % KILO == 0 else str(tokens)


def tokens_of_rank(record):
    """Tokens on each rank; those of a call on one GPU."""
    return str(int(record["tokens"]) // int(record["ranks"] or 1))


def value_of(record, axis):
    return tokens_of_rank(record) if axis == "tokens_per_rank" else record[axis]


def sort_key(axis):
    order = ORDERS.get(axis, [])

    def key(value):
        if axis in NUMBERS or axis == "tokens_per_rank":
            return (0, float(value or 0), "")
        if axis in ("heads", "dim"):
            return (0, tuple(map(int, value.split(":"))), "")
        return (1, order.index(value), "") if value in order else (2, 0, value)

    return key


def label(axis, value, in_row):
    if axis in ("tokens", "tokens_per_rank"):
        return tokens_text(value)
    if axis == "scheme" and not value:
        return "one GPU"
    if axis in ("mask", "kernel", "scheme"):
        return f"`{value}`" if in_row or axis != "mask" else value
    return value


def by_place(records, axes):
    """The records at each of their places, the values that they have of `axes`, as tuples in order."""
    found = {}
    for record in records:
        found.setdefault(tuple(value_of(record, axis) for axis in axes), []).append(record)
    order = [sort_key(axis) for axis in axes]
    return dict(sorted(found.items(), key=lambda item: [key(value) for key, value in zip(order, item[0])]))


def places(records, axes):
    return list(by_place(records, axes))


def at(records, axes, values):
    return [record for record in records if all(value_of(record, axis) == value for axis, value in zip(axes, values))]


def only(records, what):
    """The one record among those that are ok; None without any. Two are a question that was not asked plainly."""
    found = [record for record in records if is_ok(record)]
    if len(found) > 1:
        first, second = found[:2]
        axes = list(first)[:list(first).index("status")] + ["machine", "build"]
        differing = [f"{axis} ({first[axis]}, {second[axis]})" for axis in axes if first[axis] != second[axis]]
        raise CannotPublish(f"two records of {what} differ in {', '.join(differing) or 'nothing'}: name one")
    return found[0] if found else None


def by_kernel(records):
    """The record of each kernel, the fastest first."""
    kernels = {record["kernel"] for record in records}
    found = [only([record for record in records if record["kernel"] == kernel], kernel) for kernel in sorted(kernels)]
    return sorted([record for record in found if record], key=rate, reverse=True)


def markdown(header, rows, right=()):
    rules = ["--:" if column in right else "---" for column in range(len(header))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rules, *rows]) + "\n"


def words_of(text):
    return [word for word in text.split(",") if word]


def leaders(records, rows="mask", columns="tokens,pass", count="2"):
    """The `count` fastest kernels of each problem, TFLOP/s."""
    row_axes, column_axes = words_of(rows), words_of(columns)
    column_places = places(records, column_axes)

    def cell(found):
        best = by_kernel(found)[:int(count)]
        texts = [f"`{record['kernel']}` {'**' if i == 0 else ''}{rate(record):.0f}{'**' if i == 0 else ''}"
                 for i, record in enumerate(best)]
        return ", ".join(texts) or NOTHING

    header = [" ".join(row_axes)] + [" ".join(label(axis, value, False) for axis, value in zip(column_axes, place))
                                     for place in column_places]
    lines = [[" ".join(label(axis, value, True) for axis, value in zip(row_axes, place))] +
             [cell(at(found, column_axes, column)) for column in column_places]
             for place, found in by_place(records, row_axes).items()]
    return markdown(header, lines)


def rates(records, rows="mask", columns="tokens", kernels="", passes="", metric="tflops"):
    """TFLOP/s, or another metric, of the kernels (default: the one that there is), then of the passes, separated by strokes."""
    row_axes, column_axes = words_of(rows), words_of(columns)
    column_places = places(records, column_axes)
    asked_kernels = words_of(kernels) or [None]
    asked_passes = words_of(passes) or [None]

    def text(found, kernel, which):
        chosen = [record for record in found if (kernel is None or record["kernel"] == kernel) and
                  (which is None or record["pass"] == which)]
        record = only(chosen, kernel or "one kernel")
        if not record:
            return NOTHING
        return f"{rate(record):.0f}" if metric == "tflops" else number(float(record[metric]))

    def cell(found):
        texts = [text(found, kernel, which) for kernel in asked_kernels for which in asked_passes]
        return " / ".join(texts) if set(texts) != {NOTHING} else NOTHING

    header = [*row_axes]
    header += [", ".join(label(axis, value, False) for axis, value in zip(column_axes, place)) for place in column_places]
    lines = [[label(axis, value, True) for axis, value in zip(row_axes, place)] +
             [cell(at(found, column_axes, column)) for column in column_places]
             for place, found in by_place(records, row_axes).items()]
    return markdown(header, lines, right=range(len(row_axes), len(header)))


def compared(records, kernel, axes=("mask", "tokens", "pass")):
    """Of each problem and pass, which differ in `axes`: the kernel's record and that of the fastest other."""
    pairs = []
    for same in by_place(records, axes).values():
        found = by_kernel(same)
        own = next((record for record in found if record["kernel"] == kernel), None)
        other = next((record for record in found if record["kernel"] != kernel), None)
        if own and other:
            pairs.append((own, other))
    if not pairs:
        raise CannotPublish(f"no problem has a record of {kernel} and of another kernel")
    return pairs


def ratios_of(pairs):
    return [rate(own) / rate(other) for own, other in pairs]


def range_of_ratios(pairs):
    """"geometric mean 1.33 over 36 cells, smallest 1.03 (`causal`, 8K), largest ...", with heads and documents where they
    vary."""
    ratios = ratios_of(pairs)
    varied = [axis for axis in ("heads", "lengths") if len({own[axis] for own, _ in pairs if own[axis]}) > 1]

    def cell(i):
        own = pairs[i][0]
        words = [f"`{own['mask']}`", tokens_text(own["tokens"]), *(own[axis] for axis in varied if own[axis])]
        return f"{ratios[i]:.2f} ({', '.join(words)})"

    least, most = min(range(len(ratios)), key=ratios.__getitem__), max(range(len(ratios)), key=ratios.__getitem__)
    return f"geometric mean {geometric_mean(ratios):.2f} over {len(ratios)} cells, smallest {cell(least)}, largest {cell(most)}"


def measured_both_ways(pairs, sustained, kernel):
    """Of each pair whose problem has sustained records of the kernel and of another: it, and the sustained pair."""
    def problem_of(record):
        return places([record], PROBLEM_AXES)[0]

    lasting = {problem_of(own): (own, other) for own, other in compared(sustained, kernel)}
    both = [(pair, lasting[problem_of(pair[0])]) for pair in pairs if problem_of(pair[0]) in lasting]
    if not both:
        raise CannotPublish("no sustained record is of a problem of the table")
    return both


def others_in_front(records, kernel, when=""):
    """Sentences on the cells in which another kernel is the fastest, or a tie with it: beside the kernel, or ahead of it.

    Each begins with `when`, where they are not about the cells of the table alone.
    """
    found = {"Ties with": {}, "Ahead of": {}}
    for (mask, tokens), same in by_place(records, ["mask", "tokens"]).items():
        in_front = [record["kernel"] for record in same if is_ok(record) and record["first"]]
        where = found["Ties with" if kernel in in_front else "Ahead of"]
        for other in in_front:
            if other != kernel:
                where.setdefault(other, {}).setdefault(mask, []).append(tokens_text(tokens))

    def text(masks):
        return ", ".join(f"{mask} ({', '.join(lengths)})" for mask, lengths in masks.items())

    def begun(words):
        return f"{when}{words[0].lower()}{words[1:]}" if when else words

    return [f"{begun(relation)} `{kernel}`: " + "; ".join(f"`{other}` on {text(masks)}" for other, masks in others.items()) + "."
            for relation, others in found.items() if others] or \
        [f"{when.rstrip()}, no other kernel is first, or ties with it." if when else "No other kernel is first, or ties with it."]


def beside(records, kernel="slice", sustained=None):
    """A kernel's TFLOP/s, those of the fastest other, and their ratio; the ratios' mean and ends below, and ties.

    `sustained` are records of mode=sustained: a length at which they have problems of the table gets one more column, the
    kernel's rate there and in brackets its ratio to the other that is fastest there.
    """
    pairs = compared(records, kernel)
    both = [] if sustained is None else measured_both_ways(pairs, sustained, kernel)
    lengths = places([own for own, _ in pairs], ["tokens"])
    lasting_lengths = places([own for (own, _), _ in both], ["tokens"])
    header = ["mask"]
    for length in lengths:
        header += [tokens_text(length[0]), "best other", "ratio"] + ["sustained"] * (length in lasting_lengths)
    lines = []
    for (mask,) in places([own for own, _ in pairs], ["mask"]):
        line = [f"`{mask}`"]
        for length in lengths:
            found = [pair for pair in pairs if pair[0]["mask"] == mask and pair[0]["tokens"] == length[0]]
            if len(found) > 1:
                raise CannotPublish(f"both passes of {mask}: name one")
            for own, other in found:
                line += [f"{rate(own):.0f}", f"{rate(other):.0f} `{other['kernel']}`", f"{rate(own) / rate(other):.2f}"]
            line += [NOTHING] * (3 * (1 - len(found)))
            if length in lasting_lengths:
                there = [pair for burst, pair in both if burst in found]
                line.append(f"{rate(there[0][0]):.0f} ({ratios_of(there)[0]:.2f})" if there else NOTHING)
        lines.append(line)
    right = [column for column, title in enumerate(header) if title not in ("mask", "best other")]
    sentences = [f"Ratio: {range_of_ratios(pairs)}.", *others_in_front(records, kernel)]
    if both:
        bursts, sustained_pairs = zip(*both)
        falls = [(own_sustained, own) for (own, _), (own_sustained, _) in both]
        in_table = places([own for own, _ in sustained_pairs], PROBLEM_AXES)
        lasting = [record for record in sustained if places([record], PROBLEM_AXES)[0] in in_table]
        sentences += [f"Sustained: {range_of_ratios(sustained_pairs)}; {geometric_mean(ratios_of(bursts)):.2f} over the same "
                      "cells in bursts.", *others_in_front(lasting, kernel, when="Sustained "), f"Rate of `{kernel}` sustained over that in bursts: {range_of_ratios(falls)}."]
    return markdown(header, lines, right) + "\n" + "\n".join(sentences) + "\n"


def steps(records, axes):
    """Of each problem and kernel whose two passes ran: (kernel, ms of both, TFLOP/s over the FLOPs of both)."""
    found = {}
    for place, same in by_place(records, axes).items():
        passes = {}
        for which in ORDERS["pass"]:
            for record in by_kernel([record for record in same if record["pass"] == which]):
                passes.setdefault(record["kernel"], []).append(record)
        timed = [(kernel, sum(float(r["time_ms"]) for r in both), sum(map(flops, both)))
                 for kernel, both in passes.items() if len(both) == 2]
        found[place] = sorted([(kernel, ms, work / ms) for kernel, ms, work in timed], key=lambda step: step[1])
    return found


def step(records, kernel="slice"):
    """Forward and backward added up: ms, TFLOP/s, and how many times as fast as the fastest other."""
    axes = ["mask", "tokens"]
    found = {place: timed for place, timed in steps(records, axes).items()
             if any(name == kernel for name, _, _ in timed) and len(timed) > 1}
    lengths = sorted({tokens for _, tokens in found}, key=int)
    header, ratios = ["mask"], []
    for tokens in lengths:
        header += [f"{tokens_text(tokens)}: ms", "TFLOP/s", "next"]
    lines = []
    for mask in sorted({mask for mask, _ in found}, key=MASKS.index):
        line = [f"`{mask}`"]
        for tokens in lengths:
            timed = found.get((mask, tokens), [])
            own = next((entry for entry in timed if entry[0] == kernel), None)
            other = next((entry for entry in timed if entry[0] != kernel), None)
            if own is None or other is None:
                line += [NOTHING] * 3
                continue
            ratios.append(other[1] / own[1])
            line += [number(own[1]), f"{own[2]:.0f}", f"{ratios[-1]:.2f} × `{other[0]}`"]
        lines.append(line)
    right = [column for column in range(1, len(header)) if column % 3 != 0]
    return markdown(header, lines, right) + \
        f"\nRatio: geometric mean {geometric_mean(ratios):.2f} over {len(ratios)} problems, smallest {min(ratios):.2f}.\n"


def devices(machine):
    """The kinds of device that a record's machine names, and their driver: cores and how many devices a run was given do
    not matter to one of them."""
    names, _, driver = machine.partition(" (driver ")
    return {name for name in names.split(", ") if not name.endswith(" cores")}, driver


def of_one_gpu(record, singles):
    """The record of one GPU that runs the whole problem of a record over ranks."""
    axes = ["kernel", "mask", "tokens", "heads", "dim", "dtype", "pass", "mode", "lengths", "seed", "window", "block_tokens",
            "density", "block", "block_heads"]
    return only([single for single in singles if all(single[axis] == record[axis] for axis in axes) and
                 devices(single["machine"]) == devices(record["machine"])], "one GPU")


def schemes(records, rows="mask,tokens_per_rank,pass,ranks"):
    """TFLOP/s per GPU of each scheme and of one GPU that runs the whole problem, in brackets the ratio to it."""
    row_axes = words_of(rows)
    singles = [record for record in records if is_ok(record) and not record["scheme"]]
    ranked = [record for record in records if is_ok(record) and record["scheme"]]
    names = [name for (name,) in places(ranked, ["scheme"])]
    lines = []
    for place, found in by_place(ranked, row_axes).items():
        single = of_one_gpu(found[0], singles)
        best = max(map(rate, found))
        line = [label(axis, value, axis == "mask") for axis, value in zip(row_axes, place)]
        line.append(f"{rate(single):.0f}" if single else NOTHING)
        for name in names:
            record = only([record for record in found if record["scheme"] == name], name)
            if record is None:
                line.append(NOTHING)
                continue
            text = f"**{rate(record):.0f}**" if rate(record) == best else f"{rate(record):.0f}"
            line.append(text + (f" ({rate(record) / rate(single):.2f})" if single else ""))
        lines.append(line)
    titles = {"tokens_per_rank": "tokens per GPU", "ranks": "GPUs"}
    header = [titles.get(axis, axis) for axis in row_axes] + ["one GPU"] + [f"`{name}`" for name in names]
    return markdown(header, lines, right=range(len(row_axes), len(header)))


def headline(records, kernel="slice"):
    """One sentence of a kernel beside the others, for each pass and for both."""
    sentences = []
    for which in ORDERS["pass"]:
        pairs = compared([record for record in records if record["pass"] == which], kernel,
                         ("mask", "tokens", "heads", "lengths"))
        others = sorted({record["kernel"] for record in records
                         if record["pass"] == which and record["kernel"] != kernel and is_ok(record)})
        names = ", ".join(f"`{name}`" for name in others[:-1]) + f" and `{others[-1]}`"
        sentences.append(f"- {which}, times the rate of the best of {names}: {range_of_ratios(pairs)}")
    return "\n".join(sentences) + "\n"


def share(records, axis="heads", of="64:64", beside="64:8", metric="tflops"):
    """A kernel's rate, or another metric, with one value of an axis over that with another: median over problems, for
    each pass."""
    problem = ["kernel", "mask", "tokens", "pass", "lengths"]
    ratios = {}
    for place, found in by_place(records, problem).items():
        pair = [only(at(found, [axis], [value]), f"{axis} {value}") for value in (of, beside)]
        if all(pair):
            ratios.setdefault((place[3], place[0]), []).append(float(pair[0][metric]) / float(pair[1][metric]))
    kernels = sorted({kernel for _, kernel in ratios})
    lines = [[which] + [f"{statistics.median(ratios[which, kernel]):.2f}" if (which, kernel) in ratios else NOTHING
                        for kernel in kernels] for which in ORDERS["pass"]]
    return markdown(["pass", *(f"`{kernel}`" for kernel in kernels)], lines, right=range(1, len(kernels) + 1))


def published(records, figures, kernels):
    """A kernel's TFLOP/s here / those that were published for it (`figures`: a CSV file with columns kernel, mask,
    tokens, pass, tflops), and their ratio in brackets."""
    axes = ["mask", "tokens", "pass"]
    known = {(*(row[axis] for axis in axes), row["kernel"]): float(row["tflops"]) for row in read_csv(figures)}
    names = words_of(kernels)

    def cell(place, found, name):
        here = only([record for record in found if record["kernel"] == name], name)
        there = known.get((*place, name))
        if here is None or there is None:
            return NOTHING
        return f"{rate(here):.0f} / {there:.0f} ({rate(here) / there:.2f})"

    lines = []
    for place, found in by_place(records, axes).items():
        cells = [cell(place, found, name) for name in names]
        if set(cells) != {NOTHING}:
            lines.append([label(axis, value, True) for axis, value in zip(axes, place)] + cells)
    if not lines:
        raise CannotPublish(f"{figures} has no figure of these kernels and problems")
    return markdown([*axes, *(f"`{name}`" for name in names)], lines, right=range(len(axes), len(axes) + len(names)))


def passes(records, kernels):
    """Backward rate over forward rate of each kernel: median over the problems that have both, and how many those are."""
    problem = ["mask", "tokens", "heads", "lengths", "inputs"]
    lines = []
    for kernel in words_of(kernels):
        own = [record for record in records if record["kernel"] == kernel]
        pairs = [[only(at(found, ["pass"], [which]), which) for which in ORDERS["pass"]]
                 for found in by_place(own, problem).values()]
        ratios = [rate(backward) / rate(forward) for forward, backward in pairs if forward and backward]
        if ratios:
            lines.append([f"`{kernel}`", f"{statistics.median(ratios):.2f}", str(len(ratios))])
    if not lines:
        raise CannotPublish("no kernel has both passes of a problem")
    return markdown(["kernel", "backward / forward", "problems"], lines, right=(1, 2))


def statuses(records):
    """How many cells there are of each status."""
    counts = {}
    for record in records:
        counts[record["status"]] = counts.get(record["status"], 0) + 1
    order = ["ok", "unsupported", "unavailable", "oom", "wrong", "timeout", "crash"]
    parts = [f"{counts[status]} `{status}`" for status in order if status in counts]
    return f"{len(records)} cells: {', '.join(parts)}.\n"


def advice(evaluation, left_out="", by="masks"):
    """How good `longca advise` is on cells left out: a line for each way, or of one way for each mask or kernel."""
    ways = {way["by"]: way for way in evaluation["left_out"]}
    if left_out and left_out not in ways:
        raise CannotPublish(f"nothing was left out by '{left_out}'; there are {', '.join(ways)}")
    if by not in ("masks", "kernels"):
        raise CannotPublish(f"by={by} is neither masks nor kernels")
    scores = [(f"`{score['name']}`", score) for score in ways[left_out][by]] if left_out else \
             [(f"every {way['by']} in turn" if way["by"] != "heads" else "each pair of heads", way["all"])
              for way in ways.values()]

    def percent(value):
        return NOTHING if value is None else f"{value:.1f}"

    figures = ["median_error_pct", "p90_error_pct", "coverage_pct", "p90_memory_error_pct"]
    regrets = ["mean_regret_pct", "p95_regret_pct", "right_pct", "right_or_tied_pct"]
    header = [by[:-1] if left_out else "left out", "cells", "median error", "P90", "coverage", "memory P90", "choices",
              "mean regret", "P95", "right", "or tied", "cannot run", "no answer"]
    lines = [[name, str(score["cells"]), *(percent(score[figure]) for figure in figures), str(score["choices"]),
              *(percent(score[figure]) for figure in regrets), str(score["could_not_run"]), str(score["no_answer"])]
             for name, score in scores]
    return markdown(header, lines, right=range(1, len(header)))


def workloads(measured, answers):
    """What was measured of each problem's first choices, beside what `longca advise --json` says of them (`answers`, by
    place) from records without them."""
    lines = []
    for problem, records in by_place(measured, PROBLEM_AXES).items():
        choices = {choice["kernel"]: choice for choice in answers[problem]["choices"]}
        axes = {axis: value for axis, value in zip(PROBLEM_AXES, problem)
                if value and axis not in ("mask", "dtype", "pass", "seed")}
        text = ", ".join([f"`{problem[0]}`", *(f"{axis} {label(axis, value, False)}" for axis, value in axes.items())])
        for kernel in by_kernel(records):
            choice = choices.get(kernel["kernel"])
            if choice is None:
                raise CannotPublish(f"there is no answer for {kernel['kernel']} on {text}")
            ms, memory = float(kernel["time_ms"]), float(kernel["peak_bytes"])
            lines.append([text, f"`{kernel['kernel']}`", number(ms), f"{choice['rank']}{', tied' if choice['tied'] else ''}",
                          number(choice["time_ms"]), f"{number(choice['low_ms'])} to {number(choice['high_ms'])}",
                          f"{100 * (choice['time_ms'] / ms - 1):+.1f}", f"{100 * (choice['peak_bytes'] / memory - 1):+.1f}"])
            text = ""
    return markdown(["workload", "kernel", "ms", "advised", "ms", "90 % interval", "error %", "of memory %"], lines,
                    right=(2, 4, 6, 7))


def simulated(comparisons):
    """A row a file: how far simulated times are from measured ones."""
    lines = []
    for file, comparison in comparisons:
        errors = {group["by"]: group for group in comparison["errors"]}
        order, choice = comparison["order"], comparison["choice"]
        everything = errors["all"]
        lines.append([f"`{file}`", str(everything["cells"]),
                      *(f"{everything[figure]:{sign}.1f}" for figure, sign in
                        (("mean_pct", ""), ("signed_pct", "+"), ("p90_pct", ""), ("worst_pct", "+"))),
                      f"{everything['within_6_pct']:.0f}", f"{errors['compute_ms']['mean_pct']:.1f}",
                      f"{order['right']} of {order['pairs']}",
                      f"{100 * order['right'] / order['pairs']:.0f}" if order["pairs"] else NOTHING,
                      f"{choice['within_3_pct']} of {choice['problems']}",
                      *(f"{choice[figure]:.1f}" if choice["problems"] else NOTHING
                        for figure in ("mean_regret_pct", "worst_regret_pct"))])
    header = ["cells of", "number", "mean error %", "signed", "P90", "worst", "within 6 %: % of cells",
              "kernels alone: mean error %", "pairs of schemes in order", "%", "choices within 3 %", "mean regret %", "worst"]
    return markdown(header, lines, right=range(1, len(header)))


def simulated_by(comparisons, by="scheme"):
    """A row a group of the files' cells, best first."""
    if by not in ("scheme", "pass", "mask"):
        raise CannotPublish(f"by={by} is neither scheme, pass nor mask")
    if len(comparisons) != 1:
        raise CannotPublish("one file is broken down at a time")
    groups = sorted((group for group in comparisons[0][1]["errors"] if group["by"] == by),
                    key=lambda group: (group["mean_pct"], group["name"]))
    lines = [[f"`{group['name']}`", str(group["cells"]), f"{group['mean_pct']:.1f}", f"{group['signed_pct']:+.1f}",
              f"{group['worst_pct']:+.1f}", f"{group['within_6_pct']:.0f}"] for group in groups]
    header = [by, "cells", "mean error %", "signed", "worst", "within 6 %: % of cells"]
    return markdown(header, lines, right=range(1, len(header)))


def files_of_error(page, section="error"):
    """The record files that a page of configs/clusters says an error is from, and those that timed the kernels: ("cp.jsonl.gz",
    "dense.jsonl.gz") for "results/h200x2/cp by the records of results/h200/dense", ("cp.jsonl.gz", None) without a "by"."""
    files = []
    for clause in re.split(r",| and of ", page.get(section, {}).get("measured", "")):
        measured, _, rates = clause.partition(" by ")
        by = next(iter(record_files(rates)), None)
        files += [(file, by) for file in record_files(measured)]
    return files


def record_files(text):
    """results/h200x4/cp stands for cp.jsonl.gz."""
    return [f"{name}.jsonl.gz" for name in re.findall(r"results/[\w/]+", text)]


def too_low(page, comparisons, section="error"):
    """Sentences for the files whose cells are further off than the page's error says, to the digit of the table."""
    claimed = 100 * page[section]["p90"]
    p90s = [(file, next(group["p90_pct"] for group in comparison["errors"] if group["by"] == "all"))
            for file, comparison in comparisons]
    return [f"[{section}] p90 is {claimed:.1f} %, and of {file} it is {p90:.1f} %" for file, p90 in p90s
            if round(p90, 1) > round(claimed, 1)]


def training_loop(rows):
    """A row a mask and length of what benchmarks/python/context_parallel.py wrote: ms of each way, and how many times as fast
    as the best other way longca is, forward and backward together."""
    try:
        times = {(row["mask"], int(row["tokens_per_gpu"]), row["way"]): (float(row["forward_ms"]), float(row["backward_ms"]))
                 for row in rows}
    except (KeyError, ValueError) as error:
        raise CannotPublish(f"not a CSV of benchmarks/python/context_parallel.py: {error}") from error
    ways = dict.fromkeys(way for _, _, way in times)
    lines = []
    for mask, tokens in dict.fromkeys(key[:2] for key in times):
        pairs = {way: times.get((mask, tokens, way)) for way in ways}
        sums = {way: sum(pair) for way, pair in pairs.items() if pair}
        if "longca" not in sums:
            raise CannotPublish(f"no row of {mask} with {tokens} tokens is of longca")
        mine = sums.pop("longca")
        lines.append([f"`{mask}`", tokens_text(tokens), *(" / ".join(map(number, pair)) if pair else NOTHING
                                                          for pair in pairs.values()),
                      f"{min(sums.values()) / mine:.2f}" if sums else NOTHING])
    return markdown(["mask", "tokens per GPU", *ways, "times as fast"], lines, right=range(2, len(ways) + 3))


TABLES = {table.__name__: table for table in (leaders, rates, beside, step, share, schemes, headline, published, passes,
                                           statuses)}
# Of what `longca advise --evaluate --json` says instead of records.
EVALUATIONS = {"advice": advice}
# Of records, and of what `longca advise --json` says of their problems from other records.
FORECASTS = {"workloads": workloads}
# Of what `longca simulate --against FILE --comparison` says of each file.
COMPARISONS = {"simulated": simulated, "simulated_by": simulated_by}
# Of the rows that a benchmark of benchmarks/python wrote.
BENCHMARKS = {"training_loop": training_loop}
OPTIONS = {"rows", "columns", "count", "kernels", "passes", "axis", "of", "beside", "figures", "metric", "left_out", "by",
           "sustained", "to", "commands", "paragraphs"}
