"""Reruns Figures 1, 2 and 4 of the SVML paper (Xu, Weinberger, Chapelle 2012); Figure 3 is of reproduce/svml.py.

    python scripts/reproduce/svml_figures.py DATA [--out docs/results/svml]

1: the smooth count of errors; 2: loss and errors while a metric is learned on Credit; 4: Credit in the plane of a
metric of rank 2, drawn by `lsvm plot`. DATA is as for reproduce/svml.py. Measurements are kept in OUT/figures.jsonl
and not repeated; OUT/figures.md and the pictures are written from it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import lsvm
from harness.datasets import text_files
from harness.experiment import Experiment, carry_out
from harness.library import SVML, svm_metric
from harness.options import parsed, parser
from harness.pictures import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, empty_figure, legend_below, legend_entries
from harness.runlog import Run
from reproduce.svml import SETS, divided, rows_of

SET = "Credit"
SPLITS, STEPS = 20, 40
STEEP = {1.0: GREY, 2.0: GREEN, svm_metric.STEEPNESS: BLUE, 20.0: PURPLE}
PARTS = {"train": BLUE, "validation": GREEN, "hold-out": ORANGE, "test": RED}
PICTURES = {1: "smooth-loss.png", 2: "course-credit.png", 4: "plane-credit.png"}
ABOUT = f"""\
# The figures of the SVML paper

Written by `make reproduce-svml DATA=...` (`scripts/reproduce/svml_figures.py`), after Xu, Weinberger and Chapelle
(Distance metric learning for kernel machines, 2012). Figure 3, the times, is with [the tables](table.md).

## Figure 1: the smooth count of errors

s(z) = 1 / (1 + exp(a z)) of z = y f(x) stands for the count of errors, which has no slope. The steeper it is, the
nearer it comes to the count, and the fewer rows have a slope. `-m svml` has a = {svm_metric.STEEPNESS:g}.

![The count of errors and smooth ones]({PICTURES[1]})
"""

COURSE = f"""
## Figure 2: loss and errors while the metric is learned

Credit, means over the first {SPLITS} splits of the tables. The loss is that of the validation rows, with the pull; the
SVM is trained on half of the training rows, a quarter validates it, and on the last quarter, the hold-out, it is seen
when to stop. Here the search goes on for {STEPS} steps. The one with the fewest errors on the hold-out is on average
step {{kept:.1f}} of those before the search would end, which is at step {{last:.1f}}; the test rows choose nothing. The
errors on the validation rows go on falling, as the map has more numbers than they are rows.

![Loss and errors by step, Credit]({PICTURES[2]})
"""
PLANE = f"""
## Figure 4: Credit in two dimensions

`lsvm-train -m svml --form rank:2` on the training file of `crx` ({{rows}} rows, {{features}} features), and
`lsvm plot --data`: the learned plane with the decision values and the {{support_vectors}} support vectors, beside the
plane of PCA. Test error: {{error:.1f}} % of {{test_rows}} rows.

![Credit in the learned plane and in that of PCA]({PICTURES[4]})
"""


@dataclass(frozen=True)
class Figure(Run):
    """The numbers of a figure: by step, or of a model."""

    figure: int
    values: dict[str, Any]

    @property
    def key(self) -> int:
        """The figure."""
        return self.figure


def main() -> None:
    """Run what is missing, then write the page."""
    given = parser(__doc__, out=Path("docs/results/svml"), quick="no other than without it")
    with threadpool_limits(1):
        carry_out(Experiment("figures", Figure, cases, measure, page, progress, good), parsed(given))


def cases(_: Any) -> list[int]:
    """The figures that are measured."""
    return [2, 4]


def measure(missing: list[int], _: list[Figure], options: Any) -> Iterator[Figure]:
    """The missing ones."""
    for figure in missing:
        yield Figure(figure, course(options.data) if figure == 2 else plane(options.data, options.out))


def good(run: Figure, options: Any) -> bool:
    """Figure 4 is drawn as it is measured: without the picture it is measured again."""
    return run.figure != 4 or (options.out / PICTURES[4]).exists()


def course(data: Path) -> dict[str, Any]:
    """Means over the splits after each step of the search: loss, and errors in per cent.

    The search goes on where it would end. The result also has the steps at which it has the fewest errors on the
    hold-out, and at which it would end.
    """
    X, y = rows_of(data, SET)
    courses = [searched(*divided(X, y, split), split) for split in range(SPLITS)]
    stops = [kept_and_last(each["hold-out"], svm_metric.PATIENCE) for each in courses]
    means = {name: np.mean([each[name] for each in courses], axis=0).round(4).tolist() for name in courses[0]}
    return means | {"kept": [kept for kept, _ in stops], "last": [last for _, last in stops]}


def searched(training: tuple[Any, Any], test: tuple[Any, Any], split: int) -> dict[str, list[float]]:
    """Loss and errors in per cent after each step of the search of a split, STEPS in all; the last ones may repeat."""
    X, y = training
    courses: dict[str, list[float]] = {name: [] for name in ("loss", *PARTS)}
    parts = svm_metric.split(y, np.random.default_rng(split))
    assert parts is not None, "both classes have rows enough"
    train, validation, check = (svm_metric.ProblemRows(X[i], y[i], np.ones(len(i))) for i in parts)
    of_test = svm_metric.ProblemRows(*test, np.ones(len(test[1])))

    class Watched(svm_metric.Objective):
        """`learn` asks it for the errors once a step."""

        def error(self, point: Any, hold_out: svm_metric.ProblemRows) -> float:
            courses["loss"].append(float(self(point)[0]))
            for name, part in zip(PARTS, (self.train, self.validation, hold_out, of_test), strict=True):
                courses[name].append(100.0 * super().error(point, part))
            return courses["hold-out"][-1]

    with patch.multiple(svm_metric, Objective=Watched, PATIENCE=STEPS + 1, STEPS=STEPS):
        L0 = svm_metric.first_map("full", 0, X, X.shape[1])
        svm_metric.learn(train, validation, check, L0, SVML().pull)
    return {name: values + values[-1:] * (STEPS + 1 - len(values)) for name, values in courses.items()}


def plane(data: Path, out: Path) -> dict[str, Any]:
    """Train a metric of rank 2 and draw its plane; test error in per cent."""
    with text_files(data, SETS[SET].file) as files:
        report, _ = lsvm("train", ["-m", "svml", "--form", "rank:2", "-j", "1", str(files.train), str(files.model)])
        score, _ = lsvm("predict", [str(files.test), str(files.model), str(files.predictions)])
        arguments = ["--force", "--data", str(files.train), str(files.model), str(out / PICTURES[4])]
        subprocess.run([sys.executable, "-m", "localsvm", "plot", *arguments], check=True)
    summary = report["summary"]
    sizes = {name: summary[name] for name in ("rows", "features", "support_vectors")}
    return sizes | {"error": 100.0 * (1.0 - score["accuracy"]), "test_rows": score["total"]}


def kept_and_last(held_out: list[float], patience: int) -> tuple[int, int]:
    """The step whose map is kept, and the one at which the search ends."""
    kept = 0
    for step, errors in enumerate(held_out):
        kept = step if errors < held_out[kept] else kept
        if step - kept >= patience:
            return kept, step
    return kept, len(held_out) - 1


def page(runs: list[Figure], options: Any) -> str:
    """The text in Markdown; the pictures of what was measured are drawn."""
    by_figure = {run.figure: run.values for run in runs}
    smooth().savefig(options.out / PICTURES[1], dpi=150)
    text = ABOUT
    if 2 in by_figure:
        draw_course(by_figure[2]).savefig(options.out / PICTURES[2], dpi=150)
        text += COURSE.format(**{name: float(np.mean(by_figure[2][name])) for name in ("kept", "last")})
    return text + (PLANE.format(**by_figure[4]) if 4 in by_figure else "")


def draw_course(values: dict[str, Any]) -> Any:
    """The loss, and beside it the errors."""
    figure = empty_figure(10.0, 3.8)
    loss, errors = figure.subplots(1, 2)
    loss.plot(values["loss"], color="black")
    loss.set(ylabel="loss", ylim=(0.0, None))
    for part, colour in PARTS.items():
        errors.plot(values[part], color=colour, label=part)
    errors.set(ylabel="errors, %", ylim=(0.0, None))
    for panel in (loss, errors):
        panel.axvline(np.mean(values["kept"]), color=GREY, linestyle="--", label="kept")
        panel.axvline(np.mean(values["last"]), color=GREY, linestyle=":", label="end of the search")
        panel.set_xlabel("step of L-BFGS")
    legend_below(figure, legend_entries([errors]), columns=6)
    return figure


def smooth() -> Any:
    """The count of errors, and smooth ones."""
    figure = empty_figure(6.0, 3.6)
    panel, z = figure.subplots(), np.linspace(-2.0, 2.0, 401)
    panel.step([-2.0, 0.0, 2.0], [1.0, 1.0, 0.0], color="black", label="errors counted")
    for a, colour in STEEP.items():
        panel.plot(z, 1.0 / (1.0 + np.exp(a * z)), color=colour, label=f"a = {a:g}")
    panel.set(xlabel="y f(x)", ylabel="s(y f(x))")
    panel.legend()
    return figure


def progress(run: Figure) -> str:
    """The line that the terminal shows of a figure."""
    return f"Figure {run.figure}"


if __name__ == "__main__":
    main()
