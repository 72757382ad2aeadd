"""Reruns Figures 1 to 4 of the L3-SVM paper (Zantedeschi, Emonet, Sebban 2017).

    python scripts/reproduce_l3_figures.py DATA [--quick] [--out docs/results/l3] [--figures 1,2,3,4]

1 and 2: decision regions and support vectors on XOR and a Swiss roll (generated); 3: accuracy on four small sets
against landmarks and clusters; 4: accuracy on mnist and the time of choosing landmarks, at random or by PCA. DATA is a
folder with NAME.train.libsvm.xz and NAME.test.libsvm.xz. Finished measurements are kept in OUT/figures.jsonl and not
repeated; OUT/figures.md and the pictures are written from it. --quick, in two minutes: two of the small sets, one
repeat and two numbers of clusters; a part of mnist's rows and three numbers of landmarks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from l3_figures import Run, landmarks, regions, small
from measuring import finished, keep, processor

ABOUT = """\
# The figures of the L3-SVM paper

Written by `make reproduce-l3 DATA=...` (`scripts/reproduce_l3_figures.py`), after Zantedeschi, Emonet and Sebban
(L3-SVMs, 2017). The paper shows curves without numbers, so there is nothing to put beside ours but its claims. Times
are of one core of an {processor}.
"""


def main() -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/results/l3"))
    parser.add_argument("--figures", type=lambda text: sorted(map(int, text.split(","))), default=[1, 2, 3, 4])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    log = options.out / "figures.jsonl"
    runs = finished(log, Run)
    done = {run.key: run for run in runs}
    for figure in options.figures:
        for run in measured(figure, options, done):
            runs.append(run)
            keep(log, run)
            print(*run.key, file=sys.stderr)
    (options.out / "figures.md").write_text(page(runs, options.out))


def measured(figure: int, options: Any, done: dict[Any, Run]) -> Iterator[Run]:
    """What is missing of a figure."""
    if figure in regions.PLANES:
        return regions.measured(figure, done, options.out)
    part = {small.FIGURE: small, landmarks.FIGURE: landmarks}[figure]
    return part.measured(options.data, done, options.quick)


def page(runs: list[Run], out: Path) -> str:
    """The text in Markdown; the pictures of what was measured are drawn."""
    lines = [ABOUT.format(processor=processor()), *regions.section(runs)]
    for part in (small, landmarks):
        lines += part.section([run for run in runs if run.figure == part.FIGURE], out)
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    main()
