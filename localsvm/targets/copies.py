"""Labels of rows that equal training rows: these rows get the label that was seen, and not the one that is predicted.

An SVM may decide a training row wrongly, and then decides each copy of it wrongly. Where labels of copies agree with
each other far more often than with the model, a copy is the better witness (`runs.copies` judges that).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from localsvm.targets.base import Values
from localsvm.targets.classification import Classification

KIND = "labels"
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class KnownRows:
    """Rows that equal training rows.

    Attributes
    ----------
    rows, classes : (m,) their places, and the classes that the training rows have.
    error : see `Copies`.
    """

    rows: NDArray[np.intp]
    classes: NDArray[np.int32]
    error: float

    def decide(self, target: Classification, values: Values) -> None:
        """Put what problems learn of labels, -1, 0 or 1, in place of decision values (n, problems) of known rows."""
        values[self.rows] = target.encode(target.labels[self.classes])

    def expect(self, p: Values) -> None:
        """Put the probabilities of their labels in place of those (n, classes) of known rows."""
        p[self.rows] = self.error / max(1, p.shape[1] - 1)
        p[self.rows, self.classes] = 1.0 - self.error


@dataclass(frozen=True)
class Copies:
    """Training rows whose labels their copies get.

    Attributes
    ----------
    signatures : (k,) ascending, `signatures` of the rows as readers give them, one for all rows of equal values; rows
        of equal values and different labels have none.
    classes : (k,) int32, the places of their labels among those of the target.
    error : the share of copies whose label is another one, for probabilities; above 0.
    """

    signatures: Hashes
    classes: NDArray[np.int32]
    error: float

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make it from the arrays that the model file keeps."""
        return cls(arrays["signatures"], arrays["classes"], float(arrays["error"][0]))

    def state(self) -> dict[str, NDArray[Any]]:
        """The arrays that the model file keeps."""
        return {"signatures": self.signatures, "classes": self.classes, "error": np.asarray([self.error])}

    def known(self, signatures: Hashes) -> KnownRows:
        """The rows, of those with these signatures (n,), that equal training rows."""
        place = np.minimum(np.searchsorted(self.signatures, signatures), len(self.signatures) - 1)
        rows = np.flatnonzero(self.signatures[place] == signatures)
        return KnownRows(rows, self.classes[place[rows]], self.error)
