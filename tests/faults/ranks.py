#!/usr/bin/env python3
"""Strangers and killed ranks against `longca cp`, again and again.

    tests/faults/ranks.py LONGCA [ROUNDS]        default: 12 rounds; needs mpirun

Each round runs a few cells over three ranks. While it runs, strangers connect to every socket on
which it listens and say all that follows below, from its start to its end, and in every second
round a rank, chosen at random, gets SIGKILL at a random moment. Afterwards each cell must have one
record: `ok`, or `crash` in a round with a kill; none of what a stranger sent may be in one; and no
process and no file may be left. Exit 1 otherwise.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

MARK = "forged by a stranger"
AXES = ["mask=causal,full", "tokens=256", "heads=6:3", "dim=16", "scheme=ring_p2p,ulysses",
        "shard=contiguous", "ranks=3", "pass=forward,backward", "kernel=naive,flash"]
CELLS = 16


def hello(rank, **more):
    said = {"rank": rank, "ranks": 3, "pid": 1, "host": MARK, "commit": "", "suite_hash": ""}
    return json.dumps({"hello": {**said, **more}})


RECORD = json.dumps({"record": {"schema": 1, "case": {"kernel": "naive"}, "status": "ok",
                                "reason": MARK, "metrics": {"time_ms": 1e-9}}, "ends": False})
LINES = [hello(rank) for rank in (-1, 0, 1, 2, 3, 2**31, -2**31, 2**63, 0.5, None, "0")]
LINES += [hello(0, ranks=-1), '{"hello":{}}', '{"hello":7}', '{"ready":true}', '{"stage":"verify"}',
          RECORD, '{"refused":"' + MARK + '"}', '{"failed":"' + MARK + '"}', "[" * 100000, "null", "",
          "\0\xff", "GET / HTTP/1.1\r\n"]
LINES += ["0" * 32 + " " + line for line in LINES] + [" " + line for line in LINES]


def sockets_below(folder):
    try:
        return [path for path in pathlib.Path(folder).glob("longca-*/ranks*") if path.is_socket()]
    except FileNotFoundError:  # a folder that goes while it is listed
        return []


class Strangers(threading.Thread):
    """Connects for as long as `going` is set; holds the last hundred connections."""

    def __init__(self, folder):
        super().__init__()
        self.folder, self.going, self.heard, self.held = folder, True, 0, []

    def run(self):
        lines = random.sample(LINES, len(LINES))
        while self.going:
            for path in sockets_below(self.folder):
                self.speak(path, lines[self.heard % len(lines)])
            time.sleep(0.0005)

    def speak(self, path, line):
        stranger = socket.socket(socket.AF_UNIX)
        stranger.settimeout(0.05)
        try:
            stranger.connect(str(path))
            stranger.sendall(line.encode("latin-1") + random.choice([b"\n", b"", b"\n\n"]))
            self.heard += 1
        except OSError:  # nobody listens any more, or it has hung up
            pass
        self.held = [*self.held[-100:], stranger]


def processes_with(text):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if text in (entry / "cmdline").read_bytes().decode(errors="replace"):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def kill_a_rank(folder, deadline):
    """One that has connected to the socket in `folder`; whether there was one."""
    time.sleep(random.uniform(0.2, 3))
    while time.monotonic() < deadline:
        ranks = [pid for pid in processes_with(f"{folder}/longca-") if is_rank(pid)]
        if ranks:
            os.kill(random.choice(ranks), signal.SIGKILL)
            return True
        time.sleep(0.01)
    return False


def is_rank(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("longca-rank")
    except OSError:
        return False


def faults_of(process, out, killed, folder):
    """Sentences about what went wrong."""
    faults = []
    if process.returncode != 0:
        faults.append(f"exit code {process.returncode}")
    records = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    keys = {record["key"] for record in records}
    if len(records) != CELLS or len(keys) != CELLS:
        faults.append(f"{len(records)} records, {len(keys)} keys, not {CELLS}")
    for record in records:
        status = record["status"]
        if status != "ok" and not (killed and status == "crash"):
            faults.append(f"{status}: {record['reason']}")
        if MARK in json.dumps(record):
            faults.append("a stranger's record")
    if sum(record["status"] == "crash" for record in records) > (2 if killed else 0):
        faults.append("a kill cost more than its cell")
    left = processes_with(f"{folder}/longca-")
    if left:
        faults.append(f"processes {left} are left")
    if any(folder.iterdir()):
        faults.append(f"files are left: {[path.name for path in folder.iterdir()]}")
    return faults


def run_round(longca, number, work):
    folder = work / f"scratch{number}"
    folder.mkdir()
    out = work / f"{number}.jsonl"
    command = [longca, "cp", "cp_quick", "--quiet", "--out", str(out), "--time-limit", "0.05"]
    for axis in AXES:
        command += ["-a", axis]
    environment = dict(os.environ, TMPDIR=str(folder), OMPI_MCA_rmaps_base_oversubscribe="1",
                       OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    strangers = Strangers(folder)
    strangers.start()
    with open(work / f"{number}.log", "wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        killed = number % 2 == 1 and kill_a_rank(folder, time.monotonic() + 20)
        try:
            process.wait(300)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    strangers.going = False
    strangers.join()
    faults = faults_of(process, out, killed, folder)
    print(f"round {number}: {strangers.heard} strangers, {'a' if killed else 'no'} kill: "
          + ("; ".join(faults) or "right"), flush=True)
    if faults:
        print((work / f"{number}.log").read_text(errors="replace")[-2000:])
    return not faults, strangers.heard, killed


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    rounds = int(sys.argv[2]) if len(sys.argv) == 3 else 12
    work = pathlib.Path(tempfile.mkdtemp(prefix="faults-"))
    results = [run_round(sys.argv[1], number, work) for number in range(rounds)]
    shutil.rmtree(work)
    right = sum(result[0] for result in results)
    print(f"{right} of {rounds} rounds right; {sum(result[1] for result in results)} strangers, "
          f"{sum(result[2] for result in results)} kills")
    sys.exit(0 if right == rounds else 1)


if __name__ == "__main__":
    main()
