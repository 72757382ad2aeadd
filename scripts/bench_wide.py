"""Time and memory of training on files with few values and large indices.

    python scripts/bench_wide.py [FOLDER]        FOLDER: a built checkout, by default this one

Three generated files: 20 rows with an index 100 000 000, the same with the largest index there is, and 20 000 rows of
40 words each, hashed into 2^24 columns. A Markdown table goes to stdout: processor seconds and peak memory of
`lsvm train -j 1` with default options, and of `lsvm predict` on the same rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from harness.memory import Memory

ROOT = Path(__file__).resolve().parent.parent
FILES = {"20 rows, index 10^8": 10**8, "20 rows, index 2^31 - 1": 2**31 - 1, "20 000 rows, hashed into 2^24": None}


def main() -> None:
    """Print the table."""
    tree = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT)
    print("| file | train, s | train, MB | predict, s | predict, MB |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        rows, model = Path(folder) / "rows", Path(folder) / "m.h5"
        for name, index in FILES.items():
            rows.write_text(hashed() if index is None else few(index))
            cells = [
                *measured(tree, "train", "--force", rows, model),
                *measured(tree, "predict", rows, model, os.devnull),
            ]
            print(f"| {name} | {' | '.join(f'{value:.1f}' for value in cells)} |", flush=True)


def few(index: int) -> str:
    """Twenty rows of two classes, each with a value in the first column and one at the index."""
    values = np.random.default_rng(0).normal(0.0, 0.3, 20)
    return "".join(f"{(-1) ** i} 1:{(-1) ** i + v:.3f} {index}:1\n" for i, v in enumerate(values))


def hashed() -> str:
    """Rows of ten rare words and thirty of 20 000 that differ in frequency; a word's sign is a random number's."""
    rng = np.random.default_rng(0)
    weights, words = rng.standard_normal(1 << 24), rng.integers(0, 1 << 24, 20_000)
    lines = []
    for _ in range(20_000):
        frequent = words[(rng.random(30) ** 3 * len(words)).astype(int)]
        columns = np.unique(np.concatenate([rng.integers(0, 1 << 24, 10), frequent]))
        label = 1 if weights[columns].sum() > 0 else -1
        lines.append(f"{label} {' '.join(f'{c + 1}:1' for c in columns)}\n")
    return "".join(lines)


def measured(tree: Path, *arguments: object) -> tuple[float, float]:
    """Processor seconds, and the most memory in MB."""
    command = [sys.executable, "-m", "localsvm", arguments[0], "-q", "-j", "1", *arguments[1:]]
    started = sum(os.times()[2:4])
    words, environment = [str(word) for word in command], os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(words, env=environment, cwd=tree) as process, Memory(process.pid) as memory:
        process.wait()
    if process.returncode:  # out of memory, where it follows the index
        return np.nan, np.nan
    return sum(os.times()[2:4]) - started, memory.peak / 1e6


if __name__ == "__main__":
    main()
