"""The kernel dual of the hinge loss where the kernel matrix does not fit into the memory: by blocks of coefficients.

Problem, as in csrc/smo.h: max_b y'b - 1/2 b'Kb over boxes lo <= b <= hi (and sum b = 0 with an offset). A block of
coefficients, those that violate the optimality conditions most and free ones of the last block, is solved by SMO with
the others held (Osuna, Freund, Girosi 1997; Joachims 1998), and Kb of all rows follows by kernel values that are
computed, multiplied by the changes, and forgotten. Rows at a bound that are far from leaving it are left out until the
others are solved (shrinking), and then brought up to date at once; once few enough are left, all of them are one block.

Kb is summed in float64 from kernel values that are the same each time they are computed, so that it stays the product
with the coefficients but for float64 rounding: what it says of gap and violation is certified.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.kernels._kernels import padded
from localsvm.kernels.blocks import DOUBLE_FLOATS, Indices, KernelRows
from localsvm.solvers._smo import MAX_ITERATIONS, DualReport, KernelDual

# measured on HIGGS-like data of 20 000 and 100 000 rows
LARGEST_BLOCK = 4096
SMALLEST_BLOCK = 256
ROWS_A_BLOCK = 16  # the block is this part of the rows, within these limits
FINAL_BLOCK = 8_192  # so few active rows are one block: 256 MB in float32 ...
FINAL_BLOCK_DOUBLE = 4_096
FINAL_WORK = 2.0  # ... once blocks have cost so many times what their whole kernel costs
KEPT = 0.5  # at most this share of a block are free coefficients of the block before
INNER = 0.1  # a block is solved to this part of the violation at its start
INNER_GAP = 0.01  # without offset to this part of its gap
INNER_LEAST = 0.3  # but no further than to this part of the tolerance
SHRINK_AT = 0.5  # rows are looked through again each time that the violation fell by this factor
SHRINK_MARGIN = 1.5  # how many violations away from leaving its bound a row is left out

Floats = NDArray[np.float64]


@dataclass
class _Condition:
    """How far the active rows are from optimal: half the largest violation around `centre`, and what the tolerance is
    compared with.
    """

    centre: float
    half: float
    error: float


class BlockDual:
    """The dual over a kernel that is never stored; the interface of solvers._smo.KernelDual, any number of rows.

    Parameters: rows: the kernel; y (n,) float64 in {-1, 0, +1}; offset: with the equality constraint; block: rows of
    the working set, by default a sixteenth of all rows between 256 and 4096, and all active rows once they are few.
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
        """K c, float64 (n,); columns whose coefficient is 0 are not computed."""
        return _times(self.rows, self.rows, np.flatnonzero(c), c)

    def solve(
        self, lo: Floats, hi: Floats, tolerance: float, start: Floats | None = None
    ) -> tuple[Floats, Floats, DualReport]:
        """(b, f, DualReport): coefficients, Kb without the bias, certified in float64.

        tolerance: without offset the gap over the sum of the costs, with offset LIBSVM's KKT violation. start: feasible
        coefficients (n,), default zero.
        """
        b = np.zeros(len(self.y)) if start is None else np.array(start, dtype=np.float64)
        f = self.multiply(b)
        run = _Run(self, lo, hi, tolerance, b, f)
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
        """(b, f, reports) for ascending costs, boxes cost * weight, each solved from the one before.

        weight (n,) >= 0, 0 for rows held out; unit: K (y * weight), where the path begins, read without offset only; or
        before: (cost, b, f) of the point that it goes on from. b, f: (costs, n).
        """
        solutions, products, reports = [], [], []
        last, b, f = before or (0.0, *self._beginning(weight, unit, costs[0]))
        for cost in costs:
            box = cost * weight
            lo, hi = np.where(self.y < 0, -box, 0.0), np.where(self.y > 0, box, 0.0)
            if last:
                b, f = self._rescaled(b, f, cost / last, np.where(self.y != 0, box, 0.0))
            run = _Run(self, lo, hi, tolerance, b, f)
            run.solve()
            solutions.append(b.copy())
            products.append(f.copy())
            reports.append(run.report())
            last = cost
        return np.asarray(solutions), np.asarray(products), reports

    def _beginning(self, weight: Floats, unit: Floats | None, cost: float) -> tuple[Floats, Floats]:
        """(b, Kb) that a path starts from: all coefficients at their bounds, with an offset at zero."""
        if self.offset:
            return np.zeros(len(self.y)), np.zeros(len(self.y))
        assert unit is not None
        return cost * weight * self.y, cost * unit

    def _rescaled(self, b: Floats, f: Floats, ratio: float, box: Floats) -> tuple[Floats, Floats]:
        """Start for a cost `ratio` times larger: bounded coefficients grow with it; with an offset all do."""
        grown = b * ratio
        at_bound = np.abs(grown) >= box * (1 - 1e-12)
        grown[at_bound] = np.sign(grown[at_bound]) * box[at_bound]
        if self.offset:
            return grown, f * ratio
        free = np.flatnonzero(~at_bound & (b != 0))
        grown[free] = b[free]
        return grown, f * ratio - (ratio - 1) * _times(self.rows, self.rows, free, b)


def working_bytes(rows: int, features: int, double: bool) -> int:
    """Memory of a solve: the block's kernel (in float64 with what it is made from), parts of the rows, vectors."""
    block = padded(max(_block_size(rows), min(rows, FINAL_BLOCK_DOUBLE if double else FINAL_BLOCK)))
    kernel = block * block * 8 * 3 + 3 * 8 * DOUBLE_FLOATS if double else block * block * 4
    return kernel + 6 * 4 * rows * features + 30 * 8 * rows


def _block_size(rows: int) -> int:
    return int(np.clip(rows // ROWS_A_BLOCK, SMALLEST_BLOCK, LARGEST_BLOCK))


class _Run:
    """One solve: b and f = Kb of all rows, changed in place, and the rows still active with their copies of both."""

    def __init__(self, problem: BlockDual, lo: Floats, hi: Floats, tolerance: float, b: Floats, f: Floats) -> None:
        self.problem, self.lo, self.hi, self.b, self.f = problem, lo, hi, b, f
        self.tolerance = tolerance
        self.costs = float((hi - lo).sum())
        self.iterations = 0
        self.converged = self.moved = self.given_up = False
        self.work = 0.0  # kernel values since the first rows were left out
        self.last: Indices = np.empty(0, np.intp)  # free rows of the last blocks, the latest first
        self.left_out: list[tuple[Indices, Floats]] = []  # rows, and the coefficients that their Kb is of
        self._activate(np.arange(len(b)))

    def solve(self) -> None:
        """Until the tolerance is met by all rows, or the iterations are used up, or rounding stops all progress."""
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
        """The mean gradient of the free coefficients, or the middle of what the bounded ones allow; the violation."""
        g = self.problem.y - self.f
        grow, shrink = self.b < self.hi, self.b > self.lo
        high, low = g[grow].max(initial=-np.inf), g[shrink].min(initial=np.inf)
        if not np.isfinite(high - low):
            return float(low if np.isfinite(low) else high if np.isfinite(high) else 0.0), 0.0
        free = grow & shrink
        return float(g[free].mean() if free.any() else 0.5 * (high + low)), float(max(0.0, high - low))

    def _activate(self, active: Indices) -> None:
        """Take these rows into account, as they are in b and f."""
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
            if not high > low:  # one class only, too: nothing can move
                return _Condition(0.0, 0.0, 0.0)
            return _Condition(0.5 * (high + low), 0.5 * (high - low), high - low)
        gap = float(self._gains(self.g).sum())
        return _Condition(0.0, max(high, -low, 0.0), gap / self.costs if self.costs else 0.0)

    def _gains(self, g: Floats) -> Floats:
        lo, hi = self.at_lo_hi
        gains: Floats = np.maximum((hi - self.now_b) * g, (lo - self.now_b) * g)
        return gains

    def _store(self) -> None:
        self.b[self.active] = self.now_b
        self.f[self.active] = self.problem.y[self.active] - self.g

    def _shrink(self, now: _Condition) -> None:
        """Leave out rows at a bound whose gradient is far on the side that keeps them there."""
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
        """Bring the rows left out up to date and take them in again; give up where nothing has moved since."""
        self._store()
        self.given_up, self.moved = self.stuck and not self.moved, False
        for out, before in self.left_out:
            change = self.b - before
            rows = self.problem.rows
            self.f[out] += _times(rows.part(out), rows, np.flatnonzero(change), change)
        self.left_out.clear()
        self._activate(np.arange(len(self.b)))

    def _choose(self, now: _Condition) -> Indices:
        """Places of the next block among the active rows."""
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
        """Solve for the coefficients of a block, the others held; then the gradient of all active rows."""
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
        """SMO for the changes of a block's coefficients, K of the block times them, iterations."""
        n, size, everybody = len(part), padded(len(part)), len(part) == len(self.active)
        wide = np.zeros((3, size))
        wide[:, :n] = g, low, high
        least = INNER_LEAST * self.tolerance
        if self.problem.offset:
            wanted = 0.0 if everybody else INNER * now.error
        else:
            # gap and costs of the block alone: heavily weighted rows have a small gap for their cost, and a block is
            # chosen because there is something to gain in it
            ratio = float(np.maximum(high * g, low * g).sum()) / max(float((high - low).sum()), 1e-300)
            wanted, least = 0.0 if everybody else INNER_GAP * ratio, min(least, 0.5 * ratio)
        limit = max(1, self.problem.max_iterations - self.iterations)
        problem = KernelDual(part.matrix(), wide[0], self.problem.offset, part.kernel.uses_distances, limit)
        change, product, report = problem.solve(wide[1], wide[2], max(wanted, least))
        return change[:n], product[:n], report.iterations


def _times(rows: KernelRows, columns: KernelRows, used: Indices, coef: Floats) -> Floats:
    return rows.times(columns.part(used), coef[used])


def _largest(values: Floats, count: int) -> Indices:
    """Places of the largest values, in no particular but a fixed order; none that is minus infinity."""
    if count < 1:
        return np.empty(0, np.intp)
    chosen: Indices = np.argpartition(-values, count - 1)[:count]
    return chosen[values[chosen] > -np.inf]
