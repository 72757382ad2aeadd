"""Training on Spark against one process and two, on the same cores: processor seconds, and shuffled bytes.

    python scripts/bench_spark.py [--rows 100000] [--masters 'local-cluster[1,1,1024]' 'local-cluster[2,1,1024]']
    python scripts/bench_spark.py --passes [--rows 100000]
    python scripts/bench_spark.py --plumbing [--rows 100000] [--masters 'local-cluster[2,1,1024]']

HIGGS-like rows (data.synthetic), cells of 2 000 in coarse cells of 20 000, one gamma and C without a metric, or
the default grid and metric (--grid). The same rows in the same coarse cells by `lsvm-train` alone come first, and the
models are compared by their manifests. Wall clock is told as well, by phase; on a machine that does other work it says
little. --passes tells, without Spark, what its workers spend on the three passes over the rows, and the bytes that they
hand to the shuffle. --plumbing tells, on Spark, the processor seconds of each pass and of the shuffle into coarse cells
that are not trained: all that a run has besides its work on cells, whose tasks are as many.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from localsvm.runs.distributed import read_form, survey
from localsvm.runs.part_work import assigned, counted, form_of, lines, looked_at

from localsvm.data.synthetic import higgs_like
from localsvm.data.writing import write
from localsvm.features.scaling import Scaling
from localsvm.parallel.spark import PIECE_BYTES, Spark
from localsvm.partition.two_step import TwoStep
from localsvm.partition.voronoi import Voronoi
from localsvm.runs.config import TrainingConfig
from localsvm.runs.part_files import text_of

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


def passes(file: str, rows: int) -> None:
    """Print the processor seconds of each pass, for a text in one part, and the bytes of its blocks."""
    text = Path(file).read_bytes()
    lines = text.splitlines(keepends=True)
    step = max(1, PIECE_BYTES * len(lines) // len(text))
    pieces = [b"".join(lines[i : i + step]) for i in range(0, len(lines), step)]
    config = TrainingConfig(partition="voronoi", coarse_size=20_000, metric="none")
    seconds = [time.process_time()]
    form = form_of("rows", False, None, [counted("rows", False, None, None, 0, iter(pieces))])
    seconds.append(time.process_time())
    look = looked_at(form, 20_000, [1], 0, iter(pieces))
    seconds.append(time.process_time())
    scaling, step_one = Scaling.of_sums(look.sums, config.scale), TwoStep(Voronoi, 20_000)
    X, y = look.sample(0)
    step_one.sketch(scaling.apply(X), y, rows, np.random.default_rng(0))
    seconds.append(time.process_time())
    size = sum(len(pickle.dumps(each, 5)) for each in assigned(form, scaling, [step_one.coarse], 0, iter(pieces)))
    seconds.append(time.process_time())
    names = ("counted", "looked at", "coarse centres (the driver)", "assigned, pickled")
    each = ", ".join(f"{name} {1e6 * s / rows:.1f}" for name, s in zip(names, np.diff(seconds), strict=True))
    print(f"{rows} rows of {form.features} features, {len(text) / rows:.0f} bytes of text each")
    print(f"microseconds a row: {each}\nto the shuffle: {size / rows:.0f} bytes a row")


def nothing(task: Any, blocks: list[Any]) -> int:
    """In place of training."""
    return len(blocks)


def plumbing(file: str, rows: int, master: str) -> None:
    """Print the processor seconds of Python and Java, pass by pass."""
    seen = np.zeros(2)

    def tell(what: str) -> None:
        java = sum(seconds for name, seconds in below(os.getpid()).values() if name == "java")
        now = np.array([sum(seconds for _, seconds in below(os.getpid()).values()) - java, java])
        print(f"| {what} | {now[0] - seen[0]:.1f} | {now[1] - seen[1]:.1f} |", flush=True)
        seen[:] = now

    config = TrainingConfig(partition="voronoi", coarse_size=20_000, metric="none")
    print(f"{rows} rows on {master}\n\n| what | Python, s | Java, s |\n|---|---|---|")
    tell("reading this program")
    with Spark(master) as spark:
        tell("start")
        text = text_of(spark, file)
        text.each(lines)
        tell("first job, and lines")
        form = read_form(text, config)
        tell("counted")
        found = survey(text, form, config)
        tell("looked at, coarse centres")
        tasks, trees = found.tasks(), [step.coarse for step in found.steps]
        groups = text.groups(partial(assigned, form, found.chain, trees), len(tasks))
        cells = len(list(groups.unordered(nothing, tasks)))
        tell(f"assigned, shuffled, {cells} jobs")
        list(groups.unordered(nothing, tasks))
        tell(f"{cells} jobs again")


def main() -> None:
    """Run all, and print a table."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--rows", type=int, default=100_000)
    given.add_argument("--masters", nargs="+", default=["local-cluster[1,1,1024]", "local-cluster[2,1,1024]"])
    given.add_argument("--grid", action="store_true", help="the default grid and metric instead of one point")
    given.add_argument("--passes", action="store_true", help="only what workers spend on the rows, without Spark")
    given.add_argument("--plumbing", action="store_true", help="only what Spark spends beside the work on cells")
    options = given.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file, manifests = f"{folder}/rows", set()
        X, y = higgs_like(options.rows, np.random.default_rng(0))
        write(file, X, y)
        if options.passes:
            passes(file, options.rows)
            return
        if options.plumbing:
            plumbing(file, options.rows, options.masters[-1])
            return
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
