"""The page and the pictures of reproduce/vp_sizes.py; not a command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import LogLocator, NullLocator

from harness.machine import cores_of_processors
from harness.pictures import (
    BLUE,
    GREEN,
    GREY,
    GRID,
    ORANGE,
    PURPLE,
    RED,
    empty_figure,
    legend_below,
    legend_entries,
    tick_texts,
)
from harness.tables import table, thousands
from localsvm.data.synthetic import higgs_like_bayes_error

if TYPE_CHECKING:
    from vp_sizes import Fit

COLOURS = (RED, ORANGE, GREEN, BLUE, PURPLE, GREY)
STYLES = {"voronoi": ("o", "-"), "chunks": ("s", "--")}
TITLES = {"voronoi": "cells", "chunks": "chunks"}


@dataclass(frozen=True)
class Paper:
    """Figures of a set in the paper's Tables 1, 5 and 6; the last two by cell size, 2 000, 5 000, 10 000, 15 000."""

    name: str
    rows: int
    features: int
    minutes: tuple[int, ...]
    nanoseconds: tuple[int, ...]  # per (rows x cell size x features)


PAPER_CELLS = (2000, 5000, 10000, 15000)
PAPER = {
    "covtype": Paper("covtype", 464_429, 54, (9, 18, 39, 54), (10, 9, 9, 9)),
    "skin_nonskin": Paper("skin", 196_045, 3, (2, 6, 10, 16), (116, 117, 106, 111)),
    "cod-rna": Paper("cod-rna", 231_805, 9, (4, 9, 16, 25), (52, 51, 45, 48)),
    "higgs-like": Paper("higgs", 9_899_999, 28, (308, 679, 1358, 1992), (33, 29, 29, 29)),
}
ABOUT = """\
# Error and training time against training rows

Written by `make reproduce-vp DATA=...` (`scripts/reproduce/vp_sizes.py`), after section 5 of the paper on spatial
decompositions (Thomann, Blaschzyk, Meister, Steinwart 2017): Voronoi cells and random chunks of at most 2 000, 5 000,
10 000 and 15 000 rows, each with a 10 x 10 grid (adaptive search), 5 folds, fold models voting, std scaling; one seed.
Seven training sizes, each half of the next up to the whole set (a choice: the paper's six subsamples are not known
here); a smaller one is the first rows of one random order. Where all rows fit into one cell nothing is divided: the
black line.
Errors are in per cent on the whole test file. Times are of whole commands, reading and writing included, on
{cores}, in processor seconds unless said. A command that took longer than its limit was stopped
and is reported as "over".

covtype is class 2 against the rest. cod-rna is the part of the paper's set that could be had, a fifth of its rows.
higgs-like stands in for HIGGS: generated, 28 features, Bayes error {bayes:.2f} %, 100 000 test rows.

![Test error against training rows](sizes-error.png)

![Training time against training rows](sizes-time.png)
"""
AGAINST_PAPER = """
## Beside the paper's training times

As its Tables 5 and 6: Voronoi cells, here at the largest size run. The paper's times are wall-clock minutes of
liquidSVM on two Xeon E5-2640 (12 cores), threads for the kernels only; its nanoseconds are per (rows x cell size x
features), ours per (sum of squared cell sizes x features), which is stricter: cells are not quite full. The errors are
ours; the paper shows its own as curves only.
"""


def page(runs: list[Fit], options: Any) -> str:
    """The Markdown; draws sizes-error.png and sizes-time.png."""
    names = [name for name in PAPER if any(run.name == name for run in runs)]
    bayes = 100 * higgs_like_bayes_error()
    floors, out = {"higgs-like": bayes}, options.out
    picture(runs, names, lambda run: run.error, "test error, %", floors, out / "sizes-error.png")
    picture(runs, names, lambda run: run.train_cpu, "training time, processor s", {}, out / "sizes-time.png")
    introduction = ABOUT.format(cores=cores_of_processors(run.machine for run in runs), bayes=bayes)
    lines = [introduction, AGAINST_PAPER, *against_paper(runs)]
    for name in names:
        lines += ["", f"## {name}", "", *every_run([run for run in runs if run.name == name])]
    return "\n".join(lines)


def picture(
    runs: list[Fit],
    names: list[str],
    figure_of: Callable[[Fit], float | None],
    label: str,
    floors: dict[str, float],
    path: Path,
) -> None:
    """A panel for each set, a curve for each partition and cell size, both axes logarithmic."""
    figure = empty_figure(10, 4.2 * ((len(names) + 1) // 2) + 0.8)
    panels = figure.subplots((len(names) + 1) // 2, 2, squeeze=False).ravel()
    cells = sorted({run.cell_size for run in runs if run.cell_size})
    for panel, name in zip(panels, names, strict=False):
        here = {run.key: figure_of(run) for run in runs if run.name == name}
        curves(panel, {(p.rows, p.partition, p.cell_size): v for p, v in here.items() if v}, cells)
        if name in floors:
            panel.axhline(floors[name], color="0.5", linestyle=":", label=f"Bayes error, {floors[name]:.2f} %")
        panel.set(xscale="log", yscale="log", title=name, xlabel="training rows", ylabel=label)
        tidy(panel, sorted({plan.rows for plan in here}))
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    legend(figure, panels)
    figure.savefig(path, dpi=120)


def legend(figure: Any, panels: Any) -> None:
    """One for all panels: cells above chunks of the same size, what else there is at the end."""
    known = legend_entries(panels)
    pairs = [text for text in known if "," in text and text.startswith(tuple(TITLES.values()))]
    texts = sorted(pairs, key=lambda text: int(text.split(", ")[1].replace(" ", "")))
    texts += [text for text in known if text not in pairs]
    columns = min(5, (len(texts) + 1) // 2)
    legend_below(figure, {text: known[text] for text in texts}, columns, title="at most so many rows")


def curves(panel: Any, values: dict[tuple[int, str, int], float], cells: list[int]) -> None:
    """The curves of one set; each starts at the largest size that was one cell."""
    whole = sorted((rows, value) for (rows, partition, _), value in values.items() if partition == "none")
    for colour, size in zip(COLOURS, cells, strict=False):
        for partition, (marker, style) in STYLES.items():
            curve = sorted((r, value) for (r, p, c), value in values.items() if (p, c) == (partition, size))
            if curve:
                start = [point for point in whole if point[0] <= size][-1:]
                text = f"{TITLES[partition]}, {thousands(size)}"
                panel.plot(*zip(*start, *curve, strict=True), style, marker=marker, ms=4, color=colour, label=text)
    if whole:
        panel.plot(*zip(*whole, strict=True), "D-", ms=4, color="black", label="one cell of all rows")


def tidy(panel: Any, sizes: list[int]) -> None:
    """Ticks that can be read: the training sizes; plain numbers, more of them where the other axis spans little."""
    low, high = panel.get_ylim()
    wide = (1, 1.2, 1.5, 1.7, 2, 2.3, 2.6, 3, 3.5, 4, 5, 6, 7, 8)
    marks = (1, 2, 5) if high / low > 4 else wide if high / low > 1.6 else np.arange(1, 10, 0.2)
    panel.yaxis.set_major_locator(LogLocator(subs=marks))
    panel.set_xticks(sizes)
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_minor_locator(NullLocator())
        tick_texts(axis, plain)
    panel.tick_params(axis="x", labelrotation=30)
    panel.grid(color=GRID)


def plain(value: float) -> str:
    """0.05, 2.5, 25.5, 20 000."""
    return thousands(round(value)) if value >= 1000 else f"{value:.3g}"


def against_paper(runs: list[Fit]) -> list[str]:
    """A row for each set and cell size, at the largest training size run."""
    head = ("set", "rows: paper, ours", "cell size", "error %", "paper, min", "ours, min: wall, processor", "paper, ns",
            "ours, ns: wall, processor")  # fmt: skip
    rows = []
    for name, paper in PAPER.items():
        largest = max((run.rows for run in runs if run.name == name), default=0)
        for place, cell in enumerate(PAPER_CELLS):
            for run in runs:
                if (run.name, run.rows, run.partition, run.cell_size) == (name, largest, "voronoi", cell):
                    rows.append(paper_row(run, paper, place))
    return table(head, rows)


def paper_row(run: Fit, paper: Paper, place: int) -> list[object]:
    """One row of it."""
    sizes = f"{thousands(paper.rows)}, {thousands(run.rows)}"
    ours, rate = (run.problem or "", "") if run.train_wall is None else (minutes(run), nanoseconds(run))
    return [
        run.name, sizes, thousands(run.cell_size), errors(run), paper.minutes[place], ours, paper.nanoseconds[place],
        rate,
    ]  # fmt: skip


def minutes(run: Fit) -> str:
    """Wall-clock and processor minutes."""
    return f"{run.train_wall / 60:.2f}, {run.train_cpu / 60:.2f}"


def nanoseconds(run: Fit) -> str:
    """Wall-clock and processor nanoseconds of training per (sum of squared cell sizes x features)."""
    unit = run.squares * run.features / 1e9
    return f"{run.train_wall / unit:.2f}, {run.train_cpu / unit:.2f}"


def errors(run: Fit) -> str:
    """The error or why there is none."""
    return run.problem if run.error is None else f"{run.error:.3f}"


def every_run(runs: list[Fit]) -> list[str]:
    """All runs of a set: a row for each training size, a column for each partition and cell size."""
    order = ("none", "voronoi", "chunks")
    columns = sorted({(run.partition, run.cell_size) for run in runs}, key=lambda c: (order.index(c[0]), c[1]))
    heads = ["one cell" if p == "none" else f"{TITLES[p]}, {thousands(c)}" for p, c in columns]
    by_column = {(run.rows, run.partition, run.cell_size): run for run in runs}
    rows = [
        [thousands(size), *(entry(by_column.get((size, *column))) for column in columns)]
        for size in sorted({run.rows for run in runs})
    ]
    return ["Error in per cent; training and prediction in processor seconds.", "", *table(("rows", *heads), rows)]


def entry(run: Fit | None) -> str:
    """One run in few words."""
    if run is None:
        return ""
    if run.error is None:
        return run.problem or ""
    return f"{run.error:.3f}; {run.train_cpu:.1f}, {run.predict_cpu:.1f}"
