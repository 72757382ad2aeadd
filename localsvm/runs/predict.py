"""A prediction run: stream the rows, find the cells that answer for them, evaluate, decide."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from localsvm.data.blocks.dataset import Dataset, Examples, as_examples, between, size_of, within_reach
from localsvm.data.blocks.numbering import signatures
from localsvm.data.readers.libsvm import blocks_of, read_blocks
from localsvm.data.readers.pieces import Counts, TextPiece
from localsvm.data.readers.tables import is_table
from localsvm.errors import DataError, ModelError
from localsvm.features.chain import apart
from localsvm.features.columns import KeptColumns
from localsvm.features.learned import about_metric, members_of
from localsvm.memory import Budget, affordable_threads
from localsvm.methods.base import Predictor
from localsvm.methods.saved import check_of
from localsvm.naming import opt
from localsvm.partition import restore
from localsvm.runs.prediction.extent import BLOCK_BYTES, BUILT, ROW_BLOCK, Extent
from localsvm.runs.prediction.table_rows import TableNotes, TableRows
from localsvm.runs.preparation.stored import (
    calibration_of,
    copies_of,
    coverage_of,
    front_of,
    options_of,
    stored_chain,
    target_of,
)
from localsvm.store.container import AnyPath
from localsvm.store.model import CellCheck, Model, load_model
from localsvm.store.pieces import Unsound
from localsvm.targets.base import Target
from localsvm.targets.classification import Classification, classes_of, known_recalls, recalls
from localsvm.targets.conformal import Coverage, label_sets
from localsvm.targets.copies import KnownRows
from localsvm.targets.detection import Detection
from localsvm.targets.probabilities import Calibration
from localsvm.targets.regression import Regression, regression_of

STRIP = 1 << 12  # rows of a cell that a thread decides at once


@dataclass(frozen=True)
class Predicted:
    """Predictions of a block of rows, in input order.

    Attributes
    ----------
    labels : (n,) float64 predicted: with probabilities the most probable ones. Of values (n, levels) where the model
        has several.
    decisions : (n, columns) float64 decision values, see `Target.shown`; (n, 0) with probabilities.
    y : (n,) float64 labels of the file.
    probabilities : (n, classes) float64, None where they were not asked for.
    intervals : (n, 2) float64 of values, or
    sets : (n, classes) bool of classes, where a coverage was asked for; else None.
    ids : the texts of the columns that name the rows of a table; None where there are none.
    copies : places of the rows that have the label of training rows that they equal; None where the model answers for
        all.
    """

    labels: NDArray[np.float64]
    decisions: NDArray[np.float64]
    y: NDArray[np.float64]
    probabilities: NDArray[np.float64] | None = None
    intervals: NDArray[np.float64] | None = None
    sets: NDArray[np.bool_] | None = None
    ids: list[tuple[str, ...]] | None = None
    copies: NDArray[np.intp] | None = None


class Seen(NamedTuple):
    """Rows as cells see them, and those that equal training rows; None where the model answers for these, too."""

    mapped: Examples
    known: KnownRows | None


class LocalModel:
    """A trained model that predicts; a context manager over its file, for one thread's use.

    Parameters
    ----------
    path : of the model file, or its `Image` in memory.
    jobs : threads that predict, of no influence on the result.
    verify : whether to compare the whole file with its checksums first.
    memory : bytes that the run may use, None for no bound; of no influence on the result.

    Attributes
    ----------
    chain : what happens to rows before cells see them; values in columns that it does not know are ignored.
    members : geometries of its repeats, where they have different ones; else None.
    zero_based : whether indices of the training file started at 0.
    partition, target : which cells answer for a row, and what becomes of their decision functions.
    calibration : what makes probabilities of decision values, None for a model without.
    coverage : what makes intervals or sets of labels, None for a model without.
    copies : labels that copies of training rows get; None for a model that answers for them, too.
    detected : the front of weights, and what was chosen of it, None for a model of one weight; see `keep`.
    method : that the cells were trained by.
    table : reader of the rows of a table; None for a model that was trained on LIBSVM text.
    file : the open `store.model.Model`.

    Raises
    ------
    ModelError : the file cannot be read, or has a method or partition that this version does not know.
    RunError : not even the decision function of one cell fits into the memory.
    """

    def __init__(self, path: AnyPath, jobs: int = 1, verify: bool = True, memory: int | None = None) -> None:
        self._budget = None if memory is None else Budget(memory)
        self.file: Model = load_model(path, verify, self._adopt)
        self._cache: OrderedDict[tuple[int, bool], Predictor] = OrderedDict()
        self._cached_bytes: dict[tuple[int, bool], int] = {}
        self._jobs = jobs = affordable_threads(jobs)
        self._extent = Extent.within(self._budget, self.file, jobs, self.target.n_problems)
        self._threads = ThreadPoolExecutor(self._extent.threads)

    def _adopt(self, file: Model) -> CellCheck:
        """Take over what the file says outside of its cells, if that makes sense; return the check of the cells."""
        config, known, dense = options_of(file)  # rows are read dense if those of training were
        self.zero_based = config.zero_based
        columns = KeptColumns.from_state(file.columns, known, file.config.get("width"), dense)
        self.chain = stored_chain(columns, file)
        learned = about_metric(file.config) or {}
        self.members = members_of(self.chain.metric, learned)
        mapped = self.chain.mapped_columns if self.members is None else self.members.width
        weights = np.asarray(learned["weights"]) if "weights" in learned else None
        self.partition = restore(*file.partition, mapped, file.n_cells, self.members, weights)
        if config.times != len(self.partition.cells_by_repeat):
            raise Unsound("/@config: the option repeats is not that of /partition")
        if self.members is not None and any(config.method.measuring(d).distance != d for d in self.members.distances):
            raise Unsound("/@config: the kernel does not measure as the members do")
        self._width, self._repeat = mapped, _repeats(self.partition.cells_by_repeat)
        self.target = target_of(file, config)
        self.calibration = calibration_of(file, self.target.n_problems)
        self.coverage = coverage_of(file)
        self.copies = copies_of(file, self.target)
        self.detected = front_of(file, config, self.target)
        if self.detected is not None:
            self.target = self.detected.target
        self.method = config.method
        self.table = TableRows.of(file.config, file.labels, self.chain.width)
        lengths = {"features": mapped, "folds": config.folds, "classes": len(file.labels)}
        return check_of(config.method, self.target, dense, lengths | {"problems": self.target.n_problems})

    def __enter__(self) -> LocalModel:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._threads.shutdown()
        self.file.close()

    @property
    def classes(self) -> Classification:
        """The target of a model of classes; ModelError for one of values."""
        return classes_of(self.target)

    def predict(self, X: Examples) -> NDArray[np.float64]:
        """Labels (n,) float64 of unscaled rows X (n, d), as `decision_function` takes them.

        Of values they are (n, levels) where the model has several.
        """
        return self.target.decide(self.decision_function(X))

    def decision_function(self, X: Examples) -> NDArray[np.float64]:
        """Decision values (n, problems) float64 of unscaled rows; see targets.classification for the problems.

        Rows are given in float64 where values lie far from 0.

        Where several cells answer for a row, their values are clipped to [-1, 1] and averaged with the routing's
        weights.
        """
        return self._decide(self._seen(X), 1)

    def values_of_mapped(self, Z: Examples) -> NDArray[np.float64]:
        """Values of `decision_function`, (n, problems) float64, of rows as cells see them, which `chain` gives."""
        return self._of_mapped(Z, np.zeros((Z.shape[0], self.target.n_problems)), None)

    def calibrated(self) -> Calibration:
        """The calibration; raises ModelError for a model without one."""
        if self.calibration is None:
            raise ModelError(
                f"{self.file.path}: no probabilities in this model; train it again with {opt.probability(1)}"
            )
        return self.calibration

    def covering(self) -> Coverage:
        """What makes intervals or sets of labels; raises ModelError for a model without."""
        if self.coverage is None:
            what = f"no coverage was promised in training; train it again with {opt.coverage(0.9)}"
            raise ModelError(f"{self.file.path}: {what}")
        return self.coverage

    def keep(self, false_alarm: float) -> None:
        """Decide so that false alarms stay below a bound, from now on.

        ModelError for a model without several weights, and what `Front.choose` raises.
        """
        if self.detected is None:
            two = len(self.file.labels) == 2
            remedy = f"train it again with {opt.roc} or {opt.scoring('npl')}" if two else "leave it out"
            raise ModelError(f"{self.file.path}: {opt.false_alarm} is for models of several weights; {remedy}")
        self.detected = self.detected.keeping(false_alarm)
        self.target = self.detected.target

    def intervals(self, X: Examples, level: float) -> NDArray[np.float64]:
        """Intervals (n, 2) float64 of unscaled rows that hold their values with this probability.

        Raises what `covering` and `Coverage.margin` raise.
        """
        return self._intervals(self._decide(self._seen(X), 1), level)

    def sets(self, X: Examples, level: float) -> NDArray[np.bool_]:
        """Sets of labels (n, classes) of unscaled rows that hold the true one with this probability; none is empty.

        Raises what `covering` and `Coverage.margin` raise.
        """
        return label_sets(self.probabilities(X), self.covering().margin(level))

    def probabilities(self, X: Examples) -> NDArray[np.float64]:
        """Probabilities (n, classes) float64, which sum to 1, of unscaled rows; the classes are as in `target.labels`.

        Where several cells answer for a row, their probabilities are averaged with the routing's weights. Raises what
        `calibrated` raises.
        """
        return self._probabilities(self._seen(X), 1)

    def read(
        self, path: AnyPath, *, zero_based: bool = False, tell: Callable[[Counts], None] | None = None,
        notes: TableNotes | None = None,
    ) -> Iterator[Dataset]:  # fmt: skip
        """Rows of a file, block by block, as `predict_blocks` takes them; see `read_blocks`, or `TableRows`."""
        if self.table is not None:
            return self.table.blocks(str(path), self._jobs, notes or TableNotes())
        return read_blocks(
            path, self.chain.reading, zero_based=zero_based, jobs=self._jobs, tell=tell,
            block_bytes=self._extent.text, longest=self._extent.longest,
        )  # fmt: skip

    def table_rows(self, path: str) -> TableRows | None:
        """Reader of a table's rows, for a model that was trained on one; None for LIBSVM text.

        ModelError for a table and a model of LIBSVM text, whose columns have no names.
        """
        if self.table is None and is_table(path):
            raise ModelError(
                f"{self.file.path}: the model was trained on LIBSVM text, whose columns have no names, and {path} is a "
                "table; train on a table"
            )
        return self.table

    def parse(self, pieces: Iterable[TextPiece], tell: Callable[[Counts], None]) -> Iterator[Dataset]:
        """Rows of pieces of a text, block by block; `tell` is called with what the text of each block holds."""
        for counts, block in blocks_of(pieces, self.chain.reading):
            if counts.rows:
                tell(counts)
                yield block

    def _seen(self, X: Examples, read: bool = False) -> Seen:
        """Rows as cells see them, of unscaled ones, or of those that a reader gives."""
        kept = X if read else self.chain.as_read(X)
        known = None if self.copies is None else self.copies.known(signatures(kept, self.chain.columns.kept))
        return Seen(self.chain.apply(kept, read=True, in_place=not read and apart(kept, X)), known)

    def _decide(self, rows: Seen, number: int) -> NDArray[np.float64]:
        """Decision values; number: of the first row, for messages."""
        values = self._answers(rows.mapped, np.zeros((rows.mapped.shape[0], self.target.n_problems)), number)
        if rows.known is not None:
            rows.known.decide(self.classes, values)
        return values

    def _probabilities(self, rows: Seen, number: int) -> NDArray[np.float64]:
        out = np.zeros((rows.mapped.shape[0], len(self.classes.labels)))
        values = self._answers(rows.mapped, out, number, self.calibrated())
        shares = np.asarray(values / values.sum(axis=1, keepdims=True))
        if rows.known is not None:
            rows.known.expect(shares)
        return shares

    def predict_blocks(
        self, blocks: Iterable[Dataset], probabilities: bool = False, number: int = 1, coverage: float | None = None
    ) -> Iterator[Predicted]:
        """Predictions for unscaled rows, in larger blocks than are given; each row once, in order.

        number: of the first row, for messages. coverage : of intervals or sets of labels; None for none.
        """
        of_values = isinstance(self.target, Regression)
        for block in merged(blocks, self._extent.rows, self._extent.size):
            read = block.columns is not None or block.shift is not None  # from `read`
            rows, first, number = self._seen(block.X, read), number, number + len(block.y)
            copies = None if rows.known is None else rows.known.rows
            if probabilities or (coverage is not None and not of_values):
                p = self._probabilities(rows, first)
                labels = self.classes.labels[p.argmax(axis=1)]
                sets = None if coverage is None else label_sets(p, self.covering().margin(coverage))
                shown = np.empty((len(labels), 0))
                yield Predicted(labels, shown, block.y, p, sets=sets, ids=block.ids, copies=copies)
            else:
                decisions = self._decide(rows, first)
                ends = None if coverage is None else self._intervals(decisions, coverage)
                shown, labels = self.target.shown(decisions), self.target.decide(decisions)
                yield Predicted(labels, shown, block.y, intervals=ends, ids=block.ids, copies=copies)

    def _intervals(self, decisions: NDArray[np.float64], level: float) -> NDArray[np.float64]:
        covering = self.covering()
        return regression_of(self.target).intervals(decisions, covering.margin(level), covering.shrink)

    def _answers(
        self, X: Examples, out: NDArray[np.float64], number: int, calibration: Calibration | None = None
    ) -> NDArray[np.float64]:
        """Decision values of rows as cells see them, or with a calibration probabilities of classes, added to `out`.

        number: of the first row, in the message where an answer is not finite.
        """
        self._of_mapped(X, out, calibration)
        bad = np.flatnonzero(~np.isfinite(out).all(axis=1))
        if len(bad):
            raise DataError(
                f"row {number + bad[0]}: no label, as its decision value is not a finite number: its values are too "
                "large for this model; correct them, or remove the row"
            )
        return out

    def _of_mapped(self, Z: Examples, out: NDArray[np.float64], calibration: Calibration | None) -> NDArray[np.float64]:
        step = self._extent.rows
        for first in range(0, Z.shape[0], step):
            self._decide_block(Z[first : first + step], out[first : first + step], calibration)
        return out

    def _decide_block(self, X: Examples, out: NDArray[np.float64], calibration: Calibration | None) -> None:
        """Decide rows cell by cell, the rows of a cell in strips.

        Strips keep all threads busy with one large cell, too. What a row gets does not depend on the strip that it lies
        in.
        """
        routes = self.partition.route(within_reach(X)[0]).tocsc()
        cells = [int(c) for c in np.flatnonzero(np.diff(routes.indptr))]
        several = len(routes.data) > X.shape[0]
        strips = [
            (c, slice(first, min(first + STRIP, int(routes.indptr[c + 1]))))
            for c in cells
            for first in range(int(routes.indptr[c]), int(routes.indptr[c + 1]), STRIP)
        ]

        def evaluate(work: tuple[Examples, Predictor]) -> NDArray[np.float64]:
            with np.errstate(all="ignore"):  # `_answers` looks for values that are not finite
                values = work[1].decision_function(work[0])
                if calibration is not None:
                    return calibration.of_classes(self.classes, values)
                return self.target.bounded(values) if several else values

        window = self._extent.window
        side_by_side = self._threads.map if self._extent.threads > 1 else map  # handing over is not for free
        for first in range(0, len(strips), window):
            part = strips[first : first + window]
            places = [_places(routes.indices[rows]) for _, rows in part]
            work = [
                (self._in_cell(c, _taken(X, to)), self._predictor(c, calibration))
                for (c, _), to in zip(part, places, strict=True)
            ]
            for (_, rows), to, answer in zip(part, places, side_by_side(evaluate, work), strict=True):
                out[to] += routes.data[rows, None] * answer

    def _in_cell(self, cell: int, X: Examples) -> Examples:
        """Columns of mapped rows that a cell sees."""
        return X if self.members is None else self.members.seen(int(self._repeat[cell]), X)

    def _predictor(self, cell: int, calibration: Calibration | None) -> Predictor:
        key = cell, calibration is not None
        if key not in self._cache:
            state = self.file.cell(cell)
            target: Target = self.target.in_cell(cell)
            if calibration is not None:
                target = calibration.in_cell(self.classes, cell)
            method = self.method
            if self.members is not None:
                method = method.measuring(self.members.distance(int(self._repeat[cell])))
            self._cache[key] = method.predictor(state, target, self._width)
            self._cached_bytes[key] = BUILT * sum(array.nbytes for array in state.values())
            while len(self._cache) > 1 and sum(self._cached_bytes.values()) > self._extent.cache:
                self._cached_bytes.pop(self._cache.popitem(last=False)[0])
        self._cache.move_to_end(key)
        return self._cache[key]


def _repeats(cells: list[int]) -> NDArray[np.int64]:
    """The repeat of each cell, of the numbers of cells that the repeats have."""
    return np.repeat(np.arange(len(cells)), cells)


def _places(rows: NDArray[np.integer]) -> slice | NDArray[np.integer]:
    """Ascending rows as an index: a slice where none is left out, which needs no copy."""
    return slice(int(rows[0]), int(rows[-1]) + 1) if rows[-1] - rows[0] == len(rows) - 1 else rows


def _taken(X: Examples, rows: slice | NDArray[np.integer]) -> Examples:
    return between(X, rows.start, rows.stop) if isinstance(rows, slice) else X[rows]


class IndexBase:
    """First index of a file, 0 or 1, and whether the indices of its rows agree with a model's.

    Parameters
    ----------
    model : that predicts.
    zero_based : what the user says of the file; None for what was true in training.
    """

    def __init__(self, model: LocalModel, zero_based: bool | None = None) -> None:
        self.zero_based = model.zero_based if zero_based is None else zero_based
        self._trained, self._given, self._features = model.zero_based, zero_based, model.chain.width
        self._width = 0
        self._has_first = bool(model.chain.columns.known[0] > 0)  # then neither has the training file

    def count(self, counts: Counts) -> None:
        """Take note of what a block of text holds."""
        self._width = max(self._width, counts.width)

    def merge(self, other: IndexBase) -> None:
        """Take note of what was noted of other rows of the file."""
        self._width, self._has_first = max(self._width, other._width), self._has_first or other._has_first

    def seen(self, blocks: Iterable[Dataset]) -> Iterator[Dataset]:
        """Yield the same blocks, and look at each on its way."""
        for block in blocks:
            if not self._has_first:
                X = block.X
                self._has_first = bool(X[:, 0].any() if isinstance(X, np.ndarray) else (X.indices == 0).any())
            yield block

    def note(self, file: str, model: str) -> str:
        """Message on features that no row of the file has; empty where its last column is that of training."""
        if not 0 < self._width < self._features:
            return ""
        return f"{file} has columns up to {self._width:,}, and {model} up to {self._features:,}; the others count as 0"

    def warning(self, file: str, model: str) -> str:
        """Message on what may be wrong with the indices, and what to do; empty where nothing is."""
        if self._trained and self._given is False:
            return (
                f"{opt.zero_based(False)}, but {model} was trained with {opt.zero_based}; if both files count from "
                "1, train without it"
            )
        if not self._trained and self._given:
            return (
                f"{opt.zero_based}, but {model} was trained without it; if both files count from 0, train with "
                f"{opt.zero_based}"
            )
        if self._trained and not self._has_first and self._width == self._features + 1:
            return (
                f"{model} has indices 0 to {self._features - 1}, but {file} has no index 0 and an index "
                f"{self._features}; if it counts from 1, give {opt.zero_based(False)}"
            )
        return ""


def merged(blocks: Iterable[Dataset], most_rows: int = ROW_BLOCK, most_bytes: int = BLOCK_BYTES) -> Iterator[Dataset]:
    """Rows of the blocks in fewer blocks, of `most_rows` rows or `most_bytes` bytes, or little more."""
    waiting: list[Dataset] = []
    rows = size = 0
    for block in blocks:
        waiting.append(block)
        rows += len(block.y)
        size += size_of(block.X)
        if rows >= most_rows or size >= most_bytes:
            yield _together(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _together(waiting)


def _together(blocks: list[Dataset]) -> Dataset:
    if len(blocks) == 1:
        return blocks[0]
    parts = [block.X for block in blocks]
    X = np.concatenate(parts) if isinstance(parts[0], np.ndarray) else as_examples(sparse.vstack(parts, format="csr"))
    y, first = np.concatenate([block.y for block in blocks]), blocks[0]
    ids = None if first.ids is None else [names for block in blocks for names in block.ids or ()]
    return Dataset(X, y, columns=first.columns, shift=first.shift, ids=ids)


@dataclass
class Score:
    """Running count of right answers, where the data have labels, and the confusion of classes.

    Attributes
    ----------
    target : of the model, with its labels.
    right, total : rows.
    confusion : rows by (label of the file, predicted label), where there are any.
    rows, copies : all rows, and those that have the label of training rows that they equal.
    known, known_right : how many of the latter have a label in the file, and of how many it is that.
    """

    target: Classification
    right: int = 0
    total: int = 0

    def __post_init__(self) -> None:
        self.confusion: dict[tuple[float, float], int] = {}
        self.rows = self.copies = self.known = self.known_right = 0
        self.sets = self.covered = self.set_labels = 0  # of rows with a label: sets, those that hold it, their labels

    def add(self, block: Predicted) -> None:
        """Count a block."""
        labelled = self.target.comparable(block.y)
        y, decided = block.y[labelled], block.labels[labelled]
        self.right += int((decided == y).sum())
        self.total += len(y)
        if block.copies is not None:
            told = block.copies[labelled[block.copies]]
            self.rows += len(block.y)
            self.copies += len(block.copies)
            self.known += len(told)
            self.known_right += int((block.labels[told] == block.y[told]).sum())
        if block.sets is not None:
            known = self.target.labels.searchsorted(y).clip(max=len(self.target.labels) - 1)
            inside = block.sets[labelled][np.arange(len(y)), known] & (self.target.labels[known] == y)
            self.sets, self.covered = self.sets + len(y), self.covered + int(inside.sum())
            self.set_labels += int(block.sets[labelled].sum())
        true, row = np.unique(y, return_inverse=True)  # a file may have labels that the model does not know
        labels = self.target.labels
        cells = row * len(labels) + labels.searchsorted(decided)
        counts = np.bincount(cells, minlength=len(true) * len(labels)).reshape(len(true), len(labels))
        for t, g in np.argwhere(counts):
            key = (float(true[t]), float(labels[g]))
            self.confusion[key] = self.confusion.get(key, 0) + int(counts[t, g])

    def merge(self, other: Score) -> None:
        """Count the rows of another one."""
        self.right, self.total = self.right + other.right, self.total + other.total
        self.rows, self.copies = self.rows + other.rows, self.copies + other.copies
        self.known, self.known_right = self.known + other.known, self.known_right + other.known_right
        self.sets, self.covered = self.sets + other.sets, self.covered + other.covered
        self.set_labels += other.set_labels
        for key, rows in other.confusion.items():
            self.confusion[key] = self.confusion.get(key, 0) + rows

    @property
    def unknown(self) -> int:
        """Number of rows whose label the model does not know: every answer to them is wrong."""
        labels = set(self.target.labels.tolist())
        return sum(rows for (true, _), rows in self.confusion.items() if true not in labels)

    def recalls(self) -> list[float | None]:
        """The share of right rows of each label that the model knows; None for one that no row has."""
        mass = np.zeros(len(labels := self.target.labels.tolist()))
        wrong = mass.copy()
        for (true, given), rows in self.confusion.items():
            if true in labels:
                mass[labels.index(true)] += rows
                wrong[labels.index(true)] += rows * (true != given)
        return known_recalls(recalls(wrong, mass))

    @property
    def alarms(self) -> list[tuple[int, int]]:
        """Pairs, of a detection alone: false alarms and quiet rows; missed alarms and rows that should raise one."""
        if not isinstance(self.target, Detection):
            return []
        labels, count = self.target.labels.tolist(), self.confusion
        quiet, alarm = labels[1 - self.target.alarm], labels[self.target.alarm]
        pairs = ((quiet, alarm), (alarm, quiet))
        return [(count.get((a, b), 0), count.get((a, a), 0) + count.get((a, b), 0)) for a, b in pairs]

    def as_dict(self) -> dict[str, Any]:
        """Entries of the JSON report."""
        confusion = [
            {"true": t if np.isfinite(t) else None, "predicted": p, "rows": n}
            for (t, p), n in sorted(self.confusion.items())
        ]
        report: dict[str, Any] = (
            {"covered": self.covered, "labels_of_a_set": self.set_labels / self.sets} if self.sets else {}
        )
        pairs = zip(("false_alarms", "missed"), self.alarms, strict=False)
        report |= {name: {"wrong": wrong, "rows": rows} for name, (wrong, rows) in pairs}
        if self.copies:
            report["copies"] = {"rows": self.copies, "right": self.known_right, "total": self.known}
        return report | {
            "right": self.right,
            "total": self.total,
            "accuracy": self.right / self.total if self.total else None,
            "recalls": self.recalls(),
            "confusion": confusion,
        }
