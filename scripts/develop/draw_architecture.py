#!/usr/bin/env python3
"""Draw the rooms of the package and their imports into docs/architecture.svg, and list both in docs/architecture.md.

python scripts/develop/draw_architecture.py     after a change of the rooms or of their imports; needs matplotlib, extra `plot`

Everything is read from the code: the rooms and their order from scripts/develop/rooms.py, the imports from the files, and what
a room holds from its docstring. The same code gives the same files.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from develop.rooms import ROOMS, ROOT, edges, says

PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "architecture.svg"
MARKS = "<!-- rooms: written by scripts/develop/draw_architecture.py -->", "<!-- end of rooms -->"

# rooms that share a box, by the name that is on it
GROUND = "errors, memory, threads"
BOX = {"__main__": "cli"} | dict.fromkeys(("errors", "memory", "threads", "__init__"), GROUND)
# the middles of boxes, from the left, so that few lines pass behind a box; the others of a row are spread evenly
MIDDLES = {
    "cli": 6.09,
    "estimators": 2.75,
    "runs": 3.39,
    "selection": 1.05,
    "methods": 10.29,
    "targets": 0.85,
    "representations": 8.72,
    "partition": 5.25,
    "solvers": 7.52,
    "kernels": 9.99,
    "parallel": 2.4,
    "data": 8.07,
    "store": 0.85,
    "_core": 7.23,
}
WIDTH, GAP, SIDE, TALL = 11.2, 0.92, 1.5, 0.42  # of the drawing, between rows, of a box; in inches
PORTS = 1.2  # the part of a box's side at which lines end
INK, LINE, PAPER = "#222222", "0.72", "#f4f6fb"
STYLE = {"svg.hashsalt": "localsvm", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9.0}


class Line(NamedTuple):
    """A line between boxes: where it begins and ends."""

    names: tuple[str, str]
    begin: tuple[float, float]
    end: tuple[float, float]

    @property
    def name(self) -> str:
        """Its name in the picture's file."""
        return "--".join(self.names).replace(", ", "-")


def main() -> int:
    """Write the picture and the table; returns the exit code."""
    with matplotlib.rc_context(STYLE):
        draw().savefig(PICTURE, metadata={"Date": None, "Creator": None})
    PICTURE.write_text("\n".join(line.rstrip() for line in PICTURE.read_text().splitlines()) + "\n")
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    PAGE.write_text(f"{before}{MARKS[0]}\n{table()}{MARKS[1]}{after}")
    return 0


def table() -> str:
    """A line a room: what it holds, and from which rooms it imports."""
    lines = ["| room | what it holds | imports from |", "|---|---|---|"]
    for row in ROOMS:
        for room in row:
            below = ", ".join(f"`{other}`" for own, other in edges() if own == room)
            lines.append(f"| `{room}` | {says(room).rstrip('.')} | {below} |")
    return "\n".join(lines) + "\n"


def boxes() -> list[list[str]]:
    """The boxes of each row, from the top to the ground."""
    return [list(dict.fromkeys(BOX.get(room, room) for room in row)) for row in ROOMS]


def box_edges() -> list[tuple[str, str]]:
    """Which box imports from which other one; the ground, which every room may use, is left out."""
    pairs = [(BOX.get(own, own), BOX.get(other, other)) for own, other in edges()]
    return [pair for pair in dict.fromkeys(pairs) if pair[0] != pair[1] and pair[1] != boxes()[-1][-1]]


def places() -> dict[str, tuple[float, float]]:
    """The middle of each box. The ground is as wide as the drawing."""
    rows = boxes()
    spread = {
        box: (MIDDLES.get(box, WIDTH * (i + 0.5) / len(row)), GAP * (len(rows) - r - 0.5))
        for r, row in enumerate(rows)
        for i, box in enumerate(row)
    }
    ground = rows[-1][-1]
    return spread | {ground: (WIDTH / 2, spread[ground][1])}


def lines() -> list[Line]:
    """A line a pair of boxes, from the lower side of one to the upper side of the other; their ends do not cross."""
    at, found = places(), box_edges()

    def slope(pair: tuple[str, str], own: int) -> float:
        (x, y), (to_x, to_y) = at[pair[own]], at[pair[1 - own]]
        return (to_x - x) / abs(to_y - y)

    def port(pair: tuple[str, str], own: int) -> tuple[float, float]:
        beside = sorted((p for p in found if p[own] == pair[own]), key=lambda p: slope(p, own))
        step = min(0.25, PORTS / max(1, len(beside) - 1))
        x, y = at[pair[own]]
        return x + step * (beside.index(pair) - (len(beside) - 1) / 2), y + (own - 0.5) * TALL

    return [Line(pair, port(pair, 0), port(pair, 1)) for pair in found]


def draw() -> Figure:
    """The drawing."""
    at, rows = places(), boxes()
    figure = Figure(figsize=(WIDTH, GAP * len(rows)))
    panel = figure.add_axes((0, 0, 1, 1))
    panel.set(xlim=(0, WIDTH), ylim=(0, GAP * len(rows)))
    panel.axis("off")
    for line in lines():
        head = "-|>,head_width=1.2,head_length=2.5"
        arrow = FancyArrowPatch(
            line.begin, line.end, arrowstyle=head, shrinkA=0, shrinkB=0, color=LINE, lw=0.8, zorder=1
        )
        arrow.set_gid(line.name)
        panel.add_patch(arrow)
    for box, (x, y) in at.items():
        _box(panel, box, x, y, WIDTH - 0.3 if box == rows[-1][-1] else SIDE)
    return figure


def _box(panel: Any, name: str, x: float, y: float, wide: float) -> None:
    corner = x - wide / 2 + 0.06, y - TALL / 2 + 0.06
    shape = FancyBboxPatch(
        corner, wide - 0.12, TALL - 0.12, boxstyle="round,pad=0.06", fc=PAPER, ec=INK, lw=0.8, zorder=2
    )
    panel.add_patch(shape)
    panel.text(x, y - 0.01, name, ha="center", va="center", color=INK, zorder=3)


if __name__ == "__main__":
    sys.exit(main())
