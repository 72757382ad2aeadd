"""Errors with and without labels of copies: a fifth of a training file is held out, its copies are not.

    python scripts/reproduce/copies.py DATA [--draws 3] [--sets cod-rna,magic]

DATA has NAME.train.libsvm.xz. A line a set goes to stdout: the share of the held-out rows that equal training rows, the
errors with `--copies none` and `auto`, in per cent, and those of `auto` on the rows without copies; means of the draws.
"""

from __future__ import annotations

import argparse
import lzma
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.commands import lsvm, pinned

SETS = "cod-rna,magic,letter,skin_nonskin,w8a,a9a,page-blocks,svmguide1"


def measured(lines: list[bytes], draw: int) -> tuple[float, float, float, float]:
    """Share of the held-out rows that get labels of copies; errors of `none`, of `auto`, and of `auto` on others."""
    held = np.random.default_rng(draw).random(len(lines)) < 0.2
    right, copies, total = [], {"right": 0, "total": 0}, int(held.sum())
    with tempfile.TemporaryDirectory() as folder:
        train, test, model, out = (str(Path(folder) / name) for name in ("train", "test", "model.h5", "labels"))
        Path(train).write_bytes(b"".join(line for line, out in zip(lines, held, strict=True) if not out))
        Path(test).write_bytes(b"".join(line for line, out in zip(lines, held, strict=True) if out))
        for asked in ("none", "auto"):
            lsvm("train", ["-j", "1", "--seed", str(draw), "--copies", asked, train, model])
            score, _ = lsvm("predict", ["-j", "1", test, model, out])
            right.append(score["right"])
            copies = score.get("copies", copies)
    errors = [100.0 * (1.0 - each / total) for each in right]
    others = 100.0 * (1.0 - (right[1] - copies["right"]) / (total - copies["total"]))
    return 100.0 * copies["total"] / total, *errors, others


def main() -> None:
    """Print a line for each set."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=3, help="of the rows (default %(default)s)")
    parser.add_argument("--sets", default=SETS, help="default: %(default)s")
    given = parser.parse_args()
    os.environ.update(pinned(1))
    print("set copies none auto others")
    for name in given.sets.split(","):
        with lzma.open(given.data / f"{name}.train.libsvm.xz") as file:
            lines = file.readlines()
        found = np.mean([measured(lines, draw) for draw in range(given.draws)], axis=0)
        print(name, *(f"{number:.2f}" for number in found), flush=True)


if __name__ == "__main__":
    main()
