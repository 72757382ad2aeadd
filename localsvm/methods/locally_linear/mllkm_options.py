"""The options of MLLKM; see localsvm/methods/locally_linear/mllkm.py."""

from __future__ import annotations

from dataclasses import dataclass

from localsvm.errors import OptionError
from localsvm.methods.grids import SIZE, Values
from localsvm.methods.linear.options import ONCE_REMEDY, CostOptions
from localsvm.methods.locally_linear.clustered import Clustered
from localsvm.methods.option import option, solver_option, tolerance_option
from localsvm.naming import opt

LEAST_KEPT = 10
COSTS: Values = (0.1, 1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class LocalOptions(Clustered, CostOptions):
    """Maps, candidates, and how they are looked for."""

    map: str = option(
        "gaussian",
        "--map",
        help="How a linear function of mllkm fades with the distance r from its anchor. exponential: exp(-g r); "
        "gaussian: exp(-g r^2); linear: max(0, 1 - g r); square: max(0, 1 - g r^2); plain: not at all.",
        choices=("exponential", "gaussian", "linear", "square", "plain"),
    )
    componentwise: bool = option(
        False,
        "--componentwise/--no-componentwise",
        help="Let each feature in mllkm fade by its own distance from the anchor.",
    )
    bank_gammas: tuple[float, ...] = option(
        (),
        "--bank-gammas",
        help=f"Gammas g by which the linear functions of mllkm fade, see {opt.map}: one value, a list or a range. All "
        "are candidates together.",
    )
    anchors: str = option(
        "rows",
        "--anchors",
        help=f"Candidates for the anchors of mllkm. rows: all training rows; kmeans: as many k-means centres as "
        f"{opt.clusters} says.",
        choices=("rows", "kmeans"),
    )
    clusters: tuple[float, ...] = option(
        (32.0,),
        "-K",
        "--clusters",
        help="Number of clusters of a method that makes its own, of components (mtl, mlsvm) or of anchors (llsvm, and "
        f"mllkm with {opt.anchors('kmeans')}): one number, or a list to choose from.",
    )
    admit: int = option(
        32, "--admit", help="Number of candidates that mllkm may give weights in addition, in each round."
    )
    online: str = option(
        "none",
        "--online",
        help="What the training looks at only once, in random order. none: nothing; kernels: each kernel; full: each "
        "kernel and each row, so that the rows need not fit in memory.",
        choices=("none", "kernels", "full"),
        later=True,
    )
    kept_rows: int = option(
        5000,
        "--kept-rows",
        help=f"Number of rows that mllkm keeps for each problem with {opt.online('full')}.",
        later=True,
    )
    solver: str = solver_option("auto", "sdca", later=True)
    epochs: int = option(
        5,
        "--epochs",
        help="How often lasvm goes through the rows before its finishing step, or mllkm with "
        f"{opt.solver('sdca')} for each inner solution.",
        later=True,
    )
    tolerance: float = tolerance_option(1e-2)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_clusters()
        if not all(1e-30 <= g <= 1e30 for g in self.bank_gammas):
            raise OptionError(f"{opt.bank_gammas} takes numbers from 1e-30 to 1e30")
        if self.bank_gammas and self.map == "plain":
            raise OptionError(f"{opt.bank_gammas} is for maps that fade; leave it or {opt.map('plain')} out")
        if not 1 <= self.admit < 1 << 31:
            raise OptionError(f"{opt.admit} must be a whole number from 1, not {self.admit}")
        if not LEAST_KEPT <= self.kept_rows < 1 << 31:
            raise OptionError(f"{opt.kept_rows} must be a whole number from {LEAST_KEPT}, not {self.kept_rows}")
        if not 1 <= self.epochs < 1 << 31:
            raise OptionError(f"{opt.epochs} must be a whole number from 1, not {self.epochs}")
        if self.kept_rows != type(self).kept_rows and self.online != "full":
            raise OptionError(f"{opt.kept_rows} is for {opt.online('full')}; give that, or leave {opt.kept_rows} out")
        if self.epochs != type(self).epochs and self.solver != "sdca":
            raise OptionError(
                f"{opt.epochs} of mllkm is for {opt.solver('sdca')}; give that, or leave {opt.epochs} out"
            )
        if self.clusters != type(self).clusters and self.anchors != "kmeans":
            raise OptionError(
                f"{opt.clusters} of mllkm is for {opt.anchors('kmeans')}; give that, or leave {opt.clusters} out"
            )
        if self.solver == "sdca" and self.online != "none":
            raise OptionError(f"{opt.solver('sdca')} is the paper's Algorithm 1; leave it or {opt.online} out")
        if self.online == "full" and self.anchors != "rows":
            raise OptionError(
                f"{opt.online('full')} takes rows for anchors, as they stream by; leave {opt.anchors} out"
            )

    @property
    def remedy(self) -> str:
        """Advice to the user; a single pass over the kernels, and epochs, cannot go on."""
        if self.solver == "sdca":
            return f"leave {opt.solver('sdca')} out"
        return super().remedy if self.online == "none" else ONCE_REMEDY

    @property
    def default_costs(self) -> Values:
        """Costs to choose from; the paper has 100."""
        return COSTS

    @property
    def shift_invariant(self) -> bool:
        """True, as features are made of differences from anchors."""
        return True

    def gammas_of(self, spread: float, features: int) -> Values:
        """Gammas for rows whose squared distances have the mean `spread`."""
        return self.gammas(spread / max(1, features) if self.componentwise else spread)

    def gammas(self, spread: float) -> Values:
        """Gammas of the bank.

        By default g r^2 goes from 0.1 to 100, and where the map is one of r, g r goes from 0.1 to 10. Here r is the
        root mean squared distance of rows, in one feature for component-wise maps. A plain map has none, and gets 1.

        Parameters
        ----------
        spread : r^2.
        """
        import numpy as np

        if self.map == "plain":
            return (1.0,)
        if self.bank_gammas:
            return self.bank_gammas
        unit = spread if 1e-30 < spread < 1e30 else 1.0
        if self.map in ("exponential", "linear"):
            return tuple(float(g) for g in np.geomspace(0.1, 10.0, SIZE) / np.sqrt(unit))
        return tuple(float(g) for g in np.geomspace(0.1, 100.0, SIZE) / unit)

    def axes(self, features: int) -> dict[str, Values]:
        """The number of k-means centres."""
        return {"clusters": self.clusters} if self.anchors == "kmeans" else {}
