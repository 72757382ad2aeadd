"""Arrays of saved cells: the table of models that methods share, and the check before they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from localsvm.methods.base import Method
from localsvm.store.pieces import Piece, Pieces, floats64, index

if TYPE_CHECKING:
    from localsvm.store.checking import Cells
    from localsvm.targets.base import Target

# of each model: m in a cell. "problems", "folds", "classes" and "features" are known of the run
TABLE: Pieces = {
    "model_problem": index("m", below="problems"),
    "model_fold": index("m", below="folds", low=-1),
    "model_gamma": floats64("m", low=0),
    "model_cost": floats64("m", low=0),
    "model_gap": floats64("m"),
    "model_bias": floats64("m"),
    "model_iterations": Piece("i8", ("m",), low=0),
    "model_converged": Piece("u1", ("m",), high=1),
}


def table(*names: str) -> Pieces:
    """Some columns of the table of models, without their prefix."""
    return {f"model_{name}": TABLE[f"model_{name}"] for name in names}


def check_of(method: Method, target: Target, dense: bool, known: Mapping[str, int]) -> Callable[[Cells], object]:
    """Check that raises Unsound unless saved cells are as the method says. known: the lengths of TABLE's comment."""
    from localsvm.store.checking import Cells, check_cells, check_values

    variants = method.variants(target, dense)

    def check_common(cells: Cells) -> None:
        for name, array in cells.arrays.items():
            check_values(f"/cells/{name}", Piece(array.dtype.str, ()), array)
        common = {name: TABLE[name] for name in TABLE.keys() & cells.arrays.keys()}
        arrays = {name: cells.arrays[name] for name in common}
        check_cells("/cells", common, Cells(arrays, cells.ptr, cells.first), known)

    def check_pieces(cells: Cells) -> None:
        fitting = [pieces for pieces in variants if pieces.keys() == cells.arrays.keys()]
        check_cells("/cells", (fitting or variants)[0], cells, known)

    return check_pieces if variants else check_common
