"""Records of a journal, as arrays: a trained cell, the scores of a trial, how a coarse cell is divided."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.methods.fit_report import FitReport
from localsvm.runs.cells.shared import SharedCells
from localsvm.runs.cells.work import CellReport, CellResult
from localsvm.selection.cross_validation import Pick, Point, Scores

TABLE = ("settings", "costs", "loss", "best", "values")  # of a cell's grid and its best point
DIVISION = "division"  # the name of the last record of a coarse cell; the others are named by their cells
RECORDS = "records 14"  # how they are packed: a journal of other records belongs to another run
TUPLES = ("weight", "wrong", "class_weight", "class_wrong", "ends", "chosen", "gains")  # of a report

Record = dict[str, NDArray[Any]]


def division_record(cells: SharedCells) -> Record:
    """Record of a coarse cell beside its cells.

    It has "state/" and the arrays of the partition inside, "sizes" (cells,) int64, "copies" how many rows are copies of
    others, and "fresh" how many rows say what the error is.
    """
    state = {f"state/{name}": array for name, array in cells.state.items()}
    numbers = {"sizes": cells.sizes, "copies": np.asarray(cells.copies), "fresh": np.asarray(cells.fresh_rows)}
    return state | numbers


def held(cells: SharedCells, cell: int) -> Record:
    """Rows of a cell for calibration, and for the weights of members, in the order of `CellResult.values`.

    They are "held/y", "held/mass", "held/numbers", "held/fresh" and "held/mates" where the run has them, and
    "held/behind"; see `SharedCells`.
    """
    rows = cells.rows()[cell]
    shared = {"y": cells.y, "mass": cells.mass, "fresh": cells.fresh, "mates": cells.mates}
    arrays = {f"held/{name}": array.array[rows] for name, array in shared.items() if array is not None}
    return arrays | {"held/behind": np.asarray(cells.behind[cell]), "held/numbers": cells.numbers[rows]}


def pack(result: CellResult) -> Record:
    """A cell's result as arrays, for the journal."""
    arrays: Record = {f"state/{name}": array for name, array in result.state.items()}
    arrays |= {name: getattr(result, name) for name in TABLE}
    texts = {"names": json.dumps(result.names).encode(), "report": json.dumps(asdict(result.report)).encode()}
    arrays |= {name: np.frombuffer(text, np.uint8) for name, text in texts.items()}
    return arrays | {"index": np.asarray(result.index)}


def unpack(arrays: Record) -> CellResult:
    """A cell's result from a journal's record."""
    state = {name.removeprefix("state/"): array for name, array in arrays.items() if name.startswith("state/")}
    names, report = (json.loads(arrays[name].tobytes()) for name in ("names", "report"))
    fit = FitReport(**(report["fit"] | {"support": tuple(report["fit"]["support"])}))
    tuples = {name: tuple(report[name]) for name in TUPLES}
    known = CellReport(**(report | {"fit": fit} | tuples))
    return CellResult(int(arrays["index"]), state, known, tuple(names), *(arrays[name] for name in TABLE))


def pack_scores(scores: Scores) -> Record:
    """The scores of one trial as arrays, for the journal, without what is kept for the final solutions."""
    best = np.asarray([pick.best[:3] for pick in scores.picks])
    return {"loss": scores.loss, "best": best if len(best) > 1 else best[0], "crossed": np.asarray(scores.crossed)}


def unpack_scores(arrays: Record, trial: int) -> Scores:
    """The scores of this trial from a journal's record; ValueError where they are none."""
    table, best, crossed = arrays["loss"], np.atleast_2d(arrays["best"]), int(arrays["crossed"])
    if table.dtype != np.float64 or table.ndim != 2 or best.shape[1] != 3 or min(trial, best[:, 2].min()) < 0:
        raise ValueError("no scores of a trial")
    setting = trial % max(1, len(table) // max(1, len(best) - crossed))
    picks = [Pick(Point(loss, tie, int(cost), setting), None) for loss, tie, cost in best.tolist()]
    if len(picks) == 1 and table[trial, picks[0].best.cost] != picks[0].best.loss:
        raise ValueError("no scores of a trial")
    return Scores(table, crossed=crossed).picked(picks)
