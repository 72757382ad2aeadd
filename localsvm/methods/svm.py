"""Kernel SVM with the hinge loss in one cell: cross-validated over a grid, fold models that vote or one refitted model.

Problem, per binary task on n rows (Thomann et al. 2017, section 2): min lambda |f|^2 + 1/n sum_i w_i max(0, 1 - y_i
f(x_i)) over the RKHS of the kernel, in its dual with C = 1 / (2 lambda n); with `offset` LIBSVM's problem, f + b.

The grid's inner loop decides the speed of everything: one matrix of squared distances a cell, one kernel matrix a
gamma for all folds and all binary problems, held-out rows kept in the gradient so that their decision values come
with it, and each cost started from the solution of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.errors import OptionError
from localsvm.kernels import Kernel
from localsvm.kernels._kernels import padded
from localsvm.kernels.blocks import BlockGram, KernelRows
from localsvm.kernels.gram import Gram, arena
from localsvm.methods.base import Cell, Fitted, Grid, Method, Predictor, Scores, State, option
from localsvm.methods.expansion import ExpansionPredictor, KernelModel, pack_models
from localsvm.methods.grids import SIZE, check_values, default_lambdas, default_widths
from localsvm.selection.search import Search
from localsvm.selection.tally import Tally
from localsvm.solvers._smo import Problem, Report
from localsvm.solvers.blocks import BlockProblem, working_bytes
from localsvm.threads import Threads

# cells of more rows are solved block by block, without the whole matrix (3.2 GB with its distances at this size): by
# the number of rows and points alone, so that neither -j nor --memory decides what a model is
WHOLE_ROWS = 20_000
SINGLE_ROWS = 6_000  # for a single point, where folds and costs do not share the matrix and fresh memory costs more
# where the solution of a single point has few support vectors, blocks need few kernel values: below this share in a
# solution on every eighth row up to 4 times faster, above .3 slower (skin_nonskin, ijcnn1, cod-rna, covtype)
PILOT_SHARE = 0.2
PILOT_ROWS = 2_000
PILOT_STEP = 8
PILOT_TOLERANCE = 0.1
# float32 kernels carry the certified gap down to these; beyond them the matrix is made in float64. C is the cell's: a
# pair of classes with few of its rows has a larger one for the same lambda, and as much less to sum up
SINGLE_TOLERANCE = 1e-4
SINGLE_COST = 1e4
# the solutions that score a grid are only compared by their held-out errors: they may be rougher than the model
SELECTION_FACTOR = 10.0
FULL = Search()
Matrices = Callable[[dict[str, float], bool], "NDArray[Any] | KernelRows"]  # of a grid's line; whether in float64
LARGEST_DEFAULT_COST = 500.0  # 1 / (2 lambda n) at lambda = 0.001 / n


@dataclass(frozen=True)
class KernelSVM(Method):
    """Options of the method; see the module for the problem. gammas and costs are empty for the default grid."""

    name: ClassVar[str] = "svm"
    by_blocks: ClassVar[bool] = True  # many rows, or few support vectors, do without the whole matrix

    kernel: str = option(
        "gaussian", "-t", "--kernel", help="Kernel.", choices=("gaussian", "laplacian", "polynomial", "linear")
    )
    gamma: tuple[float, ...] = option(
        (),
        "-g",
        "--gamma",
        help="Gamma of the kernel as in LIBSVM, exp(-gamma |x-y|^2): one value, a list (0.1,1,10) or a geometric range "
        "LOW:HIGH:COUNT (2^-5:2^3:9). A width w of liquidSVM is gamma = 1/w^2.",
    )
    cost: tuple[float, ...] = option(
        (), "-C", "--cost", help="Cost C of LIBSVM's problem (its -c): one value, a list or a range, as for -g."
    )
    degree: int = option(3, "--degree", help="Degree of the polynomial kernel.")
    coef0: float = option(0.0, "--coef0", help="Constant of the polynomial kernel.")
    offset: bool = option(
        False, "--offset/--no-offset", help="Add an offset b to the decision function, as LIBSVM does."
    )
    tolerance: float = option(
        1e-3,
        "-e",
        "--tolerance",
        help="Stop at this KKT violation (offset), gap/(C n) (none) or gap/objective (linear).",
    )

    def __post_init__(self) -> None:
        kinds = self.__dataclass_fields__["kernel"].metadata["choices"]
        if self.kernel not in kinds:
            raise OptionError(f"-t/--kernel {self.kernel}: there is no such kernel; choose one of {', '.join(kinds)}")
        if not all(0.0 < value < np.inf for value in (*self.gamma, *self.cost)):
            raise OptionError("-g/--gamma and -C/--cost take positive numbers")
        if not 0.0 < self.tolerance < np.inf:
            raise OptionError(f"-e/--tolerance must be a positive number, not {self.tolerance:g}; try -e 0.001")
        if self.degree < 1:
            raise OptionError(f"--degree must be a whole number from 1, not {self.degree}")
        if not np.isfinite(self.coef0):
            raise OptionError(f"--coef0 must be a finite number, not {self.coef0:g}")

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        """The user's values where given; else 10 widths and 10 lambdas after Thomann et al. (see selection.grids)."""
        train = 1.0 - 1.0 / max(2, folds)
        features = cell.X.shape[1]
        if self.kernel == "linear":
            gammas: tuple[float, ...] = (1.0,)
        elif self.gamma:
            gammas = check_values(self.gamma)
        elif self.kernel == "polynomial":
            gammas = (1.0 / max(1, features),)
        else:
            power = 2 if self.kernel == "gaussian" else 1
            widths = default_widths(np.floor(average_rows * train), features, Gram(cell.X).radius())
            gammas = tuple(w**-power for w in widths)
        lines = tuple((gamma,) for gamma in gammas)
        if self.cost:
            return Grid(lines, costs=check_values(self.cost))
        return Grid(lines, lambdas=default_lambdas(np.floor(cell.count.sum() * train)))

    def score_grid(self, cell: Cell, grid: Grid, lines: Sequence[int], search: Search = FULL) -> Scores:
        """Cross-validate the gammas grid.lines[i] for i in lines; one point for all binary problems."""
        with Threads(cell.threads) as threads:
            return self._score_grid(cell, grid, lines, search, self.matrices(cell, threads, len(lines) > 1))

    def _score_grid(self, cell: Cell, grid: Grid, lines: Sequence[int], search: Search, matrices: Matrices) -> Scores:
        double = self._double(grid.costs_for(cell.count.sum()).max() * cell.weight.max())
        scores = Scores(np.full((len(grid.lines), grid.n_costs), np.nan), (np.inf, np.inf, 0, 0), [])
        for g in lines:
            K = matrices(grid.line(g), double)
            paths = [Path.new(cell, p, grid.n_costs) for p in range(cell.Y.shape[1])]
            for first, last in search.stretches(grid.n_costs):
                values = np.empty((last - first, len(paths), len(cell.y)))
                for p, path in enumerate(paths):
                    task = Task(self, K, cell, p)
                    task.cross_validate(path, grid, first, last)
                    values[:, p] = task.held_out(K, path, first, last)
                tally = Tally(cell.scheme, last - first)
                tally.add(values, cell.y, cell.weight)
                for c, (loss, tie) in enumerate(tally.losses(), start=first):
                    scores.loss[g, c] = loss
                    if (point := (loss, tie, c, g)) < scores.best:
                        scores.best = point
                        scores.starts = [Start(path.b[:, c].copy(), path.iterations[:, c].copy()) for path in paths]
                if search.ends(scores.loss[g, :last]):
                    break
        return scores

    def fit(self, cell: Cell, grid: Grid, scores: Scores | None, select: str) -> Fitted:
        """Fold models (`select` = "vote") certified in float64, or one model refitted on the whole cell ("refit")."""
        c, g = scores.best[2:] if scores else (0, 0)
        kernel = self.kernel_of(grid.line(g)["gamma"])
        double = self._double(grid.costs_for(cell.count.sum())[c] * cell.weight.max())
        models: list[KernelModel] = []
        with Threads(cell.threads) as threads:
            cost = float(grid.costs_for(cell.count.sum())[c])
            few = scores is None and self._few_support_vectors(cell, grid.line(g), cost, threads)
            K = self.matrices(cell, threads, several=False, blocks=few)(grid.line(g), double)
            for p in range(cell.Y.shape[1]):
                start = scores.starts[p] if scores else None
                models += Task(self, K, cell, p).final_models(kernel, grid, c, start, select)
        return Fitted(self.packed(cell, grid.line(g), models), _summary(models))

    def _few_support_vectors(self, cell: Cell, line: dict[str, float], cost: float, threads: Threads) -> bool:
        """Whether a part of the rows says so; several problems share the whole matrix in any case."""
        if not self.by_blocks or cell.Y.shape[1] > 1 or not PILOT_ROWS <= len(cell.y) <= self.whole_rows:
            return False
        part = replace(
            cell, **{name: getattr(cell, name)[::PILOT_STEP] for name in ("X", "y", "Y", "count", "cost", "folds")}
        )
        task = Task(replace(self, tolerance=PILOT_TOLERANCE), self.matrices(part, threads, False)(line, False), part, 0)
        return not task.constant and task.support_share(cost) < PILOT_SHARE

    def matrices(self, cell: Cell, threads: Threads, several: bool, blocks: bool = False) -> Matrices:
        """The kernel of the cell's rows for any line of the grid; several: whether more than one will be asked for;
        blocks: not to be held whole.
        """
        large = self.by_blocks and len(cell.y) > self.whole_rows
        gram = BlockGram(cell.X, threads) if blocks or large else Gram(cell.X, several)
        return lambda line, double: gram.matrix(self.kernel_of(line["gamma"]), double)

    def packed(self, cell: Cell, line: dict[str, float], models: list[KernelModel]) -> State:
        """The arrays that the model file keeps."""
        return pack_models(cell.X, cell.Y, models)

    def predictor(self, state: State, n_problems: int, n_features: int) -> Predictor:
        """Decision functions of a saved cell."""
        return ExpansionPredictor(state, self.kernel_of(1.0), n_problems, n_features)

    def memory(self, rows: int, features: int, weight: float, solutions: int, part: int) -> int:
        """Distances and kernel (in float64 with the product they are made from) or a block of it, what is copied of it
        for a problem of some rows, the rows, paths and votes.
        """
        size = padded(rows)
        costs = self.cost or (LARGEST_DEFAULT_COST,)
        paths = 8 * rows * solutions * (len(self.cost) or SIZE)
        double = self._double(max(costs) * weight)
        if self.by_blocks and rows > self.whole_rows:
            return working_bytes(rows, features, double) + 2 * paths + 16 * size * 64
        square = size * size * (3 * 8 if double else 2 * 4)
        square += part * (part + size) * (8 if double else 4)
        return square + 3 * 4 * rows * features + 2 * paths + 16 * size * 64

    @property
    def whole_rows(self) -> int:
        """The most rows of a cell whose kernel is held whole."""
        one_gamma = len(self.gamma) == 1 or (not self.gamma and self.kernel in ("linear", "polynomial"))
        return SINGLE_ROWS if one_gamma and len(self.cost) == 1 else WHOLE_ROWS

    def kernel_of(self, gamma: float) -> Kernel:
        """The kernel with this gamma."""
        return Kernel(self.kernel, gamma, self.coef0, self.degree)

    def _double(self, cost: float) -> bool:
        """Whether the tolerance, or the largest weighted cost, asks for a float64 kernel."""
        return self.tolerance < SINGLE_TOLERANCE or cost > SINGLE_COST


class Start(NamedTuple):
    """Fold models of one binary problem: coefficients (folds, its rows), found in so many iterations (folds,)."""

    coefficients: NDArray[np.float64]
    iterations: NDArray[np.int64]


class Path(NamedTuple):
    """Cross-validation of one problem along the costs, as far as it has come.

    b (folds, costs, n): coefficients; bias and iterations (folds, costs); f (costs, n): held-out values; ends: for each
    fold the point where its path stands, (cost, b, Kb), padded as the solver has them.
    """

    b: NDArray[np.float64]
    bias: NDArray[np.float64]
    iterations: NDArray[np.int64]
    f: NDArray[np.float64]
    ends: dict[int, tuple[float, NDArray[np.float64], NDArray[np.float64]]]

    @classmethod
    def new(cls, cell: Cell, problem: int, n_costs: int) -> Path:
        """Nothing solved yet."""
        n, n_folds = np.count_nonzero(cell.Y[:, problem]), int(cell.folds.max()) + 1
        shape = (n_folds, n_costs)
        return cls(np.zeros((*shape, n)), np.zeros(shape), np.zeros(shape, np.int64), np.zeros((n_costs, n)), {})


class Task:
    """One binary problem of a cell: the rows that take part, padded for the solver, over a kernel matrix or over rows
    whose kernel is computed as it is needed.
    """

    def __init__(self, method: KernelSVM, K: NDArray[Any] | KernelRows, cell: Cell, problem: int) -> None:
        self.method, self.cell, self.index = method, cell, problem
        self.rows = np.flatnonzero(cell.Y[:, problem])
        self.n = len(self.rows)
        self.size = self.n if isinstance(K, KernelRows) else padded(self.n)
        self.y = self._pad(cell.Y[self.rows, problem])
        self.weight = self._pad(cell.weight[self.rows])
        self.count = cell.count[self.rows]
        self.folds = cell.folds[self.rows]
        sides = np.unique(self.y[: self.n])
        # rows of one side only need no solver: their constant is the answer; with no rows nobody answers
        self.constant = float(sides[0]) if len(sides) == 1 else 0.0
        if len(sides) == 2:
            self.solver = self._solver(K)

    def _solver(self, K: NDArray[Any] | KernelRows) -> Problem | BlockProblem:
        everybody = self.n == len(self.cell.Y)
        if isinstance(K, KernelRows):
            return BlockProblem(K if everybody else K.part(self.rows), self.y, self.method.offset)
        part = K if everybody else self._gather(K)
        return Problem(part, self.y, self.method.offset, self.method.kernel in ("gaussian", "laplacian"))

    def cross_validate(self, path: Path, grid: Grid, first: int, last: int) -> None:
        """Extend the paths of all folds by the costs first .. last - 1."""
        if self.constant or not self.n:
            path.bias[:] = path.f[:] = self.constant
            return
        units = self._units(len(path.b)) if first == 0 else {}
        for k in range(len(path.b)):
            held = slice(*np.searchsorted(self.folds, [k, k + 1]))
            costs = grid.costs_for(max(1.0, self._trained_on(k)))[first:last]
            tolerance = SELECTION_FACTOR * self.method.tolerance
            b, f, reports = self.solver.path(self._weight_without(k), units.get(k), costs, tolerance, path.ends.get(k))
            if last < grid.n_costs:  # copies: a row would keep all of b and f
                path.ends[k] = float(costs[-1]), b[-1].copy(), f[-1].copy()
            path.b[k, first:last], path.bias[k, first:last] = b[:, : self.n], [r.bias for r in reports]
            path.iterations[k, first:last] = [r.iterations for r in reports]
            path.f[first:last, held] = f[:, held] + path.bias[k, first:last, None]

    def support_share(self, cost: float) -> float:
        """Share of the rows that are support vectors at this cost."""
        signed = cost * self.weight * self.y
        b, _, _ = self.solver.solve(np.minimum(signed, 0.0), np.maximum(signed, 0.0), self.method.tolerance)
        return float(np.count_nonzero(b)) / self.n

    def _units(self, n_folds: int) -> dict[int, NDArray[np.float64]]:
        """K (y * weight) without each fold."""
        if self.method.offset:  # paths start at zero
            return dict.fromkeys(range(n_folds), np.zeros(self.size))
        whole = (self.weight * self.y)[: self.n]
        units = [self.solver.multiply(self._pad(whole * (self.folds == k))) for k in range(n_folds)]
        return {k: np.sum(units, axis=0) - unit for k, unit in enumerate(units)}

    def held_out(self, K: NDArray[Any] | KernelRows, path: Path, first: int, last: int) -> NDArray[np.float64]:
        """(costs, rows of the cell) decision values by the model of the fold that holds the row out.

        Rows of other classes, in no fold's training, count too: many classes are decided between all problems.
        """
        if self.n == len(self.cell.y):
            return path.f[first:last]
        out: NDArray[np.float64] = path.bias[:, first:last].T[:, self.cell.folds]
        if self.n and not self.constant:
            part = K.part(self.rows) if isinstance(K, KernelRows) else K[self.rows]  # once for all folds
            edges = np.searchsorted(self.cell.folds, range(len(path.b) + 1))
            for k, (a, z) in enumerate(pairwise(edges)):
                out[:, a:z] += _products(K, part, path.b[k, first:last], a, z)
        out[:, self.rows] = path.f[first:last]
        return out

    def final_models(
        self, kernel: Kernel, grid: Grid, point: int, known: Start | None, select: str
    ) -> Iterable[KernelModel]:
        """The models to keep at one point of the grid, started from the fold models that scored it."""
        if self.constant or not self.n:
            report = Report(0.0, 0.0, 0.0, self.constant, 0, True)
            nothing = np.empty(0, np.int64), np.empty(0)
            return [KernelModel(self.index, -1, kernel, 0.0, 0.0, report, *nothing)] if self.n else []
        if known is None or select == "refit":
            cost = float(grid.costs_for(self.count.sum())[point])
            # each row is in all folds' training but one
            mean = None if known is None else known.coefficients.sum(axis=0) / max(1, len(known.coefficients) - 1)
            return [self._solve(kernel, -1, cost, self.weight, None if self.method.offset else mean, 0)]
        return [
            self._solve(
                kernel,
                k,
                float(grid.costs_for(self._trained_on(k))[point]),
                self._weight_without(k),
                start,
                int(known.iterations[k]),
            )
            for k, start in enumerate(known.coefficients)
            if self._trained_on(k) > 0
        ]

    def _solve(
        self,
        kernel: Kernel,
        fold: int,
        cost: float,
        weight: NDArray[np.float64],
        start: NDArray[np.float64] | None,
        before: int,
    ) -> KernelModel:
        """Solve and certify from a start that took so many iterations before."""
        box = cost * weight
        hi, lo = np.where(self.y > 0, box, 0.0), np.where(self.y < 0, -box, 0.0)
        first = None if start is None else np.clip(self._pad(start), lo, hi)
        b, _, report = self.solver.solve(lo, hi, self.method.tolerance, first)
        report.iterations += before
        keep = np.flatnonzero(b[: self.n])
        gap = report.gap / box.sum() if box.sum() else 0.0
        return KernelModel(self.index, fold, kernel, cost, gap, report, self.rows[keep], b[keep])

    def _trained_on(self, fold: int) -> float:
        return float(self.count[self.folds != fold].sum())

    def _weight_without(self, fold: int) -> NDArray[np.float64]:
        return self._pad(self.weight[: self.n] * (self.folds != fold))

    def _pad(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.zeros(self.size)
        out[: self.n] = values
        return out

    def _gather(self, K: NDArray[Any]) -> NDArray[Any]:
        out = arena("part", (self.size, self.size), K.dtype)
        out[:] = 0
        out[: self.n, : self.n] = K[np.ix_(self.rows, self.rows)]
        return out


def _products(
    K: NDArray[Any] | KernelRows, part: NDArray[Any] | KernelRows, b: NDArray[np.float64], first: int, last: int
) -> Any:
    """(costs, last - first): b (costs, rows of part) times the kernel of part with rows first .. last - 1."""
    if isinstance(K, KernelRows):
        assert isinstance(part, KernelRows)
        rows = K.part(np.arange(first, last))
        return np.asarray([rows.times(part, coef) for coef in b])
    assert isinstance(part, np.ndarray)
    return b.astype(K.dtype) @ part[:, first:last]


def _summary(models: list[KernelModel]) -> dict[str, float]:
    return {
        "models": len(models),
        "iterations": sum(m.report.iterations for m in models),
        "not_converged": sum(not m.report.converged for m in models),
        "largest_gap": max((m.gap for m in models), default=0.0),
        "support_vectors": len(np.unique(np.concatenate([m.rows for m in models] or [np.empty(0, np.int64)]))),
    }
