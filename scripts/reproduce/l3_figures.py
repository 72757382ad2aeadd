"""Reruns Figures 1 to 4 of the L3-SVM paper (Zantedeschi, Emonet, Sebban 2017).

    python scripts/reproduce/l3_figures.py DATA [--quick] [--out docs/results/l3] [--figures 1,2,3,4]

1 and 2: decision regions and support vectors on XOR and a Swiss roll (generated); 3: accuracy on four small sets
against landmarks and clusters; 4: accuracy on mnist and the time of choosing landmarks, at random or by PCA. DATA is a
folder with NAME.train.libsvm.xz and NAME.test.libsvm.xz. Finished measurements are kept in OUT/figures.jsonl and not
repeated; OUT/figures.md and the pictures are written from it. --quick, in two minutes: two of the small sets, one
repeat and two numbers of clusters; a part of mnist's rows and three numbers of landmarks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.experiment import Experiment, carry_out
from harness.machine import cores_of_processors
from harness.options import integers, parsed, parser
from reproduce import l3_landmarks as landmarks
from reproduce import l3_regions as regions
from reproduce import l3_small as small
from reproduce.l3_measurement import Key, Measurement

ABOUT = """\
# The figures of the L3-SVM paper

Written by `make reproduce-l3 DATA=...` (`scripts/reproduce/l3_figures.py`), after Zantedeschi, Emonet and Sebban
(L3-SVMs, 2017). The paper shows curves without numbers, so there is nothing to put beside ours but its claims. Times
are of {cores}.
"""
FIGURES = {1: regions, 2: regions, small.FIGURE: small, landmarks.FIGURE: landmarks}


def main() -> None:
    """Run what is missing, then write the page."""
    given = parser(__doc__, out=Path("docs/results/l3"), quick="in two minutes: see above")
    given.add_argument("--figures", type=integers, default=sorted(FIGURES), help="default %(default)s")
    experiment = Experiment("figures", Measurement, cases, measure, page, progress, good)
    carry_out(experiment, parsed(given))


def cases(options: Any) -> list[Key]:
    """All measurements of the figures."""
    return [key for figure in sorted(options.figures) for key in FIGURES[figure].cases(figure, options.quick)]


def measure(missing: list[Key], known: list[Measurement], options: Any) -> Iterator[Measurement]:
    """The missing ones, figure by figure."""
    for figure in dict.fromkeys(figure for figure, *_ in missing):
        yield from FIGURES[figure].measure([key for key in missing if key[0] == figure], known, options)


def good(run: Measurement, options: Any) -> bool:
    """Decision regions are drawn as they are measured: without their picture they are measured again."""
    return FIGURES[run.figure] is not regions or regions.picture_path(run.name, options.out).exists()


def page(runs: list[Measurement], options: Any) -> str:
    """The text in Markdown; the pictures of what was measured are drawn."""
    lines = [ABOUT.format(cores=cores_of_processors(run.machine for run in runs))]
    for part in (regions, small, landmarks):
        lines += part.section([run for run in runs if FIGURES[run.figure] is part], options.out)
    return "\n".join(lines)


def progress(run: Measurement) -> str:
    """The line that the terminal shows of a measurement."""
    return " ".join(map(str, run.key))


if __name__ == "__main__":
    main()
