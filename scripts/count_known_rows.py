"""How many test rows have the very values of a training row, and how often that row's label is theirs.

    python scripts/count_known_rows.py DATA [--sets w8a,cod-rna]

DATA is a folder with NAME.train.libsvm.xz and NAME.test.libsvm.xz. A Markdown table goes to stdout: the share of test
rows that are known, in per cent, and the error of a memory on them, which answers with the most frequent label of the
training rows that are equal. Where that share is large, a set rewards what remembers rows.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from pathlib import Path

from harness.datasets import examples
from harness.library import Dataset
from scipy import sparse

SETS = (
    "svmguide1,page-blocks,satimage,pendigits,magic,higgs11k,susy30k,cod-rna,letter,ijcnn1,usps,a9a,w8a,skin_nonskin,"
    "covtype,mnist"
)


def main() -> None:
    """Print the table, a row a set."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("data", type=Path)
    given.add_argument("--sets", default=SETS)
    options = given.parse_args()
    print("| set | known test rows, % | error of a memory on them, % |\n|---|---|---|")
    for name in options.sets.split(","):
        known, wrong, rows = remembered(*(examples(options.data, name, part) for part in ("train", "test")))
        print(f"| {name} | {100 * known / rows:.1f} | {f'{100 * wrong / known:.2f}' if known else '-'} |", flush=True)


def remembered(train: Dataset, test: Dataset) -> tuple[int, int, int]:
    """How many test rows are known, how many of these a memory gets wrong, and how many there are."""
    labels: defaultdict[bytes, Counter[float]] = defaultdict(Counter)
    for key, label in zip(keys(train), train.y.tolist(), strict=True):
        labels[key][label] += 1
    found = [(labels[key].most_common(1)[0][0], y) for key, y in zip(keys(test), test.y, strict=True) if key in labels]
    return len(found), sum(most != y for most, y in found), len(test.y)


def keys(data: Dataset) -> list[bytes]:
    """The entries of each row that are not 0, as bytes."""
    X = sparse.csr_array(data.X)
    parts = zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)
    return [X.indices[first:last].tobytes() + X.data[first:last].tobytes() for first, last in parts]


if __name__ == "__main__":
    main()
