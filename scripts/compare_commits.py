"""A table of two columns that compare_options.py --plain wrote at two commits, run by run.

    PYTHONPATH=../old python scripts/compare_options.py DATA grid=adaptive -j 1 --plain > old.txt
    python scripts/compare_options.py DATA grid=adaptive -j 1 --plain > new.txt
    python scripts/compare_commits.py old.txt new.txt

../old: a working tree of the older commit, built. For each set: mean errors in per cent over the seeds, the mean of the
differences new - old with its standard error, how many seeds got better, worse, and the ratio of training times. The
last row is the mean over the sets. Random parts of one file overlap, so standard errors are somewhat small.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np


def main() -> None:
    """Print the table."""
    old, new = (read(Path(path)) for path in sys.argv[1:3])
    print("| set | rows | seeds | old | new | new - old | better, worse | time |\n|---|---|---|---|---|---|---|---|")
    totals = []
    for name, rows in dict.fromkeys(key[:2] for key in new if key in old):
        a, b = (np.asarray([runs[k] for k in new if k in old and k[:2] == (name, rows)]) for runs in (old, new))
        n, difference = len(a), b[:, 0] - a[:, 0]
        error = difference.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
        counts = f"{(difference < 0).sum()}, {(difference > 0).sum()}"
        totals.append((a[:, 0].mean(), b[:, 0].mean(), error**2, b[:, 1].sum() / a[:, 1].sum()))
        print(f"| {name} | {rows} | {n} | {columns(*totals[-1][:2], error)} | {counts} | {totals[-1][3]:.2f} |")
    before, after, variance, _ = np.mean(totals, axis=0)
    together = columns(before, after, np.sqrt(variance / len(totals)))
    print(f"| all | | | {together} | | {np.exp(np.mean(np.log([t[3] for t in totals]))):.2f} |")


def read(path: Path) -> dict[tuple[str, int, int], tuple[float, float]]:
    """(error, seconds) of each (set, rows, seed)."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {(name, int(rows), int(seed)): (float(e), float(s)) for name, rows, seed, e, s in lines}


def columns(old: float, new: float, error: float) -> str:
    """Both means, and their difference with its standard error."""
    return f"{old:.3f} | {new:.3f} | {new - old:+.3f} ± {error:.3f}"


if __name__ == "__main__":
    main()
