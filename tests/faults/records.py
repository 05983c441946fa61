#!/usr/bin/env python3
"""Kills `longca bench` by SIGKILL at random moments of fresh, resumed and replacing runs, and checks
after each that no record is lost and none is damaged.

usage: records.py PROGRAM ROUNDS [SEED]

A record must be in NAME as long as no run replaces it; from then on in NAME.bak, until NAME holds as
many cells. Exits with 1 and a sentence at the first round that breaks this."""

import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

CELLS = ["-a", "kernel=naive,flash", "-a", "tokens=64", "-a", "heads=2:1", "-a", "dim=16", "-a", "window=8",
         "-a", "dtype=float32", "-a", "block=16", "--time-limit", "0.005",
         "-a", "mask=full,causal,sliding_window,document,prefix_lm_causal,block_sparse"]
KINDS = ("fresh", "resumed", "replacing")


class Broken(Exception):
    pass


def require(holds, sentence):
    if not holds:
        raise Broken(sentence)


def whole_lines(path):
    """The lines that end with a newline, and what is torn behind them."""
    if not os.path.exists(path):
        return [], b""
    with open(path, "rb") as file:
        *lines, torn = file.read().split(b"\n")
    return lines, torn


def records_of(path):
    """Lines by their cell's key; every whole line must be a record."""
    lines, torn = whole_lines(path)
    records = collections.defaultdict(list)
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            raise Broken(f"{path} has a damaged line: {line[:80]!r}")
        require(record.get("schema") == 1 and "status" in record, f"{path} has a line that is no record: {line[:80]!r}")
        records[record["key"]].append(line)
    begin = b'{"schema":'
    require(torn.startswith(begin) or begin.startswith(torn), f"{path} ends with {torn[:80]!r}")
    return records


def lines_in(records):
    return {line for lines in records.values() for line in lines}


def wait_for_a_moment(process, kind, out, longest, rng):
    """Until a random moment or, for half of the replacing runs, one just around the change of files."""
    if kind != "replacing" or not os.path.exists(out) or rng.random() < 0.5:
        time.sleep(rng.uniform(0, longest))
        return
    before = os.stat(out).st_ino
    end = time.monotonic() + longest
    while time.monotonic() < end and process.poll() is None:
        try:
            if os.path.exists(out + ".bak") or os.stat(out).st_ino != before:
                break
        except FileNotFoundError:
            break
    time.sleep(rng.uniform(0, 0.003))


def start(program, kind, out, progress):
    command = [program, "bench", "--out", out, *CELLS] + (["--resume"] if kind == "resumed" else [])
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=progress)


def check(kind, out, before, before_backup, said):
    now, backup = records_of(out), records_of(out + ".bak")
    kept = lines_in(now) | lines_in(backup)
    if kind == "replacing" and not lines_in(before) <= kept:
        require(len(now) >= len(before), f"{out} had {len(before)} cells and has {len(now)}; no backup holds the others")
    elif kind != "fresh":
        lost = lines_in(before) - (lines_in(now) if kind == "resumed" else kept)
        require(not lost, f"{len(lost)} of {len(lines_in(before))} records of {out} are lost")
    require(lines_in(before_backup) <= kept, f"{out}.bak has lost a record that was there before")
    new = lines_in(now) - lines_in(before)
    require(len(new) >= said, f"{said} cells were reported as measured, and {len(new)} are in {out}")


def run_round(program, folder, number, kind, longest, rng):
    """Kills one run and checks its files; whether it had ended before."""
    name = f"{number}.jsonl" if kind == "fresh" else "file.jsonl"
    out = os.path.join(folder, name)
    before, before_backup = records_of(out), records_of(out + ".bak")
    with tempfile.TemporaryFile() as progress:
        process = start(program, kind, out, progress)
        wait_for_a_moment(process, kind, out, longest, rng)
        process.send_signal(signal.SIGKILL)
        ended = process.wait() == 0
        progress.seek(0)
        text = progress.read()
        require(ended or process.returncode == -signal.SIGKILL, f"the run ended with {process.returncode}: {text!r}")
        said = sum(line.startswith(b"[") for line in text.split(b"\n"))
    check(kind, out, before, before_backup, said)
    if kind == "fresh":
        os.remove(out) if os.path.exists(out) else None
    # From the beginning, now and then, so that files do not stay complete.
    if rng.random() < 0.1:
        for suffix in ("", ".bak"):
            if os.path.exists(out + suffix):
                os.remove(out + suffix)
    return ended


def main():
    program, rounds = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 42
    rng = random.Random(seed)
    ended = collections.Counter()
    done = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="longca_faults_") as folder:
        begin = time.monotonic()
        whole = os.path.join(folder, "whole.jsonl")
        with open(os.devnull, "w") as nothing:
            require(start(program, "fresh", whole, nothing).wait() == 0, "the run without a kill failed")
        longest = 1.1 * (time.monotonic() - begin)
        for number in range(rounds):
            kind = KINDS[number % len(KINDS)]
            try:
                ended[kind] += run_round(program, folder, number, kind, longest, rng)
            except Broken as broken:
                print(f"round {number} ({kind}, seed {seed}): {broken}", file=sys.stderr)
                return 1
            done[kind] += 1
        print(", ".join(f"{done[kind]} {kind} runs ({done[kind] - ended[kind]} killed)" for kind in KINDS) +
              ": no record lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
