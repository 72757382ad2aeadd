"""The kernel dual of the hinge loss for a kernel matrix that does not fit into memory: by blocks of coefficients.

The problem is that of csrc/smo.h: max_b y'b - 1/2 b'Kb, lo <= b <= hi, and sum b = 0 with an offset. A block holds the
coefficients that violate the optimality conditions most, and free ones of the last block. SMO solves for them while all
others are fixed (Osuna, Freund, Girosi 1997; Joachims 1998). Then Kb of all rows is updated by kernel values that are
computed, multiplied by the changes, and dropped. Rows at a bound that they will hardly leave are left out (shrinking)
until the others are solved, and then brought up to date at once. When few rows are left, they are a single block.

Kb is summed in float64, from kernel values that are the same whenever they are computed. So it stays K times b up to
float64 rounding, and the gap and the violation computed from it are certified.

References
----------
Osuna, Freund, Girosi: An Improved Training Algorithm for Support Vector Machines. NNSP 1997.
Joachims: Making Large-Scale SVM Learning Practical. In Advances in Kernel Methods, 1998.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels._kernels import padded
from localsvm.kernels.blocks import DOUBLE_FLOATS, Indices, KernelRows
from localsvm.solvers._smo import MAX_ITERATIONS, DualReport, KernelDual

# Chosen by time on HIGGS-like data of 20 000 and 100 000 rows. Sizes are numbers of rows.
LARGEST_BLOCK = 4096
SMALLEST_BLOCK = 256
ROWS_A_BLOCK = 16  # a block is a sixteenth of the rows, within these limits
FINAL_BLOCK = 8_192  # at most this many active rows become one block (256 MiB in float32), ...
FINAL_BLOCK_DOUBLE = 4_096  # ... in float64 this many, ...
FINAL_WORK = 2.0  # ... once smaller blocks have computed this many times the values of their whole kernel
KEPT = 0.5  # share of a block, at most, for free coefficients of earlier blocks
INNER = 0.1  # a block is solved to this share of the violation at its start, ...
INNER_GAP = 0.01  # ... or without an offset of its gap, ...
INNER_LEAST = 0.3  # ... but never below this share of the tolerance
SHRINK_AT = 0.5  # all rows are examined for shrinking each time the violation falls by this factor
SHRINK_MARGIN = 1.5  # a row is left out if its gradient is this many violations away from leaving the bound

Floats = NDArray[np.float64]


@dataclass
class _Condition:
    """The distance of the active rows from an optimum.

    centre, half: the middle and half the width of the range in which gradients violate the conditions. error: what the
    tolerance bounds.
    """

    centre: float
    half: float
    error: float


class BlockDual:
    """The dual over a kernel that is never stored, for any number of rows; same interface as solvers._smo.KernelDual.

    Parameters
    ----------
    rows : KernelRows
        The rows, which compute the kernel.
    y : (n,) float64
        Labels -1 and +1; 0 where a row takes no part.
    offset : bool
        With the constraint sum b = 0.
    max_iterations : int
        Pairs of coefficients that one solve may optimise.
    block : int or None
        Rows of a block. None: a sixteenth of all rows, from 256 to 4096, and all active rows when they are few.
    """

    def __init__(
        self,
        rows: KernelRows,
        y: Floats,
        offset: bool = False,
        max_iterations: int = MAX_ITERATIONS,
        block: int | None = None,
    ) -> None:
        if len(y) != len(rows):
            raise ValueError("y must have one entry a row")
        self.rows, self.y, self.offset, self.max_iterations = rows, y, offset, max_iterations
        self.block = block or _block_size(len(y))
        self.final_block = block or (FINAL_BLOCK_DOUBLE if rows.double else FINAL_BLOCK)

    def multiply(self, c: Floats) -> Floats:
        """Product K c, (n,) float64. Columns whose coefficient is 0 are not computed."""
        return _times(self.rows, self.rows, np.flatnonzero(c), c)

    def solve(
        self, lo: Floats, hi: Floats, tolerance: float, start: Floats | None = None
    ) -> tuple[Floats, Floats, DualReport]:
        """Solve for coefficients b (n,): (b, f, DualReport), with f = Kb (n,) without the bias.

        The report is certified in float64. Parameters and tolerance are those of KernelDual.solve.
        """
        b = np.zeros(len(self.y)) if start is None else np.array(start, dtype=np.float64)
        f = self.multiply(b)
        run = _Solve(self, lo, hi, tolerance, b, f)
        run.solve()
        return b, f, run.report()

    def path(
        self,
        weight: Floats,
        unit: Floats | None,
        costs: Floats,
        tolerance: float,
        before: tuple[float, Floats, Floats] | None = None,
    ) -> tuple[Floats, Floats, list[DualReport]]:
        """Solve along a regularisation path: ascending costs, each solution the start of the next.

        Parameters and results are those of KernelDual.path, for any number of costs; `unit` may be None with an offset.
        """
        solutions, products, reports = [], [], []
        last, b, f = before or (0.0, *self._beginning(weight, unit, costs[0]))
        for cost in costs:
            box = cost * weight
            lo, hi = np.where(self.y < 0, -box, 0.0), np.where(self.y > 0, box, 0.0)
            if last not in (0.0, cost):
                b, f = self._rescaled(b, f, cost / last, np.where(self.y != 0, box, 0.0))
            run = _Solve(self, lo, hi, tolerance, b, f)
            run.solve()
            solutions.append(b.copy())
            products.append(f.copy())
            reports.append(run.report())
            last = cost
        return np.asarray(solutions), np.asarray(products), reports

    def _beginning(self, weight: Floats, unit: Floats | None, cost: float) -> tuple[Floats, Floats]:
        """Start (b, Kb) of a path: all coefficients at their bounds, or zero with an offset."""
        if self.offset:
            return np.zeros(len(self.y)), np.zeros(len(self.y))
        assert unit is not None
        return cost * weight * self.y, cost * unit

    def _rescaled(self, b: Floats, f: Floats, ratio: float, box: Floats) -> tuple[Floats, Floats]:
        """Start for a cost `ratio` times larger: coefficients at a bound grow with it; with an offset all do."""
        grown = b * ratio
        at_bound = np.abs(grown) >= box * (1 - 1e-12)
        grown[at_bound] = np.sign(grown[at_bound]) * box[at_bound]
        if self.offset:
            return grown, f * ratio
        free = np.flatnonzero(~at_bound & (b != 0))
        grown[free] = b[free]
        return grown, f * ratio - (ratio - 1) * _times(self.rows, self.rows, free, b)


def working_bytes(rows: int, features: int, double: bool) -> int:
    """Memory of one solve in bytes: a block's kernel (in float64 also its distances or products), rows, vectors."""
    block = padded(max(_block_size(rows), min(rows, FINAL_BLOCK_DOUBLE if double else FINAL_BLOCK)))
    kernel = block * block * 8 * 3 + 3 * 8 * DOUBLE_FLOATS if double else block * block * 4
    return kernel + 6 * 4 * rows * features + 30 * 8 * rows


def _block_size(rows: int) -> int:
    return int(np.clip(rows // ROWS_A_BLOCK, SMALLEST_BLOCK, LARGEST_BLOCK))


class _Solve:
    """One solve, which changes b and f = Kb of all rows in place, and keeps copies of both for the active rows."""

    def __init__(self, problem: BlockDual, lo: Floats, hi: Floats, tolerance: float, b: Floats, f: Floats) -> None:
        self.problem, self.lo, self.hi, self.b, self.f = problem, lo, hi, b, f
        self.tolerance = tolerance
        self.costs = float((hi - lo).sum())
        self.iterations = 0
        self.converged = self.moved = self.given_up = False
        self.work = 0.0  # kernel values computed since the first rows were left out
        self.last: Indices = np.empty(0, np.intp)  # free rows of the last block, those new in it first
        self.left_out: list[tuple[Indices, Floats]] = []  # rows, and the b of which their f is the product
        self._activate(np.arange(len(b)))

    def solve(self) -> None:
        """Solve blocks until all rows meet the tolerance, iterations are used up, or rounding stops all progress."""
        while True:
            now = self._condition()
            done = now.error <= self.tolerance
            if done or self.stuck or self.given_up or self.iterations >= self.problem.max_iterations:
                if len(self.active) == len(self.b):
                    self._store()
                    self.converged = done
                    return
                self._restore()
                continue
            if now.half <= self.shrink_below:
                self._shrink(now)
            self._solve_block(self._choose(now), now)

    def report(self) -> DualReport:
        """Objective, gap, violation and bias of the solution."""
        b, f, y = self.b, self.f, self.problem.y
        bias, violation = self._bias() if self.problem.offset else (0.0, 0.0)
        g = y - f - bias
        gap = float(np.maximum((self.hi - b) * g, (self.lo - b) * g).sum())
        return DualReport(float(b @ (y - 0.5 * f)), gap, violation, bias, self.iterations, self.converged)

    def _bias(self) -> tuple[float, float]:
        """Bias and violation. The bias is the mean gradient of the free coefficients.

        If there are none, it is the middle of the range that the others allow.
        """
        g = self.problem.y - self.f
        grow, shrink = self.b < self.hi, self.b > self.lo
        high, low = g[grow].max(initial=-np.inf), g[shrink].min(initial=np.inf)
        if not np.isfinite(high - low):
            return float(low if np.isfinite(low) else high if np.isfinite(high) else 0.0), 0.0
        free = grow & shrink
        return float(g[free].mean() if free.any() else 0.5 * (high + low)), float(max(0.0, high - low))

    def _activate(self, active: Indices) -> None:
        """Make these rows the active ones, with their values in b and f."""
        self.active = active
        self.rows = self.problem.rows if len(active) == len(self.b) else self.problem.rows.part(active)
        self.place = np.full(len(self.b), -1, np.intp)
        self.place[active] = np.arange(len(active))
        self.at_lo_hi = self.lo[active], self.hi[active]
        self.now_b, self.g = self.b[active], self.problem.y[active] - self.f[active]
        self.shrink_below = np.inf
        self.stuck = False

    def _condition(self) -> _Condition:
        lo, hi = self.at_lo_hi
        high = float(self.g[self.now_b < hi].max(initial=-np.inf))
        low = float(self.g[self.now_b > lo].min(initial=np.inf))
        if self.problem.offset:
            if not high > low:  # optimal, or all rows of one class: no coefficient can change
                return _Condition(0.0, 0.0, 0.0)
            return _Condition(0.5 * (high + low), 0.5 * (high - low), high - low)
        gap = float(self._gains(self.g).sum())
        return _Condition(0.0, max(high, -low, 0.0), gap / self.costs if self.costs else 0.0)

    def _gains(self, g: Floats) -> Floats:
        """Contribution of each active row to the duality gap, for gradients g."""
        lo, hi = self.at_lo_hi
        gains: Floats = np.maximum((hi - self.now_b) * g, (lo - self.now_b) * g)
        return gains

    def _store(self) -> None:
        """Copy the state of the active rows back to b and f."""
        self.b[self.active] = self.now_b
        self.f[self.active] = self.problem.y[self.active] - self.g

    def _shrink(self, now: _Condition) -> None:
        """Leave out rows at a bound whose gradient keeps them there by a wide margin."""
        lo, hi = self.at_lo_hi
        g, margin = self.g - now.centre, SHRINK_MARGIN * now.half
        out = ((self.now_b >= hi) | (g < -margin)) & ((self.now_b <= lo) | (g > margin))
        if out.mean() > 0.1:
            self._store()
            if not self.left_out:
                self.work = 0.0
            self.left_out.append((self.active[out], self.b.copy()))
            self._activate(self.active[~out])
        self.shrink_below = SHRINK_AT * now.half

    def _restore(self) -> None:
        """Bring the rows left out up to date and make all rows active.

        Gives up if no coefficient has changed since the last time.
        """
        self._store()
        self.given_up, self.moved = self.stuck and not self.moved, False
        for out, before in self.left_out:
            change = self.b - before
            rows = self.problem.rows
            self.f[out] += _times(rows.part(out), rows, np.flatnonzero(change), change)
        self.left_out.clear()
        self._activate(np.arange(len(self.b)))

    def _choose(self, now: _Condition) -> Indices:
        """The next block, as places among the active rows."""
        size, n = self.problem.block, len(self.active)
        if n <= size or (n <= self.problem.final_block and self.work >= FINAL_WORK * n * n):
            return np.arange(n)
        kept = self.place[self.last]
        kept = kept[kept >= 0][: int(KEPT * size)]
        if not self.problem.offset:
            gains = self._gains(self.g)
            gains[kept] = -np.inf
            return np.concatenate([kept, _largest(gains, size - len(kept))])
        lo, hi = self.at_lo_hi
        grow = np.where(self.now_b < hi, self.g, -np.inf)
        grow[kept] = -np.inf
        first = _largest(grow, (size - len(kept)) // 2)
        shrink = np.where(self.now_b > lo, -self.g, -np.inf)
        shrink[kept] = shrink[first] = -np.inf
        return np.concatenate([kept, first, _largest(shrink, size - len(kept) - len(first))])

    def _solve_block(self, block: Indices, now: _Condition) -> None:
        """Solve for the coefficients of a block, all others fixed; then update the gradients of all active rows."""
        lo, hi = (bound[block] for bound in self.at_lo_hi)
        part = self.rows.part(block)
        before = self.now_b[block]
        change, product, iterations = self._inner(part, self.g[block], lo - before, hi - before, now)
        self.iterations += max(1, iterations)
        after = np.where(change <= lo - before, lo, np.where(change >= hi - before, hi, before + change))
        self.now_b[block] = after
        changed = np.flatnonzero(change)
        if len(block) < len(self.active):
            product = _times(self.rows, part, changed, change)
            self.work += len(changed) * len(self.active)
        self.g -= product
        self.stuck = not len(changed)
        self.moved |= not self.stuck
        self.last = self.active[block[(after > lo) & (after < hi)][::-1]]

    def _inner(
        self, part: KernelRows, g: Floats, low: Floats, high: Floats, now: _Condition
    ) -> tuple[Floats, Floats, int]:
        """Solve a block by SMO: (changes of its coefficients, K of the block times the changes, iterations)."""
        n, size, everybody = len(part), padded(len(part)), len(part) == len(self.active)
        wide = np.zeros((3, size))
        wide[:, :n] = g, low, high
        least = INNER_LEAST * self.tolerance
        if self.problem.offset:
            wanted = 0.0 if everybody else INNER * now.error
        else:
            # The gap relative to the costs of this block alone, so that a block always makes progress: where rows have
            # large weights, the gap is small compared with the costs.
            ratio = float(np.maximum(high * g, low * g).sum()) / max(float((high - low).sum()), 1e-300)
            wanted, least = 0.0 if everybody else INNER_GAP * ratio, min(least, 0.5 * ratio)
        limit = max(1, self.problem.max_iterations - self.iterations)
        problem = KernelDual(part.matrix(), wide[0], self.problem.offset, part.kernel.uses_distances, limit)
        change, product, report = problem.solve(wide[1], wide[2], max(wanted, least))
        return change[:n], product[:n], report.iterations


def _times(rows: KernelRows, columns: KernelRows, used: Indices, coef: Floats) -> Floats:
    return rows.times(columns.part(used), coef[used])


def _largest(values: Floats, count: int) -> Indices:
    """Places of the `count` largest values, without those that are minus infinity; in a fixed but not sorted order."""
    if count < 1:
        return np.empty(0, np.intp)
    chosen: Indices = np.argpartition(-values, count - 1)[:count]
    return chosen[values[chosen] > -np.inf]
