"""Multiple kernel learning: a kernel SVM whose kernel is a mixture, learned from a bank (SimpleMKL, SequentialMKL).

For each binary problem: min 1/2 (sum_m |f_m|)^2 + C sum_i max(0, 1 - y_i sum_m f_m(x_i)), f_m in the RKHS of kernel m.
The norms |f_m| are the weights of the kernels, of which few are above 0. The bank has Gaussians and polynomials of all
variables, and of each (localsvm/kernels/bank.py). There is no offset. See localsvm/solvers/mkl.py for both solvers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from localsvm.errors import OptionError
from localsvm.kernels import Kernel
from localsvm.kernels._kernels import padded
from localsvm.kernels.bank import KernelBank
from localsvm.methods.bank_predictor import BankPredictor
from localsvm.methods.base import CellSize, Fit, Fitted, Predictor, Prepared, Purpose, State, System, View, option
from localsvm.methods.cell import Cell, Job, fill_held_out
from localsvm.methods.clustered import KERNELS, stream
from localsvm.methods.kernel_expansion import KernelModel, pack_models, report_of, rows_pieces
from localsvm.methods.linear_options import ONCE_REMEDY, CostOptions
from localsvm.methods.saved import table
from localsvm.solvers._smo import DualReport
from localsvm.solvers.mkl import Mixture, sequential_mkl, simple_mkl
from localsvm.store.pieces import Piece, Pieces, floats64, index, pointer
from localsvm.targets.base import Target

Floats = NDArray[np.float64]
DEGREES = (1, 2, 3)
MOST_KERNELS = 20_000
SQUARES = 8  # matrices of a solve, and of the kernel that is being made, beside those that are kept


@dataclass(frozen=True)
class MultipleKernelSVM(CostOptions):
    """Options of the method."""

    name: ClassVar[str] = "mkl"

    tolerance: float = option(
        1e-2,
        "-e",
        "--tolerance",
        help="Stop at this KKT violation (offset), gap/(C n) (none) or gap/objective (linear).",
    )
    mkl: str = option(
        "sequential",
        "--mkl",
        help="How mkl looks for kernels: sequential, from few to more, or simple, among all at once.",
        choices=("sequential", "simple"),
    )
    bank: str = option(
        "each",
        "--bank",
        help="Kernels that mkl chooses from: those of all variables and of each, or only the former (whole).",
        choices=("each", "whole"),
    )
    online: str = option(
        "none",
        "--online",
        help="See each kernel once, in random order (kernels), or each kernel and row, as a file streams by (full).",
        choices=("none", "kernels"),
    )
    widths: tuple[float, ...] = option(
        (0.5, 1.0, 2.0, 5.0, 7.0, 10.0, 12.0, 15.0, 17.0, 20.0),
        "--widths",
        help="Widths w of the Gaussians exp(-|x-y|^2 / 2w^2) in the bank of mkl.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(1e-100 <= width <= 1e100 for width in self.widths):
            raise OptionError("--widths takes positive numbers, from 1e-100 to 1e100")
        if self.online != "none" and self.mkl != "sequential":
            raise OptionError("--mkl simple begins with all kernels; leave --online or --mkl out")

    @property
    def remedy(self) -> str:
        """A pass over the kernels ends where it ends."""
        return super().remedy if self.online == "none" else ONCE_REMEDY

    @property
    def kinds(self) -> tuple[Kernel, ...]:
        """The kernels that are taken of all variables, and of each: Gaussians, and polynomials (x.y + 1)^p."""
        gaussians = tuple(Kernel("gaussian", 0.5 / width**2) for width in self.widths)
        return (*gaussians, *(Kernel("polynomial", 1.0, 1.0, degree) for degree in DEGREES))

    def prepare(self, cell: Cell, view: View) -> Prepared:
        """The bank: all folds, problems and costs share it."""
        return PreparedBank(self, cell)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The union of the support vectors, and the models' coefficients and kernels."""
        models = [kernel_model(fit) for fit in fits]
        state = pack_models(cell.X, cell.Y, models)
        del state["model_gamma"]
        return Fitted(state | mixed_kernels(fits), report_of(models, cell))

    def predictor(self, state: State, target: Target, n_features: int) -> Predictor:
        """Decision functions of a saved cell."""
        return BankPredictor(state, self.kinds, target, n_features)

    def pieces(self, target: Target, dense: bool) -> Pieces:
        """Support vectors, a table of models, their coefficients, and their kernels with weights and divisors."""
        return {
            **rows_pieces(dense),
            **table("problem", "fold", "cost", "gap", "bias", "iterations", "converged"),
            "coef_ptr": pointer("m", ends="k"),
            "coef_index": index("k", below="s"),
            "coef": floats64("k"),
            "kernel_ptr": pointer("m", ends="q"),
            "kernel_variable": index("q", below="features", low=-1),
            "kernel_kind": Piece("i4", ("q",), low=0, high=len(self.kinds) - 1),
            "kernel_weight": floats64("q", low=0),
            "kernel_scale": floats64("q", low=np.finfo(np.float64).tiny),
        }

    def memory(self, size: CellSize) -> int:
        """Kernel matrices, of which one is kept, rows, and solutions. OptionError where kernels are too many."""
        kernels = len(self.kinds) * (1 + (size.features if self.bank == "each" else 0))
        if kernels > MOST_KERNELS:
            raise OptionError(
                f"{size.features:,} variables have {kernels:,} kernels, and -m mkl takes up to {MOST_KERNELS:,}; give "
                "--bank whole"
            )
        matrix = 8 * padded(size.rows) ** 2
        return (1 + SQUARES) * matrix + 24 * size.rows * size.features + 48 * size.rows * size.solutions


class PreparedBank(Prepared):
    """The bank of a cell's rows."""

    def __init__(self, method: MultipleKernelSVM, cell: Cell) -> None:
        self.method, self.cell = method, cell
        self._bank = KernelBank(cell.X, method.kinds, method.bank == "each", cell.room)

    def at(self, setting: dict[str, float], purpose: Purpose) -> BankSystem:
        """There is one setting."""
        return BankSystem(self.method, self.cell, self._bank)


class BankSystem(System):
    """Every binary problem of a cell over its bank. Held-out rows stay in it with cost 0, and so get their values."""

    def __init__(self, method: MultipleKernelSVM, cell: Cell, bank: KernelBank) -> None:
        self.method, self.cell, self.bank = method, cell, bank

    def solve(self, jobs: Sequence[Job], starts: Sequence[Mixture | None], roughness: float) -> list[list[Mixture]]:
        """One by one, as they share the matrices; each cost from the solution of the one before."""
        found = []
        for job, start in zip(jobs, starts, strict=True):
            path: list[Mixture] = []
            for cost in job.costs:
                path.append(self._solve(job, float(cost), path[-1] if path else start, roughness))
            found.append(path)
        return found

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[Mixture]], out: Floats) -> None:
        """They come with the solutions."""
        fill_held_out(self.cell, jobs, out, lambda i, c, rows: solutions[i][c].f[rows])

    def final(self, jobs: Sequence[Job], starts: Sequence[Mixture | None]) -> list[Mixture]:
        """Solved on to the tolerance."""
        return [self._solve(job, float(job.costs[0]), start, 1.0) for job, start in zip(jobs, starts, strict=True)]

    def _solve(self, job: Job, cost: float, start: Mixture | None, roughness: float) -> Mixture:
        y, weight = self.cell.Y[:, job.problem], cost * self.cell.training_weight(job.fold)
        sides = np.unique(y[weight > 0])
        if not (-1.0 in sides and 1.0 in sides):
            return constant(float(sides.sum()), len(y))
        begun = start if start is not None and len(start.names) else None
        tolerance = roughness * self.method.tolerance
        if self.method.mkl == "simple":
            return simple_mkl(self.bank, y, weight, tolerance, begun)
        once = self.method.online == "kernels"
        parts = self.bank.parts(stream(self.cell.random, KERNELS)) if once else ()
        return sequential_mkl(self.bank, y, weight, tolerance, begun, parts)


def constant(side: float, n: int) -> Mixture:
    """The solution for rows of one side, which are unanimous, or for none."""
    nothing = np.empty(0)
    return Mixture(np.empty(0, np.int64), nothing, np.zeros(n), np.full(n, side), 0.0, 0.0, 0, 0, True)


def kernel_model(fit: Fit) -> KernelModel:
    """A solution as an expansion's, apart from its kernel."""
    found: Mixture = fit.solution
    rows = np.flatnonzero(found.b)
    bias = 0.0 if len(found.names) else float(found.f[0])
    report = DualReport(found.dual, found.primal - found.dual, 0.0, bias, found.solves, found.converged)
    job = fit.job
    return KernelModel(
        job.problem, job.fold, Kernel(), float(job.costs[0]), found.gap, report, rows.astype(np.int64), found.b[rows]
    )


def mixed_kernels(fits: Sequence[Fit]) -> State:
    """The kernels of some models: whose variable they are of, their kind, weight, and what they are divided by."""
    each = [(fit.system.bank, int(name), weight) for fit in fits for name, weight in zip(*mixture(fit), strict=True)]
    what = np.asarray([bank.what(name) for bank, name, _ in each], np.int32).reshape(-1, 2)
    return {
        "kernel_ptr": np.cumsum([0, *(len(fit.solution.names) for fit in fits)]).astype(np.int64),
        "kernel_variable": np.ascontiguousarray(what[:, 0]),
        "kernel_kind": np.ascontiguousarray(what[:, 1]),
        "kernel_weight": np.asarray([weight for *_, weight in each], np.float64),
        "kernel_scale": np.asarray([bank.scale(name) for bank, name, _ in each], np.float64),
    }


def mixture(fit: Fit) -> tuple[NDArray[np.int64], Floats]:
    """The kernels of a solution, and their weights."""
    return fit.solution.names, fit.solution.beta
