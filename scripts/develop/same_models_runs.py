"""The runs that `same_models.py` compares: data sets made from fixed seeds, and the commands that are run on them.

Not a command. Of localsvm only the records of methods are used, so that the same file goes with every version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.methods import methods

Values = NDArray[np.float64]
Labelled = tuple[Values, Values]
TEST_ROWS = 120
COLUMNS = 1200  # of sparse rows; up to 1 024, small sets are kept dense
FEW_COLUMNS = 200

PARTITIONS = ("none", "chunks", "voronoi", "kmeans")
# every method of this checkout with its tiny grid, svm with its default one; a version that runs them may have fewer
METHODS = {name: tuple(getattr(item, "tiny", "").split()) for name, item in methods().items()} | {"svm": ()}


class Set(NamedTuple):
    """A data set: how it is made, its rows, the rows of a cell, and whether it has more than two classes."""

    make: Callable[[np.random.Generator, int], Labelled]
    rows: int
    cell: int = 200
    many: bool = False


class Run(NamedTuple):
    """One model: a command on a set. cells: the options of a partition made before, which training is given.

    twin: the run that has to give the same in the same version.
    """

    name: str
    data: str
    arguments: tuple[str, ...]
    command: str = "train"
    cells: tuple[str, ...] = ()
    twin: str = ""
    quick: bool = False


# --- data sets: X (n, d) and y (n,) for a generator and n


def crescents(rng: np.random.Generator, n: int) -> Labelled:
    """Two half circles in each other, with little overlap: few support vectors."""
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    angle = np.pi * rng.random(n)
    X = np.stack([np.cos(angle) * y + 0.5 * (y < 0), np.sin(angle) * y + 0.3 * (y < 0)], axis=1)
    return X + 0.12 * rng.standard_normal((n, 2)), y


def wavy(rng: np.random.Generator, n: int) -> Labelled:
    """Noisy labels in 12 dimensions, of which 4 count."""
    X = rng.standard_normal((n, 12))
    score = 2 * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3]
    return X * np.geomspace(0.1, 50, 12), np.where(score + 0.5 * rng.standard_normal(n) > 0, 2.0, 1.0)


def blobs(rng: np.random.Generator, n: int, labels: tuple[float, ...] = (1, 2, 3, 4), features: int = 5) -> Labelled:
    """Two clusters a class."""
    means = 1.6 * rng.standard_normal((2 * len(labels), features))
    which = rng.integers(len(means), size=n)
    return means[which] + rng.standard_normal((n, features)), np.asarray(labels, float)[which % len(labels)]


def five(rng: np.random.Generator, n: int) -> Labelled:
    """Five classes with labels that are no counts."""
    return blobs(rng, n, (-3, 0.5, 2, 7, 10), 3)


def sparse(rng: np.random.Generator, n: int, classes: int = 2, columns: int = COLUMNS) -> Labelled:
    """Rows like texts: some words are in every fourth one, most are rare, and a few rows are empty."""
    X = np.where(rng.random((n, columns)) < 4 / (16 + np.arange(columns)), rng.random((n, columns)) + 0.1, 0.0)
    X[rng.random(n) < 0.01] = 0.0
    scores = X @ rng.standard_normal((columns, classes)) + 0.3 * rng.standard_normal((n, classes))
    return X, scores.argmax(axis=1).astype(float)


def papers(rng: np.random.Generator, n: int) -> Labelled:
    """Three classes of sparse rows."""
    return sparse(rng, n, 3)


def topics(rng: np.random.Generator, n: int) -> Labelled:
    """Three classes of rows that are kept dense, but for linear methods."""
    return sparse(rng, n, 3, FEW_COLUMNS)


def duplicates(rng: np.random.Generator, n: int) -> Labelled:
    """Values on a coarse grid, one row very often, and labels that contradict each other."""
    X = np.round(rng.standard_normal((n, 2)) * 2) / 2
    X[rng.random(n) < 0.3] = 1.5
    return X, np.where(X[:, 0] * X[:, 1] + 0.7 * rng.standard_normal(n) > 0.3, 1.0, -1.0)


def imbalanced(rng: np.random.Generator, n: int) -> Labelled:
    """One row in twenty is of the second class; of seven columns, three are the same in all rows, zero or not."""
    y = np.where(rng.random(n) < 0.05, 1.0, 0.0)
    X = rng.standard_normal((n, 7)) + 1.5 * y[:, None]
    X[:, [0, 3, 6]] = 7.0, 0.0, -0.25
    return X, y


SETS = {
    "small": Set(crescents, 60, 20),
    "crescents": Set(crescents, 3200),
    "wavy": Set(wavy, 900),
    "blobs": Set(blobs, 800, many=True),
    "five": Set(five, 300, 60, many=True),
    "sparse": Set(sparse, 700),
    "papers": Set(papers, 450, 150, many=True),
    "topics": Set(topics, 400, 150, many=True),
    "duplicates": Set(duplicates, 700),
    "imbalanced": Set(imbalanced, 1000),
}


def text(X: Values, y: Values) -> str:
    """LIBSVM text, six digits a value."""
    lines = []
    for row, label in zip(X, y, strict=True):
        pairs = " ".join(f"{j + 1}:{row[j]:.6g}" for j in np.flatnonzero(row))
        lines.append(f"{label:g} {pairs}".rstrip())
    return "\n".join(lines) + "\n"


def texts(name: str) -> tuple[str, str]:
    """The training and the test part of a set."""
    chosen = SETS[name]
    rng = np.random.default_rng(list(name.encode()))
    X, y = chosen.make(rng, chosen.rows + TEST_ROWS)
    return text(X[: chosen.rows], y[: chosen.rows]), text(X[chosen.rows :], y[chosen.rows :])


def files(folder: Path, name: str) -> tuple[Path, Path]:
    """Paths of the training and the test part of a set."""
    return folder / f"{name}.train.libsvm", folder / f"{name}.test.libsvm"


def write_sets(folder: Path) -> dict[str, str]:
    """Write all sets; the SHA-256 of each."""
    folder.mkdir(parents=True, exist_ok=True)
    digests = {}
    for name in SETS:
        parts = texts(name)
        for path, part in zip(files(folder, name), parts, strict=True):
            path.write_text(part)
        digests[name] = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return digests


# --- runs


def products() -> Iterator[Run]:
    """Every method with every partition and scheme on every set."""
    for data, chosen in SETS.items():
        for method, options in METHODS.items():
            for partition in PARTITIONS:
                for scheme in ("ova", "ava") if chosen.many else ("",):
                    name = " ".join(filter(None, (method, data, partition, scheme)))
                    cells = ("-P", partition, "-c", str(chosen.cell))
                    multiclass = ("--multiclass", scheme) if scheme else ()
                    quick = data in ("small", "papers") and partition in ("none", "voronoi") and scheme != "ava"
                    yield Run(name, data, ("-m", method, *options, *cells, *multiclass), quick=quick)


# set, then the options; cells are those of the set unless -P says otherwise
KERNELS = """
crescents   -P voronoi --offset
crescents   -P voronoi --grid full
crescents   -P none -g 1 -C 10
crescents   -P none -g 1 -C 10 -e 1e-5
crescents   -P voronoi -v 2
crescents   -P voronoi --seed 7
crescents   -P kmeans -t laplacian
crescents   -P voronoi -g 0.5:8:3 -C 1,1e5
small       -P none --grid full --select refit
small       -P none -t polynomial --degree 2 --coef0 1
small       -P none -v 10
small       -P chunks --select refit
wavy        -P voronoi --scale none
wavy        -P none --scale zscore -t linear
wavy        -P kmeans --scale minmax
wavy        -P voronoi --scale row
wavy        -P none -t laplacian -g 0.1,1 -C 1,10
wavy        -P voronoi -t polynomial --offset
wavy        -P voronoi -t manhattan
sparse      -P kmeans -t manhattan --metric none
blobs       -P voronoi --select vote
blobs       -P none --multiclass ava --select vote -g 0.1,1 -C 1,10
blobs       -P kmeans -t linear
blobs       -P voronoi -t laplacian --multiclass ava
five        -P voronoi --multiclass ava --offset -w 7 3
five        -P none --grid full
five        -P chunks -w 2 0.5 -w -3 4
sparse      -P none -t linear -C 0.1,1,10
sparse      -P voronoi -t laplacian
sparse      -P kmeans -t polynomial --offset
sparse      -P voronoi --scale row
sparse      -P none --scale minmax -g 0.1 -C 1
papers      -P none --offset --select vote
topics      -P voronoi --multiclass ava --scale none
duplicates  -P voronoi --offset -w 1 3
duplicates  -P none --select refit --grid full -g 0.1,1 -C 1,10
imbalanced  -P voronoi -w 1 10
imbalanced  -P none --offset -w 1 19 -g 0.1,1 -C 1,10
imbalanced  -P none --scale zscore -g 0.1,1 -C 1,10
imbalanced  -P voronoi --scale minmax --offset
small       -m rbf
small       -m rbf --no-offset --select vote
five        -m rbf --multiclass ava --grid full -g 0.1,1 -C 1,10
papers      -m rbf -t linear -C 0.1,1
"""
LINEAR = """
wavy        -m linear -s sdca -C 1
wavy        -m linear -s primal
wavy        -m linear -s sgd --passes 5
wavy        -m linear --loss squared-hinge
sparse      -m linear --loss squared-hinge -s sag -C 0.01,0.1
wavy        -m linear --loss squared-hinge -s sdca --mean-loss
wavy        -m linear --mean-loss -P voronoi
wavy        -m linear --select vote --grid full
blobs       -m linear -w 2 5 --multiclass ava
sparse      -m linear -s sdca -e 1e-6
sparse      -m linear -s primal -C 0.1,1
sparse      -m linear -s sgd --passes 5
sparse      -m linear --loss squared-hinge -s primal
sparse      -m linear --loss squared-hinge -s sdca
wavy        -m linear --stream -s sgd --passes 5
five        -m linear --stream -s sgd --multiclass ava --passes 3
sparse      -m linear --stream -s sgd --passes 5 --scale row
five        -m linear -s sgd -w 7 3
crescents   -m kmeans-svm -K 2,4,8
crescents   -m kmeans-svm --loss squared-hinge -s primal
blobs       -m kmeans-svm -s sgd --mean-loss -C 1,10
topics      -m kmeans-svm -K 2,4 -s sdca
papers      -m kmeans-svm --mean-loss --loss squared-hinge -C 1,10
papers      -m linear --multiclass ava --loss squared-hinge -w 1 3
blobs       -m kmeans-svm --stream -s sgd --passes 3 -C 0.1,1
crescents   -m csvm -K 2,4,8 --lambda 1,10,100 -C 0.1,1
blobs       -m csvm -K 1 --lambda 5
wavy        -m csvm --loss squared-hinge --lambda 1,50 -C 0.01,1
wavy        -m csvm -s sgd --lambda 10 -C 1
topics      -m csvm -K 4 --lambda 1,20 -s primal -C 0.1,1
sparse      -m csvm -K 2 --lambda 5 -C 1
papers      -m csvm --stream -s sgd -K 3 --lambda 10 --passes 3 -C 0.1,1
crescents   -m llsvm --coding exponential -C 0.1,1
crescents   -m llsvm --coding linear -K 10 --neighbours 3 -C 1
blobs       -m llsvm --coding linear --neighbours 2 -C 1
wavy        -m llsvm --neighbours 1 --loss squared-hinge -C 0.1,1
sparse      -m llsvm --coding exponential -K 4,6 -C 0.1,1
sparse      -m llsvm --coding linear -C 1
papers      -m llsvm -s sgd --passes 5 -C 1
crescents   -m l3 --landmarks pca
crescents   -m l3 -L 4,10 --projection rbf -g 0.5,2 -C 1,10
blobs       -m l3 --projection rbf -L 8 -g 0.1 --landmarks pca
wavy        -m l3 -K 2,4,8 -L 5 --loss squared-hinge -C 0.01,0.1
wavy        -m l3 -s sgd --mean-loss -C 1
sparse      -m l3 --landmarks pca -L 10 -C 0.01,1
sparse      -m l3 --projection rbf -L 20 -g 0.1 -C 1,10
papers      -m l3 --stream -s sgd -L 10 -K 2 --passes 3 -C 0.01,1
wavy        -m l3-kernel -t linear -C 0.1,1
wavy        -m l3-kernel -t laplacian -L 6 -C 1
five        -m l3-kernel -t polynomial --no-offset -C 0.1,1
five        -m l3-kernel --projection rbf --projection-gamma 0.5 -K 2 -g 1 -C 1,10
sparse      -m l3-kernel --landmarks pca -L 8 -g 0.5 -C 1,10
small       -m l3-kernel --select vote
small       -m ml3 --models 3 -s primal
small       -m ml3 --models 1,2 -s primal -C 0.1,1 --select vote
five        -m ml3 --models 2 -s primal --multiclass ava
five        -m ml3 --norm 1 -s sgd -C 0.1,1
blobs       -m ml3 --norm 2 --models 1,4 -s sgd
blobs       -m ml3 --mean-loss -s sgd -C 1,100 -w 2 4
topics      -m ml3 --models 2 -s primal
sparse      -m ml3 -s sgd --select vote -C 0.1,1
"""
OTHERS = """
partition crescents   -P voronoi
partition crescents   -P kmeans --seed 3
partition wavy        -P chunks
partition sparse      -P voronoi --scale row
partition papers      -P kmeans
partition duplicates  -P voronoi
cv        small       -P none -v 3 --offset
cv        blobs       -P voronoi -g 0.1,1 -C 1,10
cv        sparse      -m linear
cv        five        -m csvm -K 2,3 --lambda 1,10 -C 0.1,1
cv        five        -m ml3 -s sgd --models 1,2 -C 0.1,1
"""
TWINS = """
crescents   -P none
crescents   -P voronoi
blobs       -P none --multiclass ava -g 0.1,1 -C 1,10
sparse      -P none -g 0.1 -C 1
wavy        -m linear
sparse      -m linear -s primal -C 0.1,1
crescents   -m csvm -K 4 --lambda 1,10 -C 1
five        -m linear --stream -s sgd --passes 3
wavy        -m l3-kernel -L 4 -g 0.5,2 -C 1
blobs       -m ml3 -s sgd --models 2 -C 0.1,1
"""


def lines_of(table: str) -> list[list[str]]:
    """The words of each line."""
    return [line.split() for line in table.splitlines() if line]


def with_cells(data: str, options: list[str]) -> tuple[str, ...]:
    """The options, and the size of the set's cells where there is a partition."""
    return (*options, "-c", str(SETS[data].cell)) if "-P" in options else tuple(options)


def variants() -> Iterator[Run]:
    """Options one by one, other commands, partitions from files, and several jobs."""
    for data, *options in lines_of(KERNELS + LINEAR):
        yield Run(
            " ".join([data, *options]), data, with_cells(data, options), quick=data in ("small", "five", "sparse")
        )
    for command, data, *options in lines_of(OTHERS):
        yield Run(" ".join([command, data, *options]), data, with_cells(data, options), command, quick=True)
    for data, partition in (("crescents", "voronoi"), ("papers", "kmeans")):
        cells = ("-P", partition, "-c", str(SETS[data].cell))
        yield Run(f"{data} --partition-file {partition}", data, (), cells=cells, quick=data == "papers")
    for data, *options in lines_of(TWINS):
        arguments, name = with_cells(data, options), " ".join([data, *options])
        quick = data in ("five", "sparse")
        yield Run(f"{name} -j 1", data, arguments, quick=quick)
        yield Run(f"{name} -j 2", data, (*arguments, "-j", "2"), twin=f"{name} -j 1", quick=quick)


def runs(quick: bool = False, only: str = "") -> list[Run]:
    """All runs, or the quick ones, whose name has the text in it; with each comes its twin."""
    every = [run for run in (*products(), *variants()) if run.quick or not quick]
    chosen = [run for run in every if only in run.name]
    names = {run.name for run in chosen} | {run.twin for run in chosen}
    return [run for run in every if run.name in names]
