"""The interface of transforms: steps between a row of the data and what a method sees."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from localsvm.data.blocks.dataset import Examples


class Transform(ABC):
    """A fitted step. A row's result depends on that row alone, so blocks of rows may be cut anywhere.

    A kind has a `fit` of its own, from what it asks for: a sample of rows, `Moments`, or what readers found. It has a
    `from_state`, too, which takes what `state` gave, and raises Unsound for what does not fit.
    """

    @abstractmethod
    def apply(self, X: Examples, *, in_place: bool = False) -> Examples:
        """The rows (n, columns(d)) that come of X (n, d).

        in_place : whether a dense X may be overwritten. A sparse X is never changed.
        """

    def columns(self, width: int) -> int:
        """Number of columns that come out, where `width` come in."""
        return width

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """The arrays that a file keeps."""
