"""Test error and processor time of `lsvm-train --loss least-squares` and `quantile` on tables, beside other libraries.

    python scripts/reproduce/values.py TABLES [--quick] [--out docs/results] [--sets abalone,pol] [--seeds 3]
        [--methods "localsvm,LightGBM chosen"]

TABLES is a folder with NAME.train.csv.xz and NAME.test.csv.xz, and columns.json, which names the target and the columns
to be ignored: nothing else is told. All take one thread. Seeds are those of `localsvm`; all others have one. Finished
runs are kept in OUT/values.jsonl and not repeated, so that sets, methods and seeds can be run in parts;
OUT/values.md is written from the log. Answers are kept in KEPT, so that a run can be compared with earlier ones row by
row. --quick: abalone alone, one seed.
"""

from __future__ import annotations

import csv
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import lsvm, pinned, run_contestant
from harness.experiment import Experiment, carry_out
from harness.options import parsed, parser
from reproduce import value_peers, values_page
from reproduce.tables import Fit, texts, told
from reproduce.value_peers import LARGEST, LEVELS, PEERS, pinball, some
from reproduce.values_page import LATER, TIMED

LEAST, HIGH, QUANTILES = "localsvm", "localsvm high", "localsvm quantiles"
OURS = {
    LEAST: ["--loss", "least-squares"],
    HIGH: ["--loss", "least-squares", "--effort", "high"],
    LATER: ["--loss", "least-squares", "-v", "blocks"],
    QUANTILES: ["--loss", "quantile", "--quantile", ",".join(f"{level:g}" for level in LEVELS)],
}
METHODS = [*OURS, *PEERS]
QUANTILE_SETS = ("abalone", "kin8nm", "california-housing", "bike-hour", "protein-casp", "diamonds")
STOPPED = {signal.SIGXCPU: "over {} s", signal.SIGKILL: "out of memory"}  # the system kills the largest
Key = tuple[str, str, int]  # set, method, seed


def main() -> None:
    """Run what is missing, then write the page."""
    given = parser(__doc__, out=Path("docs/results"), seeds=3, methods=METHODS, quick="abalone, one seed")
    given.add_argument("--sets", type=lambda text: text.split(","), default=None, help="default: all")
    given.add_argument("--limit", type=int, default=600, help="processor seconds of a peer (default %(default)s)")
    given.add_argument("--our-limit", type=float, default=None, help="seconds of a command of ours (default: none)")
    given.add_argument("--kept", type=Path, default=Path("build/values"), help="folder (default %(default)s)")
    options = parsed(given)
    if options.quick:
        options.sets, options.seeds = ["abalone"], 1
    if not options.page_only and (unknown := set(options.sets or ()) - set(described(options.data))):
        given.error(f"{', '.join(sorted(unknown))}: no such set of values in {options.data / 'columns.json'}")
    os.environ.update(pinned(1))
    done = lambda run, _: run.status != "failed"  # noqa: E731
    carry_out(Experiment("values", Fit, cases, measure, values_page.page, progress, done), options)


def described(folder: Path) -> dict[str, Any]:
    """What columns.json says of sets of values."""
    known = json.loads((folder / "columns.json").read_text())
    return {name: columns for name, columns in known.items() if columns["task"] == "regression"}


def cases(options: Any) -> list[Key]:
    """The first seed of all sets before the next one, sets of few rows first."""
    rows = {name: lines(options.data / f"{name}.train.csv.xz") - 1 for name in options.sets or described(options.data)}
    return [
        (name, method, seed)
        for seed in range(options.seeds)
        for name in sorted(rows, key=lambda name: rows[name])
        for method in options.methods
        if seed == 0 or method in (LEAST, LATER)
        if rows[name] <= LARGEST.get(method, rows[name])
        if name in QUANTILE_SETS or "quantiles" not in method
        if name in TIMED or method != LATER
    ]


def lines(path: Path) -> int:
    """Number of lines of a compressed text."""
    with lzma.open(path) as text:
        return sum(1 for _ in text)


def measure(missing: list[Key], known: list[Fit], options: Any) -> Iterator[Fit]:
    """The missing runs, set by set; what was stopped is not tried with another seed, nor what is not installed."""
    hopeless = {(run.name, run.method) for run in known if run.status == "timeout"}
    absent: set[str] = set()
    columns = described(options.data)
    for seed, name in dict.fromkeys((seed, name) for name, _, seed in missing):
        with texts(options.data, name) as paths:
            y = targets(paths[1], columns[name]["target"])
            rows = (sum(1 for _ in paths[0].open("rb")) - 1, len(y))
            for key in (key for key in missing if (key[2], key[0]) == (seed, name)):
                if key[:2] in hopeless or key[1] in absent:
                    continue
                run = Fit(*key, **outcome(key, paths, columns[name], y, options), rows=rows)
                if run.status == "timeout":
                    hopeless.add(key[:2])
                if "is not installed" in run.message:
                    absent.add(run.method)
                yield run


def targets(path: Path, name: str) -> Any:
    """Values of the column of a table."""
    with path.open(newline="") as text:
        return np.array([float(row[name]) for row in csv.DictReader(text)])


def outcome(key: Key, paths: list[Path], columns: dict[str, Any], y: Any, options: Any) -> dict[str, Any]:
    """Status, message and figures of a run; its answers are kept."""
    _, method, seed = key
    out = paths[0].with_name("answers.npy")
    if method in OURS:
        found = ours(method, seed, paths, columns, out, options.our_limit)
    else:
        found = peer(method, seed, paths, columns, out, options.limit)
    if found["status"] != "ok":
        return found
    answers = np.load(out)
    figures = found["figures"] | (quantile_scores(answers, y) if "quantiles" in method else scores(answers[:, 0], y))
    if "rmse" in figures:
        figures["pairs"] = pairs(key, answers[:, 0], y, options.kept)
    return found | {"figures": figures}


def ours(method: str, seed: int, paths: list[Path], columns: dict[str, Any], out: Path, limit: Any) -> dict[str, Any]:
    """Training and prediction by the command line; the answers are written to `out`."""
    model = paths[0].with_name("model.h5")
    table = model.with_suffix(".csv")
    given = [*OURS[method], *told(columns), "-j", "1", "--seed", str(seed)]
    train = paths[0]
    if method == LATER:
        train = Path(shutil.copy(train, train.with_name("in-order.csv")))
        rewritten(train, TIMED[paths[0].name.split(".")[0]])
    try:
        report, training = lsvm("train", [*given, str(train), str(model)], limit)
        _, prediction = lsvm("predict", ["-j", "1", str(paths[1]), str(model), str(table)], limit)
    except subprocess.CalledProcessError as failure:
        return {"status": "failed", "message": f"exit status {failure.returncode}"}
    except subprocess.TimeoutExpired:
        return {"status": "timeout", "message": f"stopped after {limit:g} s"}
    np.save(out, np.loadtxt(table, delimiter=",", skiprows=1, ndmin=2))
    seconds = {"train_cpu": training["cpu"], "predict_cpu": prediction["cpu"]}
    return {"status": "ok", "figures": seconds | {"cv_error": report["summary"]["cv_error"]}}


def rewritten(path: Path, times: tuple[str, ...], share: int = 1) -> int:
    """Put the rows of a table in the order of these columns, keep one of so many at random, and count them."""
    with path.open(newline="") as text:
        header, *rows = csv.reader(text)
    places = [header.index(name) for name in times]
    rows.sort(key=lambda row: [int(row[place]) for place in places])  # a stable sort: without columns, nothing moves
    kept = some(len(rows), len(rows) // share, 0) if share > 1 else np.arange(len(rows))
    with path.open("w", newline="") as text:
        csv.writer(text, lineterminator="\n").writerows([header, *(rows[row] for row in kept)])
    return len(kept)


def peer(method: str, seed: int, paths: list[Path], columns: dict[str, Any], out: Path, limit: int) -> dict[str, Any]:
    """A peer's run, which ends when it has used so many processor seconds; the answers are written to `out`."""
    words = [method, str(seed), *map(str, paths), columns["target"], json.dumps(columns["ignore"]), str(limit)]
    outcome = run_contestant([sys.executable, value_peers.__file__, *words, str(out)], cores=1, limit=None)
    for by, message in STOPPED.items():
        if outcome["status"] == "failed" and outcome["message"].endswith(f" {-by}"):
            return {"status": "timeout", "message": message.format(limit)}
    return outcome


def scores(answers: Any, y: Any) -> dict[str, Any]:
    """The error of answers."""
    return {"rmse": float(np.sqrt(np.mean(np.square(answers - y))))}


def quantile_scores(answers: Any, y: Any) -> dict[str, Any]:
    """Pinball losses of quantiles, and the share of values between the first and the last one."""
    inside = (answers[:, 0] < y) & (y <= answers[:, -1])
    losses = [pinball(answers[:, column], y, level) for column, level in enumerate(LEVELS)]
    return {"pinball": losses, "inside": float(np.mean(inside))}


def pairs(key: Key, answers: Any, y: Any, folder: Path) -> dict[str, tuple[float, float]]:
    """Squared errors of a run of ours less those of each kept one of a peer, or the other way round.

    By method and seed: the mean over the rows, and its standard error. The answers are kept, too.
    """
    name, method, seed = key
    mine = np.square(answers - y)
    found = {}
    for path in sorted((folder / name).glob("*.npy")):
        theirs = np.load(path)
        if (path.stem.rsplit(" ", 1)[0] in OURS) != (method in OURS) and theirs.shape == y.shape:
            more = mine - np.square(theirs - y)
            found[path.stem] = (float(more.mean()), float(more.std(ddof=1) / np.sqrt(len(y))))
    (folder / name).mkdir(parents=True, exist_ok=True)
    np.save(folder / name / f"{method} {seed}.npy", answers)
    return found


def progress(run: Fit) -> str:
    """The line that the terminal shows of a run."""
    what = f"{run.name} {run.method} seed {run.seed}: "
    if run.status != "ok":
        return what + f"{run.status}, {run.message}"
    return what + ", ".join(f"{name} {value:.4g}" for name, value in run.figures.items() if isinstance(value, float))


if __name__ == "__main__":
    main()
