"""Time of MLLKM's prediction by its map, beside LLSVM with as many anchors.

    python scripts/bench_mllkm.py [--quick] [--out docs/results/mllkm]

Processor time a row of decision values, one model of two classes, rows in memory, one thread: the least of some
repeats. Weights and anchors are random, as the time does not depend on them; there are ten gammas. LLSVM has its
8 nearest anchors a row. Finished cases are kept in OUT/prediction.jsonl; the page is OUT/prediction.md. --quick: one
size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from bench_mtl import best_of
from harness.experiment import Experiment, carry_out
from harness.library import TARGET, fit_at_one_point, methods
from harness.machine import processors
from harness.options import parsed, parser
from harness.runlog import Run
from harness.tables import table
from threadpoolctl import threadpool_limits

SIZES = ((30, 8), (30, 20), (100, 20), (100, 54), (300, 20))  # anchors, features
MAPS = ("gaussian", "exponential", "square", "linear")
LLSVM = "llsvm"
CASES = (LLSVM, *MAPS, *(f"component {kind}" for kind in MAPS))
ROWS, REPEATS, GAMMAS = 20_000, 9, 10
ABOUT = """\
# Time of MLLKM's prediction

`python scripts/bench_mllkm.py`: processor microseconds a row, one model of two classes, {rows} rows in memory, one
thread, the least of {repeats} repeats; in brackets, of LLSVM's. Anchors and weights are random, with ten gammas. LLSVM
has as many anchors, 8 of them for each row. {processor}, with other work beside.
"""
Key = tuple[int, int, str]  # anchors, features, case


@dataclass(frozen=True)
class Timing(Run):
    """Microseconds a row."""

    anchors: int
    features: int
    case: str
    microseconds: float

    @property
    def key(self) -> Key:
        """What was timed."""
        return self.anchors, self.features, self.case


def main() -> None:
    """Measure what is missing, then write the page."""
    given = parser(__doc__, out=Path("docs/results/mllkm"), data="none", quick="one size")
    carry_out(Experiment("prediction", Timing, cases, measure, page, progress), parsed(given))


def cases(options: Any) -> list[Key]:
    """Size by size."""
    return [(*size, case) for size, case in product(SIZES[:1] if options.quick else SIZES, CASES)]


def measure(missing: list[Key], _: list[Timing], options: Any) -> Iterator[Timing]:
    """One by one."""
    with threadpool_limits(1):
        for anchors, features, case in missing:
            X = random_rows(ROWS, features, 1)
            predictor = llsvm(anchors, features) if case == LLSVM else mllkm(anchors, features, case)
            predictor.decision_function(X[:100])  # what is made on first use
            seconds = best_of(REPEATS, lambda predictor=predictor, X=X: predictor.decision_function(X))[1]
            yield Timing(anchors, features, case, 1e6 * seconds / len(X))


def random_rows(n: int, d: int, seed: int) -> Any:
    """Normal values in float32."""
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def llsvm(anchors: int, features: int) -> Any:
    """A model of the product of two features."""
    X = random_rows(20 * anchors, features, 0)
    method = methods()[LLSVM](clusters=(float(anchors),), cost=(1.0,), tolerance=0.1)
    return method.predictor(fit_at_one_point(method, X, np.sign(X[:, 0] * X[:, 1])).state, TARGET, features)


def mllkm(anchors: int, features: int, case: str) -> Any:
    """A model as it would be saved."""
    *component, kind = case.split()
    rng = np.random.default_rng(0)
    state = {
        "model_problem": np.zeros(1, np.int32),
        "kernel_ptr": np.asarray([0, anchors]),
        "kernel_anchor": np.arange(anchors, dtype=np.int32),
        "kernel_gamma": np.sort(rng.choice(np.geomspace(0.1, 10.0, GAMMAS), anchors)),
        "anchors": random_rows(anchors, features, 0),
        "weights": rng.standard_normal((anchors, features)),
    }
    return methods()["mllkm"](map=kind, componentwise=bool(component)).predictor(state, TARGET, features)


def progress(run: Timing) -> str:
    """What the terminal shows of a case."""
    return f"{run.anchors} anchors, {run.features} features, {run.case}: {run.microseconds:.2f} us"


def page(runs: Sequence[Timing], options: Any) -> str:
    """A line a case."""
    about = ABOUT.format(
        rows=f"{ROWS:,}".replace(",", " "), repeats=REPEATS, processor=processors(run.machine for run in runs)
    )
    sizes, known = list(dict.fromkeys(run.key[:2] for run in runs)), {run.key: run.microseconds for run in runs}

    def entry(size: tuple[int, int], case: str) -> str:
        spent, other = known.get((*size, case)), known.get((*size, LLSVM))
        if spent is None:
            return "-"
        return f"{spent:.2f}" + (f" ({spent / other:.2f})" if other and case != LLSVM else "")

    lines = [[case, *(entry(size, case) for size in sizes)] for case in CASES]
    return "\n".join([about, *table(("", *(f"{k} anchors, {d} features" for k, d in sizes)), lines)])


if __name__ == "__main__":
    main()
