"""Training on Spark against one process and two, on the same cores: processor seconds, and shuffled bytes.

    python scripts/bench_spark.py [--rows 100000] [--masters 'local-cluster[1,1,1024]' 'local-cluster[2,1,1024]']

HIGGS-like rows (data.synthetic), cells of 2 000 in coarse cells of 20 000, one gamma and C without a metric, or
the default grid and metric (--grid). The same rows in the same coarse cells by `lsvm-train` alone come first, and the
models are compared by their manifests. Wall clock is told as well, by phase; on a machine that does other work it
says little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from localsvm.data.synthetic import higgs_like
from localsvm.data.writers.libsvm import write

TICK = os.sysconf("SC_CLK_TCK")
OPTIONS = ["-P", "voronoi", "-c", "2000", "--coarse-size", "20000", "--force", "--json", "-q"]
ONE_POINT = ["-g", "0.05", "-C", "1", "--metric", "none"]
LOCAL = {"one process": "1", "two processes": "2"}
POLL_SECONDS = 0.25


def below(parent: int) -> dict[int, tuple[str, float]]:
    """The name and the processor seconds of a process and of all below it."""
    found: dict[int, tuple[str, int, float]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = path.read_text().partition("(")[2].rsplit(")", 1)
        except OSError:  # it has ended
            continue
        fields = rest.split()
        found[int(path.parent.name)] = name, int(fields[1]), (int(fields[11]) + int(fields[12])) / TICK
    mine = {parent}
    while more := {pid for pid, (_, above, _) in found.items() if above in mine} - mine:
        mine |= more
    return {pid: (found[pid][0], found[pid][2]) for pid in mine if pid in found}


def stored(folder: str) -> int:
    """Bytes of shuffled data below a folder."""
    total = 0
    for path in Path(folder).rglob("shuffle_*.data"):
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total


def run(command: list[str]) -> dict[str, Any]:
    """The report of a command, with "cpu" (seconds by process name), "wall" and "shuffled" bytes."""
    seen: dict[int, tuple[str, float]] = {}
    shuffled, began = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, env=os.environ | {"SPARK_LOCAL_DIRS": scratch})
        while process.poll() is None:
            seen |= below(process.pid)
            shuffled = max(shuffled, stored(scratch))
            time.sleep(POLL_SECONDS)
        wall = time.monotonic() - began
        if process.returncode:
            sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
        out.seek(0)
        report: dict[str, Any] = json.loads(out.read())
    cpu: dict[str, float] = {}
    for name, seconds in seen.values():
        cpu[name] = cpu.get(name, 0.0) + seconds
    return report | {"cpu": cpu, "wall": wall, "shuffled": shuffled}


def told(name: str, report: dict[str, Any], rows: int) -> str:
    """A line of the table."""
    phases = ", ".join(f"{phase} {seconds:.1f}" for phase, seconds in report["summary"]["seconds"].items())
    java = report["cpu"].get("java", 0.0)
    ours = sum(report["cpu"].values()) - java
    each = report["shuffled"] / rows
    return f"| {name} | {ours:.1f} | {java:.1f} | {each:.0f} | {report['wall']:.0f} | {phases} |"


def main() -> None:
    """Run all, and print a table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--rows", type=int, default=100_000)
    given.add_argument("--masters", nargs="+", default=["local-cluster[1,1,1024]", "local-cluster[2,1,1024]"])
    given.add_argument("--grid", action="store_true", help="the default grid and metric instead of one point")
    options = given.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file, manifests = f"{folder}/rows", set()
        X, y = higgs_like(options.rows, np.random.default_rng(0))
        write(file, X, y)
        print("| run | Python, s | Java, s | shuffled bytes a row | wall, s | phases, s |\n|---|---|---|---|---|---|")
        for name in [*LOCAL, *options.masters]:
            on = ["-j", LOCAL[name]] if name in LOCAL else ["--backend", "spark", "--master", name]
            grid = [] if options.grid else ONE_POINT
            report = run([sys.executable, "-m", "localsvm", "train", *OPTIONS, *grid, *on, file, f"{folder}/m.h5"])
            print(told(name, report, options.rows), flush=True)
            print(report["summary"]["cells"], "cells,", Path(f"{folder}/m.h5").stat().st_size, "bytes", file=sys.stderr)
            with h5py.File(f"{folder}/m.h5") as model:
                manifests.add(bytes(model.attrs["manifest"]))
        print(f"\nmodels: {'equal' if len(manifests) == 1 else 'DIFFERENT'}")


if __name__ == "__main__":
    main()
