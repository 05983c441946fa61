"""Tables and the picture of context parallelism over many GPUs: simulated records beside published figures."""

import math
import statistics

from publish_tables import NOTHING, CannotPublish, by_place, is_ok, label, markdown, only, rate, read_csv, words_of

PROBLEM = ["mask", "pass", "scheme"]
SCHEMES = ("magi", "ulysses", "usp", "loongtrain", "ring_allgather", "ring_p2p")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


def published_rates(figures):
    """TFLOP/s per GPU by mask, pass, scheme and number of ranks."""
    return {(row["mask"], row["pass"], row["scheme"], row["ranks"]): float(row["tflops"]) for row in read_csv(figures)}


def simulated_rates(records, kernel):
    return {(*(record[axis] for axis in PROBLEM), record["ranks"]): rate(record)
            for record in records if is_ok(record) and record["kernel"] == kernel}


def agreement(ours, theirs):
    """How far simulated rates are from the published ones that they have in common."""
    pairs = [(ours[place], theirs[place]) for place in theirs if place in ours]
    if len(pairs) < 2:
        return "no figures in common"
    errors = [abs(a / b - 1) for a, b in pairs]
    correlation = statistics.correlation([a for a, _ in pairs], [b for _, b in pairs])
    of_logs = statistics.correlation([math.log(a) for a, _ in pairs], [math.log(b) for _, b in pairs])
    return (f"{len(pairs)} figures, correlation {correlation:.2f} (of logarithms {of_logs:.2f}), mean error "
            f"{100 * statistics.mean(errors):.0f} %, median {100 * statistics.median(errors):.0f} %")


def ranks_published(records, figures, kernels):
    """TFLOP/s per GPU over the fewest and over the most GPUs that were published: published, and simulated with each kernel."""
    theirs = published_rates(figures)
    names = words_of(kernels)
    ours = {name: simulated_rates(records, name) for name in names}
    counts = sorted({place[3] for place in theirs}, key=int)
    ends = (counts[0], counts[-1])

    def cell(rates, place):
        values = [rates.get((*place, count)) for count in ends]
        return NOTHING if None in values else " → ".join(f"{value:.0f}" for value in values)

    problems = [place for place in by_place([record for record in records if record["kernel"] == names[0]], PROBLEM)
                if (*place, ends[0]) in theirs]
    if not problems:
        raise CannotPublish(f"{figures} has no figure of these masks and schemes")
    lines = [[*(label(axis, value, True) for axis, value in zip(PROBLEM, place)), cell(theirs, place),
              *(cell(ours[name], place) for name in names)] for place in problems]
    header = [*PROBLEM, f"published, {ends[0]} → {ends[1]} GPUs", *(f"`{name}`, simulated" for name in names)]
    table = markdown(header, lines, right=range(len(PROBLEM), len(header)))
    return table + "\n" + "\n".join(f"- `{name}`: {agreement(ours[name], theirs)}." for name in names) + "\n"


def limits(records):
    """What a pass spends its time on, over so many GPUs. Records of two platforms: one as it is, and the same without
    latencies, whose name says that figures were set by hand."""
    as_it_is = [record for record in records if "-set" not in record["platform"]]
    without = [record for record in records if "-set" in record["platform"]]
    lines = []
    for place, found in by_place(as_it_is, ["mask", "ranks", "pass", "scheme"]).items():
        record = only(found, place[3])
        if record is None:
            continue
        fast = only([other for other in without
                     if all(other[axis] == record[axis] for axis in ("mask", "ranks", "pass", "scheme", "factor"))], "latency")
        time, exposed = float(record["time_ms"]), float(record["exposed_comm_ms"])
        lines.append([label("mask", place[0], True), place[1], place[2], label("scheme", place[3], True), f"{rate(record):.0f}",
                      f"{float(record['bytes_sent']) / 1e6:.0f}", f"{float(record['imbalance']):.2f}",
                      f"{float(record['time_imbalance']):.2f}", f"{float(record['compute_ms']):.2f}", f"{exposed:.2f}",
                      f"{100 * exposed / time:.0f}", f"{time - float(fast['time_ms']):.2f}" if fast else NOTHING])
    header = ["mask", "GPUs", "pass", "scheme", "TFLOP/s per GPU", "MB sent", "imbalance of cells", "of time", "computing ms",
              "exposed ms", "exposed %", "longer by latency, ms"]
    return markdown(header, lines, right=range(4, len(header)))


def picture(records, figures):
    """A gnuplot program: TFLOP/s per GPU over the number of GPUs, a panel a mask and pass; lines are simulated, points are
    published. Lines end where the last point may be."""
    theirs = published_rates(figures)
    panels = sorted({place[:2] for place in theirs}, key=lambda place: (place[1] != "forward", place[0] != "full", place[0]))
    kernels = sorted({record["kernel"] for record in records})
    text = ["set terminal svg size 1080,680 font 'sans-serif,12' background 'white'", "set output 'picture.svg'",
            f"set multiplot layout 2,{len(panels) // 2} title 'TFLOP/s per GPU, 8K tokens on each: points published, lines "
            "simulated (solid: FlashAttention 3 and NCCL, dashed: slice)'",
            "set logscale x 2", "set xrange [7:110]", "set xlabel 'GPUs' offset 0,0.7", "set yrange [0:760]", "set xtics (8,16,32,64,96)", "set grid ytics lc '#dddddd'",
            "set key off", "set termoption noenhanced"]
    for number, (mask, which) in enumerate(panels):
        plots, data = [], []

        def add(points, style):
            plots.append(f"'-' using 1:2 {style}")
            data.extend([*(f"{count} {value:.1f}" for count, value in points), "e"])

        for scheme, colour in zip(SCHEMES, COLOURS):
            for kernel, dash in zip(kernels, (1, 2)):
                rates = simulated_rates(records, kernel)
                points = sorted((int(place[3]), value) for place, value in rates.items()
                                if place[:3] == (mask, which, scheme) and int(place[3]) <= 96)
                if points:
                    add(points, f"with lines lw 1.6 dt {dash} lc '{colour}' " + (f"title '{scheme}'" if dash == 1 else "notitle"))
            points = sorted((int(place[3]), value) for place, value in theirs.items() if place[:3] == (mask, which, scheme))
            add(points, f"with points pt 7 ps 0.7 lc '{colour}' notitle")
        text.append(f"set title '{mask.replace('_', ' ')}, {which}'")
        if number == len(panels) - 1:
            text.append("set key at graph 0.98,0.98 right top samplen 1.5 font ',10'")
        text += ["plot " + ", ".join(plots), *data]
    return "\n".join([*text, "unset multiplot", ""])
