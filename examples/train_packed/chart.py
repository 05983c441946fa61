"""The picture of train_packed.py: losses, how far they are from sdpa's, and tokens per second. Needs matplotlib."""

import argparse
import importlib.util
import pathlib

SUFFIXES = (".svg", ".png", ".pdf")
FLOOR = 2.0**-25  # half of the least relative difference of float32 numbers: where 0 is drawn


class Unavailable(Exception):
    """One sentence: what is missing."""


def path(text):
    """A file to write, as argparse asks for it."""
    file = pathlib.Path(text)
    if file.suffix not in SUFFIXES:
        raise argparse.ArgumentTypeError(f"{text}: a name that ends in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} is meant")
    if not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text}: there is no folder {file.parent}")
    return file


def require():
    if importlib.util.find_spec("matplotlib") is None:
        raise Unavailable("--plot needs matplotlib: pip install matplotlib")


def save(file, runs, reference, options, ranks):
    """runs: with name, losses [steps], tokens_per_s and differences(reference)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplot_mosaic([["losses", "speed"], ["differences", "speed"]], figsize=(10, 6),
                                         width_ratios=(2, 1), layout="constrained")
    dtype, device = str(options.dtype).removeprefix("torch."), options.device.type
    over = f", longca over {ranks} ranks" if ranks > 1 else ""
    figure.suptitle(f"A small Llama on packed documents: {options.tokens} tokens a step, {dtype}, {device}{over}")
    draw_losses(axes["losses"], runs)
    draw_differences(axes["differences"], runs, reference, options.tolerance)
    draw_speeds(axes["speed"], runs, options.warmup)
    axes["losses"].sharex(axes["differences"])
    lines, labels = axes["losses"].get_legend_handles_labels()
    limit, of_limit = axes["differences"].get_legend_handles_labels()
    figure.legend(lines + limit, labels + of_limit, loc="outside lower center", ncols=len(runs) + 1)
    figure.savefig(file, dpi=150)
    pyplot.close(figure)


def steps_of(run):
    return range(1, len(run.losses) + 1)


def draw_losses(axes, runs):
    """Later lines are thinner, so that those below show where they lie over each other."""
    for i, run in enumerate(runs):
        axes.plot(steps_of(run), run.losses, color=f"C{i}", linewidth=1.5 * (len(runs) - i), label=run.name)
    axes.set(title="Loss", ylabel="cross-entropy [nats per token]")


def draw_differences(axes, runs, reference, tolerance):
    equal = False
    for i, run in enumerate(runs):
        if run is not reference:
            differences = run.differences(reference)
            equal = equal or (differences == 0).any()
            axes.plot(steps_of(run), differences.clamp(min=FLOOR), color=f"C{i}", linewidth=1)
    axes.axhline(tolerance, color="black", linestyle="--", linewidth=1, label=f"tolerance {tolerance:.0e}")
    axes.set(title=f"Difference from {reference.name}'s loss" + (f" (0 is drawn as {FLOOR:.0e})" if equal else ""),
             xlabel="step", yscale="log", ylabel="relative difference")


def draw_speeds(axes, runs, warmup):
    bars = axes.bar([run.name for run in runs], [run.tokens_per_s for run in runs], color=[f"C{i}" for i in range(len(runs))])
    axes.bar_label(bars, labels=[f"{run.tokens_per_s:,.0f}" for run in runs], padding=2)
    axes.set(title=f"Speed of training\n(without the first {warmup} steps)", ylabel="tokens per second")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.margins(y=0.1)
