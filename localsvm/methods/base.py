"""The contract of a learning method: what it is given, what it gives back, and who calls it when.

Selection (localsvm/selection/cross_validation.py) owns folds, grid, search and the choice of a point. For one cell it
asks a method for its `grid`, lets it `prepare` what all settings of the grid share, takes from that a `System` at each
setting, and has that solve its jobs and fill in the held-out values. In the end the method packs the chosen solutions
into the arrays that the model file keeps, and makes a `Predictor` of them again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self, TypeAlias

from localsvm.errors import OptionError
from localsvm.methods.fit_report import FitReport
from localsvm.methods.grids import Grid
from localsvm.naming import opt
from localsvm.store.pieces import Pieces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from localsvm.data.blocks.dataset import Examples
    from localsvm.features.metric import Metric
    from localsvm.kernels.scratch import Scratch
    from localsvm.methods.cell import Cell, Job
    from localsvm.methods.cell_size import CellSize
    from localsvm.methods.streams import Descending, LearningOnce
    from localsvm.targets.base import Target
    from localsvm.targets.losses import Loss

WHOLE = -1  # in place of a fold: no row is left out
ALL = -1  # in place of a problem: all of them at once
State: TypeAlias = "dict[str, NDArray[Any]]"  # the arrays of a cell that the model file keeps, by name
Solution = Any  # each method's own; it must survive pickle
Start = Any  # what a method keeps of a solution to begin another one from; likewise


def _scratch() -> Scratch:
    from localsvm.kernels.scratch import Scratch

    return Scratch()


@dataclass(frozen=True)
class View:
    """Rows and labels that `prepare` may look at: rows outside `fold`, and labels of `problem`.

    Attributes
    ----------
    fold : the fold left out, WHOLE for all rows. With sees = "rows" it is WHOLE, and no label may be looked at.
    problem, settings : the problem whose labels may be looked at, ALL for all of them; how many settings will be used.
    scratch : memory for what a system of this view keeps, such as its kernel; what a call needs is in the cell's.
    """

    fold: int = WHOLE
    problem: int = ALL
    settings: int = 1
    scratch: Scratch = field(default_factory=_scratch, repr=False, compare=False)


@dataclass(frozen=True)
class Purpose:
    """The use that is made of a system.

    Attributes
    ----------
    cost : the largest C, for all rows of the cell; nan where the grid has no costs.
    final : its solutions become the model.
    """

    cost: float
    final: bool = False


class System(ABC):
    """The problems of a cell at one setting of the grid."""

    @abstractmethod
    def solve(self, jobs: Sequence[Job], starts: Sequence[Solution | None], roughness: float) -> list[list[Solution]]:
        """Solutions of each job, one for each cost.

        Parameters
        ----------
        jobs : problems without a fold, all of one view and for the same stretch of the costs.
        starts : for each job its solution at the last cost before, None where the costs are the first.
        roughness : how many times the method's own tolerance is enough for solutions that are only compared.
        """

    @abstractmethod
    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[Solution]], out: NDArray[np.float64]) -> None:
        """Fill in the decision values of the rows that each job's fold holds out, by what `solve` was given and gave.

        out : (costs, values, n) float64, see Target.n_values; only places of the jobs and held-out rows are written.
        """

    def final(self, jobs: Sequence[Job], starts: Sequence[Start | None]) -> list[Solution]:
        """The solutions to keep, for jobs of one cost each.

        By default fold models are kept as they are, and what has no start is solved from nothing. A job's start is
        what `start` or `whole_start` gave, None without cross-validation.
        """
        return [self.solve([job], [None], 1.0)[0][0] if s is None else s for job, s in zip(jobs, starts, strict=True)]

    def start(self, solution: Solution) -> Start:
        """Part of a solution to keep for `final`: no more than that needs, as it may travel between processes."""
        return solution

    def whole_start(self, starts: Sequence[Start]) -> Start | None:
        """Start of a problem of all rows, made of what was kept of it without each fold; None to begin from nothing."""
        return None


class Prepared(ABC):
    """Data that all settings of a cell's grid share: distances, centres, neighbours."""

    @abstractmethod
    def at(self, setting: dict[str, float], purpose: Purpose) -> System:
        """The system at a setting: values by name of the grid's parameters other than the cost."""


class Fit(NamedTuple):
    """A solution to keep, what it solves, and the system it was found by."""

    system: Any  # the method's own kind of System
    job: Job
    solution: Solution


@dataclass(frozen=True)
class Fitted:
    """A fitted cell: the arrays that the model file keeps, and what the summary reports."""

    state: State
    report: FitReport = field(default_factory=FitReport)


class Predictor(Protocol):
    """Decision function of a saved cell. Several threads may call it; what a row gets depends on that row alone."""

    def decision_function(self, X: Examples) -> NDArray[np.float64]:
        """Decision values (n, problems) float64 of scaled rows X (n, d), as `combine` makes them, or probabilities."""


class Method(ABC):
    """A learning method: a frozen dataclass whose fields, made by `option`, determine its models.

    Attributes
    ----------
    name, tiny : what -m calls it; options of `lsvm-train` that leave little to choose, for tests.
    shows_support : a cell's state has the rows that a picture marks, under "support".
    sees : what `prepare` looks at, and hence who shares what it prepares: "rows", no labels, for all folds and
        problems; "fold", the rows and labels outside one fold, for all problems; "problem", the same for one problem.
    joint, gap_unit : a job is about all classes at once; the unit of duality gaps in reports and models.
    costs_at_once : how many costs of a job are solved, and in memory, before its held-out values are looked at.
    divides : without -P, data larger than the cell size are cut into Voronoi cells; else the rows stay one cell.
    takes_factors : problems may weigh classes by factors of their own; see `Target.factors`.
    learns_metric, default_metric : --metric is refused, as it learns its own; what it is unless given, for distances.
    """

    name: ClassVar[str]
    tiny: ClassVar[str] = ""
    shows_support: ClassVar[bool] = False
    sees: ClassVar[Literal["rows", "fold", "problem"]] = "rows"
    joint: ClassVar[bool] = False
    costs_at_once: ClassVar[int] = 1
    divides: ClassVar[bool] = True
    gap_unit: ClassVar[str] = "C n"
    takes_factors: ClassVar[bool] = False
    learns_metric: ClassVar[bool] = False
    default_metric: ClassVar[str] = "none"

    def check_choices(self) -> None:
        """Raise OptionError where an option is none of its choices; other names of a choice become that choice."""
        for item in fields(self):  # type: ignore[arg-type]
            choices, value = item.metadata["choices"], getattr(self, item.name)
            if choices and value in item.metadata["aliases"]:
                object.__setattr__(self, item.name, value := item.metadata["aliases"][value])
            if choices and value not in choices:
                raise OptionError(f"{getattr(opt, item.name)(value)}: choose one of {', '.join(choices)}")

    @property
    def distance(self) -> str:
        """Distance that the method measures by, "euclidean" or "manhattan"."""
        return self.distances[0]

    @property
    def distances(self) -> tuple[str, ...]:
        """Distances that it may measure by; the first one, unless another is chosen."""
        return ("euclidean",)

    def measuring(self, distance: str) -> Self:
        """The method, with the distance settled, of those that it may measure by."""
        return self

    def seeing(self, columns: int) -> Self:
        """The method with what depends on the number of columns of its rows settled."""
        return self

    @property
    def value_losses(self) -> tuple[Loss, ...]:
        """Losses of values, one for each problem, where the method's loss is one of these; () for classes."""
        return ()

    @property
    def novel_share(self) -> float | None:
        """Share of new rows that may be called novel, where the method learns rows of one kind; None elsewhere."""
        return None

    @property
    def shift_invariant(self) -> bool:
        """True where only differences of rows count: columns far from 0 may then be read from an origin."""
        return False

    @property
    def through_origin(self) -> bool:
        """True where every decision function is 0 at the origin, and an option would add a constant."""
        return False

    @property
    def remedy(self) -> str:
        """Advice to the user whose models did not converge."""
        return f"scale the data ({opt.scale('std')}), bound C ({opt.cost}), or loosen the tolerance ({opt.tolerance})"

    def metrics(self, column: Callable[[str], NDArray[Any]], models: int) -> list[Metric]:
        """Metrics that so many models learned to measure by, from a file's arrays by name; none where they did not."""
        return []

    def is_point(self) -> bool:
        """Whether the options leave one point of the grid."""
        return False

    def default_cell_size(self, rows: int, columns: int = 1, error: float | None = None) -> int:
        """Default of -c for so many rows and columns in all; error: share of fresh rows decided wrongly, if known."""
        return 2000

    def default_select(self, n_classes: int) -> str:
        """Default of --select: "vote", which keeps fold models, for two classes; "refit" for more, and for values."""
        return "vote" if n_classes == 2 else "refit"

    @property
    def descending(self) -> Descending | None:
        """The method in passes over rows that are not held, None where its options ask for none."""
        return None

    @property
    def learning_once(self) -> LearningOnce | None:
        """The method in one pass over rows that are not held, None where its options ask for none."""
        return None

    def hyperplanes(self, state: State, features: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Weights (models, features) and offsets (models,) of a saved cell; None where its models are not linear."""
        return None

    def check(self, size: CellSize) -> None:
        """Raise OptionError where the options do not suit cells of this size."""
        return None

    @abstractmethod
    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        """The grid of one cell. All cells of a run, even one of a single row, have the same names and as many settings.

        It must not depend on held-out labels. average_rows : mean of all cells. folds : small cells may have fewer.
        """

    @abstractmethod
    def prepare(self, cell: Cell, view: View) -> Prepared:
        """Prepare what the settings of the grid share, and look at no more of the cell than the view says."""

    @abstractmethod
    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        """The arrays that the model file keeps of some solutions, and their summary.

        All cells give the same names, each with the same dtype and, but for the first axis, the same shape.
        """

    @abstractmethod
    def predictor(self, state: State, target: Target, n_features: int) -> Predictor:
        """The decision functions of a saved cell, whose rows have n_features columns."""

    def pieces(self, target: Target, dense: bool) -> Pieces | None:
        """Description of the arrays of a saved cell: files are checked against it before `predictor` sees them.

        With None numbers have to be finite, and columns of the table in localsvm/methods/saved.py as described there.
        dense: whether rows are dense.
        """
        return None

    def variants(self, target: Target, dense: bool) -> tuple[Pieces, ...]:
        """All descriptions that the arrays of a saved cell may fit, chosen by their names; the first is `pieces`."""
        return () if (pieces := self.pieces(target, dense)) is None else (pieces,)

    @abstractmethod
    def memory(self, size: CellSize) -> int:
        """Bytes that a worker needs for a cell of this size."""
