#!/usr/bin/env python3
"""Write the data sets of the documents: python scripts/develop/make_demo_data.py [FOLDER], by default data/.

4 000 training and 4 000 test rows of localsvm.data.synthetic.banana, rounded to four digits, as LIBSVM text; 2 000 and
2 000 of its flats as CSV. The same files every time.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

import numpy as np

from localsvm.data.synthetic import banana, banana_bayes_error, flats
from localsvm.data.writers.libsvm import write

ROWS, FLATS = 4000, 2000
SEED = 1
COLUMNS = ("size", "floor", "minutes", "district", "rent")


def main(folder: Path) -> None:
    """Write the files into the folder."""
    rng = np.random.default_rng(SEED)
    for part in ("train", "test"):
        X, y = banana(ROWS, rng)
        write(folder / f"banana.{part}.libsvm", X, y, precision=4)
    rng = np.random.default_rng(SEED)
    for part in ("train", "test"):
        rows, rents = flats(FLATS, rng)
        with (folder / f"flats.{part}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows((*row, rent) for row, rent in zip(rows, rents.tolist(), strict=True))
    print(
        f"{folder}: banana.train.libsvm, banana.test.libsvm, flats.train.csv, flats.test.csv; no rule errs in less "
        f"than {100 * banana_bayes_error():.2f} % of bananas",
        file=sys.stderr,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[2] / "data")
    main(parser.parse_args().folder)
