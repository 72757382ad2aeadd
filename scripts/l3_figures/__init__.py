"""What the figures of the L3-SVM paper share: a line of their log, colours, and formats. A module a kind of figure:
decision regions (regions), small sets (small), choosing landmarks (landmarks)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

COSTS = tuple(10.0**k for k in range(-3, 3))  # the paper's grid
BLUE, ORANGE, GREEN, RED = "#3b5ba5", "#e69f00", "#2a9d8f", "#c6403a"


@dataclass(frozen=True)
class Run:
    """A measurement: what of (the first five fields, the key), and the figures, whose meaning is their module's."""

    figure: int
    name: str
    variant: str
    clusters: int
    seed: int
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[int, str, str, int, int]:
        """What is measured."""
        return self.figure, self.name, self.variant, self.clusters, self.seed


def table(head: Iterable[object], rows: Iterable[Iterable[object]]) -> list[str]:
    """A table in Markdown."""
    lines = ["| " + " | ".join(map(str, line)) + " |" for line in (head, *rows)]
    return [lines[0], "|---" * (lines[0].count("|") - 1) + "|", *lines[1:]]
