"""A text in parts, all of them here: what runs on many machines is tested without them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np


class Parts:
    """The lines of a file in parts that end after these lines, each in pieces of so many lines."""

    def __init__(self, path: Path, ends: list[int], piece: int = 70) -> None:
        self.name, self._piece = str(path), piece
        lines = path.read_bytes().splitlines(keepends=True)
        edges = [0, *ends, len(lines)]
        self.parts = [lines[first:last] for first, last in pairwise(edges)]

    def head(self, lines: int) -> bytes:
        return b"".join(list(chain(*self.parts))[:lines])

    def _pieces(self, part: int) -> Iterator[bytes]:
        lines = self.parts[part]
        for first in range(0, len(lines), self._piece):
            yield b"".join(lines[first : first + self._piece])

    def each(self, work: Callable[[int, Iterator[bytes]], Any]) -> list[Any]:
        work = pickle.loads(pickle.dumps(work))
        return [pickle.loads(pickle.dumps(work(i, self._pieces(i)))) for i in range(len(self.parts))]

    def in_order(self, work: Callable[[int, Iterator[bytes]], Any]) -> Generator[Any]:
        work = pickle.loads(pickle.dumps(work))
        for i in range(len(self.parts)):
            yield pickle.loads(pickle.dumps(work(i, self._pieces(i))))

    def groups(self, work: Callable[[int, Iterator[bytes]], Iterable[tuple[int, Any]]], count: int) -> Grouped:
        values: list[list[Any]] = [[] for _ in range(count)]
        for i in reversed(range(len(self.parts))):
            for group, value in pickle.loads(pickle.dumps(work))(i, self._pieces(i)):
                values[group].append(value)
        return Grouped(values)


class Grouped:
    """Values by group, in another order than they came in."""

    def __init__(self, values: list[list[Any]]) -> None:
        self._values = values

    def unordered(self, work: Callable[[Any, list[Any]], Any], wanted: Mapping[int, Any]) -> Generator[tuple[int, Any]]:
        for group in np.random.default_rng(0).permutation(list(wanted)).tolist():
            yield group, work(pickle.loads(pickle.dumps(wanted[group])), self._values[group])
