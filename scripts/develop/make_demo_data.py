#!/usr/bin/env python3
"""Write the quick start's data set: python scripts/develop/make_demo_data.py [FOLDER], by default data/.

4 000 training and 4 000 test rows of localsvm.data.synthetic.banana, rounded to four digits. The same
files every time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from localsvm.data.synthetic import banana, banana_bayes_error
from localsvm.data.writers.libsvm import write

ROWS = 4000
SEED = 1


def main(folder: Path) -> None:
    """Write both files into the folder."""
    rng = np.random.default_rng(SEED)
    for part in ("train", "test"):
        X, y = banana(ROWS, rng)
        write(folder / f"banana.{part}.libsvm", X, y, precision=4)
    print(
        f"{folder}: banana.train.libsvm, banana.test.libsvm; no rule errs in less than "
        f"{100 * banana_bayes_error():.2f} % of cases",
        file=sys.stderr,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[2] / "data")
    main(parser.parse_args().folder)
