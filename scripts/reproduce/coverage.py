"""The share of test rows that intervals and sets of labels hold, and how wide they are, beside split conformal peers.

    python scripts/reproduce/coverage.py TABLES [--libsvm DATA] [--quick] [--out docs/results] [--sets adult,sgemm]
        [--seeds 1] [--methods "localsvm,LightGBM"]

TABLES is a folder with NAME.train.csv.xz and NAME.test.csv.xz, and columns.json, which names the target, the columns to
be ignored, and the categories, which adult does without. DATA (default $LOCALSVM_DATA) has NAME.train.libsvm.xz and
NAME.test.libsvm.xz; covtype7 is covtype with its seven classes. Sets whose files are not there are left out, and so is
MAPIE where it is not installed. `lsvm-train` promises 90 %; sets of labels are predicted for 99 %, too, by the same
model. All take one thread. Finished runs are kept in OUT/coverage.jsonl and not repeated, so that sets, methods and
seeds can be run in parts; OUT/coverage.md is written from the log. --quick: an eighth of the rows; its log and page
are OUT/coverage-quick.jsonl and OUT/coverage-quick.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import lsvm, pinned, run_contestant
from harness.datasets import SEVEN
from harness.experiment import Experiment, carry_out
from harness.options import parsed, parser
from reproduce import coverage_page, coverage_peers
from reproduce.coverage_page import METHODS, PROMISES, TIMED
from reproduce.coverage_peers import BLOCKS, CLASSES, VALUES, names
from reproduce.tables import texts, told
from reproduce.tabular import Rows
from reproduce.value_peers import some
from reproduce.values import STOPPED, Fit, Key, progress, rewritten, targets

OURS = {VALUES: ["--loss", "least-squares"], CLASSES: []}
LIBSVM_SETS = ("letter", SEVEN)
CLASS_SETS = ("adult", *LIBSVM_SETS)
SETS = (  # small ones first
    "bike-hour", "letter", "california-housing", "adult", "protein-casp", "diamonds", "sgemm", *TIMED, SEVEN,
)  # fmt: skip
QUICK = 8  # of so many rows one


@dataclass(frozen=True)
class Task:
    """A set in files.

    told: options that tell the columns. given: what the peers are told. deviation: of the test values.
    """

    kind: str
    paths: list[Path]
    told: list[str]
    given: dict[str, Any]
    rows: tuple[int, int]
    deviation: float | None = None

    @property
    def levels(self) -> tuple[float, ...]:
        """What is promised."""
        return PROMISES[self.kind]


def main() -> None:
    """Run what is missing, then write the page."""
    quick = "an eighth of the rows; log and page of their own"
    given = parser(__doc__, out=Path("docs/results"), sets=SETS, seeds=1, methods=METHODS, quick=quick)
    data = os.environ.get("LOCALSVM_DATA") or None
    given.add_argument("--libsvm", type=Path, default=data, help="folder of LIBSVM sets (default $LOCALSVM_DATA)")
    given.add_argument("--limit", type=int, default=1800, help="processor seconds of a peer (default %(default)s)")
    given.add_argument("--our-limit", type=float, default=None, help="seconds of a command of ours (default: none)")
    options = parsed(given)
    os.environ.update(pinned(1))
    done = lambda run, _: run.status != "failed"  # noqa: E731
    name = "coverage-quick" if options.quick else "coverage"
    carry_out(Experiment(name, Fit, cases, measure, coverage_page.page, progress, done), options)


def cases(options: Any) -> list[Key]:
    """The first seed of all sets before the next one; later rows are held out where they are in the order of time."""
    methods = [method for method in options.methods if method != "MAPIE" or find_spec("mapie")]
    return [
        (name, method, seed)
        for seed in range(options.seeds)
        for name in present(options)
        for method in methods
        if name in TIMED or not method.endswith(BLOCKS)
    ]


def present(options: Any) -> list[str]:
    """Sets whose files are there; the others are named on stderr."""
    here = []
    for name in options.sets:
        folder, file = options.data, f"{name}.train.csv.xz"
        if name in LIBSVM_SETS:
            folder, file = options.libsvm, f"{'covtype' if name == SEVEN else name}.train.libsvm.xz"
        if folder and (folder / file).exists():
            here.append(name)
        else:
            print(f"left out: {name}: no {file} in {folder or 'the folder DATA, which is not given'}", file=sys.stderr)
    return here


def measure(missing: list[Key], known: list[Fit], options: Any) -> Iterator[Fit]:
    """The missing runs, set by set; what was stopped is not tried with another seed, nor what is not installed."""
    hopeless = {(run.name, run.method) for run in known if run.status == "timeout"}
    absent: set[str] = set()
    for name in dict.fromkeys(name for name, _, _ in missing):
        with files(name, options) as task:
            for key in (key for key in missing if key[0] == name):
                if key[:2] in hopeless or key[1] in absent:
                    continue
                run = Fit(*key, **outcome(key, task, options), rows=task.rows)
                if run.status == "timeout":
                    hopeless.add(key[:2])
                if "is not installed" in run.message:
                    absent.add(run.method)
                yield run


@contextmanager
def files(name: str, options: Any) -> Iterator[Task]:
    """A set; its files go at the end."""
    if name in LIBSVM_SETS:
        with Rows.of(options.libsvm, name) as rows:
            if options.quick:
                rows = replace(rows, train=eighth(*rows.train), test=eighth(*rows.test))
            yield Task(CLASSES, [*map(Path, rows.texts)], [], {"arrays": rows.arrays}, rows.counts)
        return
    columns = json.loads((options.data / "columns.json").read_text())[name]
    kind = CLASSES if name in CLASS_SETS else VALUES
    if kind == CLASSES:  # by its numbers alone
        columns["ignore"] = [*columns["ignore"], *columns["categorical"]]
    with texts(options.data, name) as paths:
        times = TIMED.get(name, ())
        counts = [rewritten(path, times, QUICK if options.quick else 1) for path in paths]
        given = {"paths": [*map(str, paths)], "target": columns["target"], "ignore": columns["ignore"]}
        deviation = float(targets(paths[1], columns["target"]).std()) if kind == VALUES else None
        yield Task(kind, paths, told(columns), given, (counts[0], counts[1]), deviation)


def eighth(X: Any, y: Any) -> tuple[Any, Any]:
    """An eighth of the rows, at random."""
    rows = some(len(y), len(y) // QUICK, 0)
    return X[rows], y[rows]


def outcome(key: Key, task: Task, options: Any) -> dict[str, Any]:
    """Status, message and figures of a run."""
    _, method, seed = key
    if method.removesuffix(BLOCKS) in coverage_peers.PEERS:
        found = peer(method, seed, task, options.limit)
    else:
        found = ours(method, seed, task, options.our_limit)
    if task.deviation is not None and found["status"] == "ok":
        found["figures"]["deviation"] = task.deviation
    return found


def ours(method: str, seed: int, task: Task, limit: float | None) -> dict[str, Any]:
    """Training for the first promise, and a prediction for each, by the command line."""
    (train, test), folder = task.paths, task.paths[0].parent
    model, out = str(folder / "model.h5"), str(folder / f"out{task.paths[1].suffix}")
    blocks = ["-v", "blocks"] if method.endswith(BLOCKS) else []
    given = [*OURS[task.kind], *task.told, *blocks, "-j", "1", "--seed", str(seed)]
    figures: dict[str, float] = {}
    try:
        _, training = lsvm("train", [*given, "--coverage", f"{task.levels[0]:g}", str(train), model], limit)
        for level in task.levels:
            words = ["--coverage", f"{level:g}", "-j", "1", str(test), model, out]
            score, prediction = lsvm("predict", words, limit)
            width = score["mean_width" if task.kind == VALUES else "labels_of_a_set"]
            figures |= zip(names(level), (score["covered"] / score["total"], width), strict=True)
            figures.setdefault("predict_cpu", prediction["cpu"])
    except subprocess.CalledProcessError as failure:
        return {"status": "failed", "message": f"exit status {failure.returncode}"}
    except subprocess.TimeoutExpired:
        return {"status": "timeout", "message": f"stopped after {limit:g} s"}
    return {"status": "ok", "figures": figures | {"train_cpu": training["cpu"]}}


def peer(method: str, seed: int, task: Task, limit: int) -> dict[str, Any]:
    """A peer's run, which ends when it has used so many processor seconds."""
    given = json.dumps({"kind": task.kind, "levels": task.levels, **task.given})
    command = [sys.executable, coverage_peers.__file__, method, str(seed), str(limit), given]
    found = run_contestant(command, cores=1, limit=None)
    for by, message in STOPPED.items():
        if found["status"] == "failed" and found["message"].endswith(f" {-by}"):
            return {"status": "timeout", "message": message.format(limit)}
    return found


if __name__ == "__main__":
    main()
