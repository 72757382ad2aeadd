"""Test error and processor time of `lsvm-train` on tables as they are, beside libraries of trees.

    python scripts/reproduce/tables.py TABLES [--quick] [--out docs/results] [--sets adult,car] [--seeds 3]
        [--methods "localsvm,LightGBM"]

TABLES is a folder with NAME.train.csv.xz and NAME.test.csv.xz, and columns.json, which names the label and the columns
to be ignored: nothing else is told. Sets of values are read, described and converted alone. All take one thread.
Finished runs are kept in OUT/tables.jsonl and not repeated; OUT/tables.md is written from the log. --quick: car alone,
one seed.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import children_seconds, lsvm, pinned, run_contestant
from harness.experiment import Experiment, carry_out
from harness.machine import processors, with_article
from harness.options import parsed, parser
from harness.runlog import Run
from harness.tables import number, table, thousands
from reproduce import table_peers

NONE = "localsvm none"
OURS = {NONE: ["--metric", "none"], "localsvm": [], "localsvm high": ["--effort", "high"]}
METHODS = [*OURS, *table_peers.PEERS]
READ = "read"  # the method of a set of values: it is described and converted
Key = tuple[str, str, int]  # set, method, seed
ABOUT = """\
# Tables as they are: lsvm-train beside libraries of trees

Written by `make reproduce-tables TABLES=...` (`scripts/reproduce/tables.py`) from `tables.jsonl`; one thread each, on
{machines}. The machine had other work, so all times are processor seconds. Times are of two kinds of machines:
`localsvm` and LightGBM chosen are of one on which a random forest takes .74 s on online-shoppers, and the other columns
of ones on which it takes .87 s.

`lsvm-train --label TARGET --ignore ... NAME.train.csv` is all that is said of a table; its defaults do the rest.
"none" is `--metric none`, and "high" `--effort high`. Peers get the same columns, and the categories in their own way:
categories of pandas for LightGBM, XGBoost, HistGradientBoosting and RealMLP, text for CatBoost, numbers of levels for
forests. RealMLP gets medians for missing numbers. "chosen", behind the
stroke: three sizes of trees, each trained on three quarters of the training rows, stopped early on the fourth, the best
trained again on all; the time is that of all of it. Test rows serve for the errors below and for nothing else.
"""


@dataclass(frozen=True)
class Fit(Run):
    """One training and prediction. status: ok, failed or timeout; message: why it is not ok.

    rows: for training and test. figures: the error in per cent, or of values what values_page says; seconds.
    """

    KEY = ("name", "method", "seed")
    name: str
    method: str
    seed: int
    status: str
    message: str = ""
    rows: tuple[int, int] = (0, 0)
    figures: dict[str, Any] = field(default_factory=dict)


def main() -> None:
    """Run what is missing, then write the page."""
    given = parser(__doc__, out=Path("docs/results"), seeds=3, methods=METHODS, quick="car, one seed")
    given.add_argument("--sets", type=lambda text: text.split(","), default=None, help="default: all")
    given.add_argument("--limit", type=int, default=300, help="processor seconds of a peer (default %(default)s)")
    options = parsed(given)
    if options.quick:
        options.sets, options.seeds = ["car"], 1
    os.environ.update(pinned(1))
    done = lambda run, _: run.status != "failed"  # noqa: E731
    carry_out(Experiment("tables", Fit, cases, measure, page, progress, done), options)


def columns(options: Any) -> dict[str, Any]:
    """What columns.json says of the sets that are asked for."""
    known: dict[str, Any] = json.loads((options.data / "columns.json").read_text())
    return {name: known[name] for name in options.sets or known}


def cases(options: Any) -> list[Key]:
    """The first seed of all sets before the next one."""
    sets = columns(options)
    values = [(name, READ, 0) for name, known in sets.items() if known["task"] != "classification"]
    classes = [name for name, known in sets.items() if known["task"] == "classification"]
    return values + [
        (name, method, seed) for seed in range(options.seeds) for method in options.methods for name in classes
    ]


def measure(missing: list[Key], known: list[Fit], options: Any) -> Iterator[Fit]:
    """The missing runs; a peer that was stopped is not tried with another seed."""
    described = columns(options)
    hopeless = {(run.name, run.method) for run in known if run.status == "timeout"}
    for name, method, seed in missing:
        if (name, method) in hopeless:
            continue
        with texts(options.data, name) as paths:
            if method == READ:
                outcome = read(paths, described[name])
            elif method in OURS:
                outcome = ours(method, seed, paths, described[name])
            else:
                outcome = peer(method, seed, paths, described[name], options.limit)
            rows = tuple(sum(1 for _ in path.open("rb")) - 1 for path in paths)
        if outcome["status"] == "timeout":
            hopeless.add((name, method))
        yield Fit(name, method, seed, **outcome, rows=rows)  # type: ignore[arg-type]


@contextmanager
def texts(folder: Path, name: str) -> Iterator[list[Path]]:
    """The training and the test table of a set, decompressed."""
    with tempfile.TemporaryDirectory() as scratch:
        paths = [Path(scratch) / f"{name}.{part}.csv" for part in ("train", "test")]
        for path in paths:
            with lzma.open(folder / f"{path.name}.xz") as source, path.open("wb") as out:
                shutil.copyfileobj(source, out)
        yield paths


def told(described: dict[str, Any]) -> list[str]:
    """Options that say what the columns are."""
    ignored = ["--ignore", ",".join(described["ignore"])] if described["ignore"] else []
    return ["--label", described["target"], *ignored]


def ours(method: str, seed: int, paths: list[Path], described: dict[str, Any]) -> dict[str, Any]:
    """Training and prediction by the command line."""
    model = paths[0].with_name("model.h5")
    given = [*OURS[method], *told(described), "-j", "1", "--seed", str(seed)]
    try:
        report, training = lsvm("train", [*given, str(paths[0]), str(model)])
        score, prediction = lsvm("predict", ["-j", "1", str(paths[1]), str(model), str(model.with_suffix(".csv"))])
    except subprocess.CalledProcessError as failure:
        return {"status": "failed", "message": f"exit status {failure.returncode}"}
    figures = {"error": 100 * (1 - score["accuracy"]), "train_cpu": training["cpu"], "predict_cpu": prediction["cpu"]}
    held_out = report["summary"]["cv_error"]
    return {"status": "ok", "figures": figures | {"cv_error": None if held_out is None else 100 * held_out}}


def read(paths: list[Path], described: dict[str, Any]) -> dict[str, Any]:
    """A set of values: described, and converted to encoded columns."""
    cpu, command = children_seconds(), [sys.executable, "-m", "localsvm"]
    for words in (
        ["describe", "--label", described["target"], str(paths[0])],
        ["convert", "--force", *told(described), str(paths[0]), str(paths[0].with_suffix(".libsvm"))],
    ):
        done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        if done.returncode:
            return {"status": "failed", "message": done.stderr.strip()[-200:]}
    return {"status": "ok", "figures": {"train_cpu": children_seconds() - cpu}}


def peer(method: str, seed: int, paths: list[Path], described: dict[str, Any], limit: int) -> dict[str, Any]:
    """A peer's run, which ends when it has used so many processor seconds."""
    words = [method, str(seed), *map(str, paths), described["target"], json.dumps(described["ignore"]), str(limit)]
    outcome = run_contestant([sys.executable, table_peers.__file__, *words], cores=1, limit=None)
    if outcome["status"] == "failed" and outcome["message"].endswith(f" {-signal.SIGXCPU}"):
        return {"status": "timeout", "message": f"over {limit} s"}
    return outcome


def page(runs: list[Fit], _: Any) -> str:
    """The Markdown."""
    done = {(run.name, run.method): [] for run in runs}  # type: dict[tuple[str, str], list[Fit]]
    for run in runs:
        if run.status == "ok":
            done[run.name, run.method].append(run)
    sets = list(dict.fromkeys(run.name for run in runs if run.method != READ))
    lines = [ABOUT.format(machines=with_article(processors(run.machine for run in runs))).rstrip()]
    for method in OURS:
        lines += verdict(method, sets, done)
    lines += ["", "## Test error, per cent", "", "The smallest of a set in bold. Means over the seeds.", ""]
    lines += rows_of(sets, done, runs, "error", np.mean)
    lines += ["", "## Training, processor seconds", "", "Medians over the seeds.", ""]
    lines += rows_of(sets, done, runs, "train_cpu", np.median)
    values = [run for run in runs if run.method == READ]
    if values:
        good = [run.name for run in values if run.status == "ok"]
        lines += ["", "## Sets of values", "", f"Described and converted: {len(good)} of {len(values)} sets."]
    bad = [f"- {run.name}, {run.method}: {run.message}" for run in runs if run.status != "ok"]
    return "\n".join([*lines, *(["", "## Without a figure", "", *bad] if bad else []), ""])


def verdict(ours: str, sets: list[str], done: dict[tuple[str, str], list[Fit]]) -> list[str]:
    """Wins, draws and losses of a method of ours beside the best peer, and beside LightGBM with chosen settings."""
    if ours == NONE:
        return []
    sides: dict[str, list[str]] = {"wins": [], "draws": [], "losses": []}
    near = []
    for name in sets:
        mine = mean(done.get((name, ours), []))
        theirs = {method: mean(done.get((name, method), [])) for method in table_peers.PEERS}
        known = {method: value for method, value in theirs.items() if value is not None}
        if mine is None or not known:
            continue
        best = min(known, key=lambda method: known[method])
        rows = done[name, ours][0].rows[1]
        noise = 100 * float(np.sqrt(max(known[best] / 100 * (1 - known[best] / 100), 1e-9) / rows))
        side = "draws" if abs(mine - known[best]) <= noise else "wins" if mine < known[best] else "losses"
        sides[side].append(f"{name} ({mine:.2f} and {known[best]:.2f}, {best})")
        if "LightGBM chosen" in known and mine <= known["LightGBM chosen"] + 0.5:
            near.append(name)
    lines = [f"- {side}: {len(names)}{': ' + ', '.join(names) if names else ''}." for side, names in sides.items()]
    if not any(sides.values()):
        return []
    judged = sum(map(len, sides.values()))
    head = f"{ours} beside the best peer of each set, picked by its test error; a draw is within one standard error:"
    return ["", head, "", *lines, "", f"At most .5 points above LightGBM chosen on {len(near)} of {judged} sets."]


def mean(runs: list[Fit]) -> float | None:
    """Mean error of some runs."""
    return float(np.mean([run.figures["error"] for run in runs])) if runs else None


def rows_of(
    sets: list[str], done: dict[tuple[str, str], list[Fit]], runs: list[Fit], figure: str, over: Any
) -> list[str]:  # fmt: skip
    """A table of a figure: a row a set."""
    methods = [method for method in METHODS if any(run.method == method for run in runs)]
    names = list(dict.fromkeys(method.removesuffix(" chosen") for method in methods))
    out = []
    for name in sets:
        of = {m: [run.figures[figure] for run in done.get((name, m), [])] for m in methods}
        values = {method: float(over(some)) for method, some in of.items() if some}
        least = min(values.values(), default=0.0)

        def shown(method: str, values: dict[str, float] = values, least: float = least) -> str:
            if method not in values:
                return "-"
            text = number(values[method])
            return f"**{text}**" if values[method] == least and figure == "error" else text

        rows = next(run.rows for run in runs if run.name == name)
        cells = [" / ".join(shown(m) for m in (each, f"{each} chosen") if m in methods) for each in names]
        out.append([name, f"{thousands(rows[0])} / {thousands(rows[1])}", *cells])
    return table(["set", "training / test rows", *names], out)


def progress(run: Fit) -> str:
    """The line that the terminal shows of a run."""
    what = f"{run.name} {run.method} seed {run.seed}: "
    if run.status != "ok":
        return what + f"{run.status}, {run.message}"
    return what + ", ".join(f"{name} {value:.2f}" for name, value in run.figures.items() if isinstance(value, float))


if __name__ == "__main__":
    main()
