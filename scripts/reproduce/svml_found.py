"""The runs of svml by set and method, beside the figures of the paper; not a command."""

from __future__ import annotations

from typing import Any

import numpy as np

Values = np.ndarray[Any, np.dtype[np.float64]]
BASE, LEAST = "Euclidean 5-fold", "Euclidean 1-fold"
OURS, FROZEN, HALF = "SVML", "SVML (L frozen)", "SVML (half of the rows)"
LEARNED_BEFORE = ("NCA", "ITML", "LMNN")
NAMES = ("Haber", "Credit", "ACredit", "Trans", "Diabts", "Mammo", "CMC", "Page", "Gamma")
PAPER: dict[str, dict[str, float]] = {  # Tables 1 and 2, test error in per cent; no NCA on Gamma
    name: dict(zip(NAMES, values, strict=False))
    for name, values in {
        "Euclidean 5-fold": (27.37, 13.12, 14.11, 20.54, 23.46, 18.17, 26.91, 2.56, 12.62),
        "Euclidean 3-fold": (27.40, 13.10, 14.13, 20.58, 23.39, 18.27, 26.77, 2.55, 12.68),
        "Euclidean 1-fold": (27.16, 13.16, 14.36, 21.05, 23.84, 18.43, 27.12, 2.61, 12.70),
        "NCA 5-fold": (26.39, 13.48, 14.10, 22.59, 22.74, 18.17, 26.53, 4.74),
        "NCA 3-fold": (26.47, 13.45, 14.00, 22.67, 22.72, 18.12, 26.60, 4.73),
        "NCA 1-fold": (26.44, 13.74, 14.14, 22.89, 22.84, 17.76, 27.47, 4.73),
        "ITML 5-fold": (26.50, 13.68, 14.71, 22.86, 23.14, 18.20, 27.67, 4.78, 21.50),
        "ITML 3-fold": (26.13, 13.58, 13.88, 22.98, 23.17, 17.98, 27.68, 4.77, 21.50),
        "ITML 1-fold": (26.57, 13.78, 14.15, 23.01, 23.19, 19.14, 28.65, 4.82, 22.63),
        "LMNN 5-fold": (26.70, 13.48, 13.89, 20.81, 22.89, 17.78, 26.68, 2.66, 13.04),
        "LMNN 3-fold": (26.44, 13.30, 13.93, 20.73, 22.86, 17.57, 26.66, 2.81, 12.79),
        "LMNN 1-fold": (26.38, 13.11, 13.97, 21.02, 22.97, 17.84, 26.80, 2.85, 13.04),
        "SVML": (25.99, 12.83, 13.92, 20.89, 23.25, 17.57, 26.34, 3.41, 12.54),
        "SVML-Diag": (28.15, 13.33, 15.11, 20.46, 24.14, 17.35, 29.51, 2.92, 12.54),
        "SVML-Sphere": (27.42, 13.43, 13.78, 20.26, 23.24, 17.81, 28.23, 3.61, 12.70),
    }.items()
}


class Found:
    """Errors and seconds of all splits, by set and method."""

    def __init__(self, runs: list[Any]) -> None:
        self._runs = sorted(runs, key=lambda run: run.block)
        self.sets = [name for name in NAMES if any(run.name == name for run in runs)]
        self.methods = list(dict.fromkeys([*PAPER, FROZEN, HALF, *(run.method for run in runs)]))

    def errors(self, name: str, method: str) -> Values:
        """Errors of the splits, in per cent; empty where there was no run."""
        return self._all(name, method, "errors")

    def seconds(self, name: str, method: str) -> Values:
        """Processor seconds of training of the splits."""
        return self._all(name, method, "seconds")

    def base(self, name: str) -> str:
        """Method that the others are compared with: 1-fold selection where 5-fold has not run."""
        return BASE if len(self.errors(name, BASE)) else LEAST

    def common(self, name: str, methods: list[str]) -> dict[str, Values]:
        """The errors of methods over the splits that all of them have."""
        having = [{run.block for run in self._runs if (run.name, run.method) == (name, each)} for each in methods]
        blocks = set.intersection(*having)
        return {each: self._all(name, each, "errors", blocks) for each in methods}

    def differences(self, name: str, method: str, other: str) -> Values:
        """Errors of a method minus those of another one, over the splits that both have."""
        values = self.common(name, [method, other])
        return np.asarray(values[method] - values[other])

    def _all(self, name: str, method: str, figure: str, blocks: set[int] | None = None) -> Values:
        of_method = [run for run in self._runs if (run.name, run.method) == (name, method)]
        chosen = [getattr(run, figure) for run in of_method if blocks is None or run.block in blocks]
        return np.asarray([value for values in chosen for value in values], np.float64)
