"""The kernel dual of the hinge loss with an offset, by LaSVM: online epochs, and a finishing step.

    max_b  y'b - 1/2 b'Kb    subject to  lo <= b <= hi, sum b = 0

An epoch visits the rows in random order. Each is processed, and the support vectors found so far are reprocessed
(csrc/lasvm.h). The finishing step takes the most violating pairs of all rows, as SMO does, until no pair violates
optimality by more than the tolerance (the paper's tau). So the solution is that of SMO, and certified in the same way.

References
----------
Bordes, Ertekin, Weston, Bottou: Fast kernel classifiers with online and active learning. JMLR 6, 2005. Its finishing
step stays within the support vectors; ours does not, as an optimum has to hold for all rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from localsvm.solvers._smo import DualReport, KernelDual

Floats = NDArray[np.float64]


class OnlineDual:
    """LaSVM with the interface of solvers._smo.KernelDual.

    Parameters
    ----------
    dual : KernelDual
        The problem, with an offset.
    epochs : int
    seed : SeedSequence
        Seed of the order of the rows, the same in each solve.
    """

    def __init__(self, dual: KernelDual, epochs: int, seed: np.random.SeedSequence) -> None:
        self.dual, self.epochs, self.seed = dual, epochs, seed

    def multiply(self, c: Floats) -> Floats:
        """Product K c, (n,) float64."""
        return self.dual.multiply(c)

    def solve(
        self, lo: Floats, hi: Floats, tolerance: float, start: Floats | None = None
    ) -> tuple[Floats, Floats, DualReport]:
        """Solve as KernelDual.solve: (b, f, DualReport); iterations count the epochs and the finishing step."""
        b = np.zeros(len(lo)) if start is None else np.array(start, dtype=np.float64)
        random, rows, steps = np.random.default_rng(self.seed), np.flatnonzero(lo < hi), 0
        for _ in range(self.epochs):
            steps += self.dual.online_epoch(lo, hi, random.permutation(rows), tolerance, b)
        b, f, report = self.dual.solve(lo, hi, tolerance, b)
        report.iterations += steps
        return b, f, report

    def path(
        self,
        weight: Floats,
        unit: Floats | None,
        costs: Floats,
        tolerance: float,
        before: tuple[float, Floats, Floats] | None = None,
    ) -> tuple[Floats, Floats, list[DualReport]]:
        """Solve for ascending costs, each from the solution before it, grown with the cost; as KernelDual.path."""
        last, b = (1.0, np.zeros(len(weight))) if before is None else before[:2]
        solved = []
        for cost in costs:
            signed = cost * weight * self.dual.y
            lo, hi = np.minimum(signed, 0.0), np.maximum(signed, 0.0)
            solved.append(self.solve(lo, hi, tolerance, np.clip(b * (cost / last), lo, hi)))
            last, b = cost, solved[-1][0]
        return (
            np.stack([b for b, _, _ in solved]),
            np.stack([f for _, f, _ in solved]),
            [report for *_, report in solved],
        )
