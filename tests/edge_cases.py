"""Data sets at the edge of what can be trained, and extreme values of options, for test_edges."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy import sparse

from localsvm.data.blocks.dataset import Examples, as_examples
from localsvm.methods import methods

METHODS = tuple(methods())


def _rows() -> tuple[np.random.Generator, np.ndarray, np.ndarray, np.ndarray]:
    """A generator, 24 rows and their labels, and a column that ascends."""
    rng = np.random.default_rng(7)
    Z = rng.normal(size=(24, 2)).astype(np.float32)
    return rng, Z, np.where(np.arange(24) % 2, 1.0, -1.0), np.arange(24, dtype=np.float32)[:, None]


def _few_and_equal() -> dict[str, tuple[object, object]]:
    """Few rows, equal ones, and values at the ends of float32."""
    rng, Z, y, step = _rows()
    few = np.asarray([[0.0, 1.0], [1.0, 0.0]], np.float32)
    return {
        "two rows": (few, [-1, 1]),
        "three rows": (np.vstack([few, [[2, 2]]]), [-1, 1, 1]),
        "a row a class": (np.eye(6), range(6)),
        "many classes of a row": (rng.normal(size=(12, 3)), range(12)),
        "a single row of one class": (Z, np.arange(24) == 3),
        "99 to 1": (rng.normal(size=(100, 2)), np.arange(100) < 99),
        "all rows equal": (np.ones((24, 2)), y),
        "all rows zero but one value": (np.eye(24, 2), y),
        "each row twice": (np.repeat(Z[:12], 2, axis=0), np.repeat(y[:12], 2)),
        "each row with both labels": (np.repeat(Z[:12], 2, axis=0), y),
        "one column": (step, y),
        "one column of two values": (step % 2, y),
        "a constant column": (np.hstack([Z, np.full((24, 1), 5)]), y),
        "constant columns but one": (np.hstack([np.full((24, 4), 1e30), step]), y),
        "equal columns": (np.repeat(step, 5, axis=1), y),
        "a rare value": (np.hstack([Z, np.eye(24, 1)]), y),
        "1e-38": (1e-38 * Z, y),
        "denormal": (1e-44 * np.round(Z * 10), y),
        "1e38": (1e38 * np.sign(Z), y),
        "1e19": (1e19 * Z, y),
        "one huge value": (np.where(np.arange(48).reshape(24, 2) == 7, 3e38, Z), y),
        "columns of all sizes": (Z[:, [0, 1, 0, 1, 0]] * 10.0 ** np.asarray([-30, -10, 0, 10, 30]), y),
    }


def _far_and_wide() -> dict[str, tuple[object, object]]:
    """Rows far from the origin, many columns, odd labels, sparse rows."""
    rng, Z, y, step = _rows()
    return {
        "offset 1e3": (Z + 1e3, y),
        "offset 1e6": (Z + 1e6, y),
        "offset 1e8": (Z + 1e8, y),
        "offset -1e30": (Z - 1e30, y),
        "time stamps": (1.7e9 + 60 * step[:12], np.arange(12) < 6),
        "outlier": (np.vstack([Z[:-1], [[1e6, -1e6]]]), y),
        "integers": (rng.integers(0, 3, size=(24, 4)), y),
        "separable by far": (Z + 1e3 * y[:, None], y),
        "on a line": (step * [[1.0, 2.0, 3.0]], np.arange(24) < 12),
        "wide": (rng.normal(size=(12, 300)), y[:12]),
        "labels of fractions": (Z, np.where(y > 0, 0.5, 0.25)),
        "labels close together": (Z, np.where(y > 0, 1.0, np.nextafter(1.0, 2.0))),
        "huge labels": (Z, y * 1e300),
        "negative labels": (Z, -5 - np.arange(24) % 4),
        "four classes": (Z, np.arange(24) % 4),
        "labels of denormals": (Z, np.where(y > 0, 5e-324, 0.0)),
        "sparse, mostly empty": (sparse.csr_array((np.eye(24, 2000) * step).astype(np.float32)), y),
        "sparse, rows of one entry": (sparse.csr_array(np.eye(24, 1500, dtype=np.float32)), y),
        "sparse, equal rows": (sparse.csr_array(np.eye(1, 1500, dtype=np.float32).repeat(24, axis=0)), y),
    }


def sets() -> dict[str, tuple[Examples, np.ndarray]]:
    """Rows and labels, by name."""
    return {
        name: (
            as_examples(X) if sparse.issparse(X) else np.asarray(X, np.float64).astype(np.float32),
            np.asarray(labels, np.float64),
        )
        for name, (X, labels) in (_few_and_equal() | _far_and_wide()).items()
    }


# --- options: what is given, once for each method that has it

HUGE = ("1e-30", "1e-300", "1e30", "1e300")
VALUES: dict[str, tuple[str, ...]] = {
    "-C": (*HUGE, "1e-12", "1e12", "1e-5:1e5:3", "1e-300:1e300:2", "1,1,1", "5e-324", "1.7e308"),
    "-e": ("1e-12", "1e-9", "1e-300", "0.5", "1", "100", "1e300"),
    "-v": ("2", "24", "25", "100"),
    "-c": ("10", "11", "12", "1000000000000"),
    "--seed": ("0", str(2**31), str(2**63), str(2**64), str(2**200)),
    "--scale": ("none", "std", "zscore", "minmax", "row"),
    "-P": ("none", "chunks", "voronoi", "kmeans"),
    "--grid": ("full", "adaptive"),
    "--select": ("vote", "refit"),
    "--multiclass": ("ova", "ava"),
    "--score": ("accuracy", "tpr-tnr"),
}
OWN: dict[tuple[str, ...], dict[str, tuple[str, ...]]] = {
    ("svm", "rbf", "lasvm", "l3-kernel"): {
        "-g": (*HUGE, "1e-45", "1e38", "1e39", "1e-5:1e5:3", "2^-50:2^50:3"),
        "-t": ("gaussian", "laplacian", "manhattan", "polynomial", "linear"),
        "--degree": ("1", "2", "50", "1000", "2147483647"),
        "--coef0": ("-1e30", "1e30", "1e300", "-1"),
    },
    ("svm", "rbf"): {"--loss": ("hinge", "squared-hinge", "squared-error")},
    ("kmeans-svm", "csvm", "llsvm", "l3", "l3-kernel", "mtl", "mlsvm"): {"-K": ("1", "24", "25", "1000", "1,2,30")},
    ("l3", "l3-kernel"): {
        "-L": ("1", "24", "1000", "1,50"),
        "--landmarks": ("random", "pca"),
        "--projection": ("linear", "rbf"),
    },
    ("csvm",): {"--lambda": ("1e-300", "1e-30", "1e30", "1e300", "0.1,10")},
    ("mkl",): {
        "--mkl": ("sequential", "simple"),
        "--bank": ("each", "whole"),
        "--widths": ("1e-100", "1e100", "0.1,10", "0"),
        "--online": ("kernels",),
    },
    ("mllkm",): {
        "--map": ("exponential", "gaussian", "linear", "square", "plain"),
        "--componentwise": ("",),
        "--bank-gammas": ("1e-30", "1e30", "1e-31", "0.1,10", "1e-5:1e5:3"),
        "--anchors": ("rows", "kmeans"),
        "--admit": ("0", "1", "1000000"),
        "--online": ("kernels", "full"),
        "--kept-rows": ("10",),
        "-s": ("auto", "sdca"),
        "--epochs": ("1",),
    },
    ("lasvm",): {"--epochs": ("0", "1", "5", "1000")},
    ("svm-knn",): {"--neighbours": ("1", "24", "1000", "1,5")},
    ("llsvm",): {"--neighbours": ("1", "24", "1000", "1,2"), "--coding": ("inverse", "exponential", "linear")},
    ("ml3",): {"--models": ("1", "40", "1,3"), "--norm": ("1", "1.0001", "2", "100", "1e300"), "--passes": ("1", "50")},
    ("svml",): {
        "-t": ("gaussian", "manhattan", "linear"),
        "--form": ("full", "diag", "sphere", "rank:1", "rank:1000000", "rank:x", "rank:0"),
        "--pull": ("0", "1e-300", "1e30", "1e300", "-1", "inf"),
    },
    ("mtl", "mlsvm"): {
        "--shrinkage": ("1e-12", "1e12", "1e-300", "0.1,1"),
        "--covariance": ("full", "diag"),
        "--rule": ("soft", "hard"),
        "--loss": ("hinge", "squared-hinge"),
        "--mean-loss": ("",),
    },
    ("mtl",): {"--groups": ("1e-300", "0.5", "2", "1e300"), "--coupling": ("0", "1e-300", "1e12", "1e300", "0,1")},
    ("kmeans-svm", "csvm", "llsvm", "mlsvm", "mtl"): {"--start": ("0", "1", "3", "1,2", "1000000000000")},
    ("linear", "kmeans-svm", "csvm", "llsvm", "l3"): {
        "-s": ("auto", "sdca", "primal", "sgd"),
        "--loss": ("hinge", "squared-hinge"),
        "--mean-loss": ("",),
    },
}
WEIGHTS = ("1e-30", "1e-300", "1e30", "1e300", "5e-324")
PAIRS = (
    "-C 1e12 -e 1e-12", "-C 1e-30 --scale none", "-C 1e30 --scale none", "-v 24 -P voronoi -c 10",
    "-v 24 --select vote", "-C 0.1,10 --select vote", "-C 0.1,10 --select refit", "-C 1e-12,1e12 --grid full",
)  # fmt: skip
# what is the same for all methods: each one tries every second value, and the next one the others
SHARED = {"-v", "-c", "--seed", "--scale", "-P", "--grid", "--select", "--multiclass", "--score"}
LONG = {(method, PAIRS[i]) for method in ("csvm", "ml3") for i in (0, -1)}  # seconds, as each problem takes all passes
LACKING = {("svml", "-C"), ("svml", "-e")}  # options that the method does not have
BASE = {"-C": "1", "-v": "2"}
BASE_OWN = {
    "svm": {"-g": "0.5"}, "rbf": {"-g": "0.5"}, "lasvm": {"-g": "0.5"},
    "l3-kernel": {"-g": "0.5", "-K": "2"}, "kmeans-svm": {"-K": "2"},
    "csvm": {"-K": "2"}, "llsvm": {"-K": "3"}, "l3": {"-K": "2"}, "ml3": {"--models": "2"},
    "svm-knn": {"--neighbours": "5"}, "mllkm": {"--bank-gammas": "0.1,1"}, "mkl": {"--widths": "0.5,2"},
    "mlsvm": {"-K": "2", "--shrinkage": "0.1"}, "mtl": {"-K": "2", "--shrinkage": "0.1", "--coupling": "10"},
}  # fmt: skip


def options() -> list[list[str]]:
    """The options of each run, of a training set of 24 rows."""
    runs: list[list[str]] = []
    for turn, method in enumerate(METHODS):
        half = slice(turn % 2, None, 2)
        special = {flag: values for names, flags in OWN.items() if method in names for flag, values in flags.items()}
        base = {flag: v for flag, v in (BASE | BASE_OWN.get(method, {})).items() if (method, flag) not in LACKING}
        for flag, values in (VALUES | special).items():
            tried = values[half] if flag in SHARED else values
            runs += [_line(method, base, {flag: value}) for value in tried if (method, flag) not in LACKING]
        runs += [[*_line(method, base, {}), "-w", "1", weight] for weight in WEIGHTS[half]]
        pairs = [pair.split() for pair in PAIRS[half] if (method, pair) not in LONG and (method, "-C") not in LACKING]
        runs += [[*_line(method, base, {}), *pair] for pair in pairs]
    runs += [
        _line("svm", BASE | BASE_OWN["svm"], {"-t": kernel, "-C": cost, "--scale": scale})
        for kernel, cost, scale in product(("laplacian", "polynomial", "linear"), ("1e-30", "1e30"), ("none", "std"))
    ]
    modes = {"--online": ("full", "--kept-rows", ("9", "10", "1000000000000")), "-s": ("sdca", "--epochs", ("0", "1"))}
    for flag, (mode, name, values) in modes.items():
        runs += [_line("mllkm", BASE | BASE_OWN["mllkm"], {flag: mode, name: value}) for value in values]
    sag = {"-s": "sag", "--loss": "squared-hinge"}
    runs += [_line("linear", BASE, sag | {flag: v}) for flag, values in VALUES.items() for v in values if flag == "-C"]
    return runs


def _line(method: str, base: dict[str, str], given: dict[str, str]) -> list[str]:
    words = [word for item in (base | given).items() for word in item if word]
    return ["-m", method, *words]
