#!/usr/bin/env python3
"""Write the rooms of the package and their imports into docs/architecture.md, as a diagram and as a list.

    python scripts/develop/draw_architecture.py     # after a change of the rooms or of their imports

Everything is read from the code: the rooms and their order from rooms.py, the imports from the files, and what a room
holds from its docstring.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from develop.rooms import FLOOR, ROOMS, ROOT, edges, says

PAGE = ROOT / "docs" / "architecture.md"
MARKS = "<!-- rooms: written by scripts/develop/draw_architecture.py -->", "<!-- end of rooms -->"
GROUND = ROOMS[-1]  # which every room may use: not drawn
WIDTH = 118  # of the lines of the list


def main() -> int:
    """Write both between the marks; returns the exit code."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None).parse_args()
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    PAGE.write_text(before + MARKS[0] + "\n" + written() + MARKS[1] + rest.partition(MARKS[1])[2])
    return 0


def written() -> str:
    """Text between the marks."""
    return f"```mermaid\n{diagram()}```\n\n{listing()}"


def diagram() -> str:
    """The rooms above the ground; a line is as long as there are rows between its ends."""
    lines = [f"    {room} {'-' * max(2, FLOOR[room] - FLOOR[other] + 1)}> {other}" for room, other in direct()]
    return "\n".join(["flowchart TB", *lines]) + "\n"


def direct() -> list[tuple[str, str]]:
    """The imports above the ground that no path through other rooms implies."""
    pairs = [(upper, lower) for upper, lower in edges() if lower not in GROUND and upper not in GROUND]
    below = {room: {lower for upper, lower in pairs if upper == room} for room in FLOOR}
    reached: dict[str, set[str]] = {}
    for room in reversed(FLOOR):  # from the ground up
        reached[room] = set().union(*(below[other] | reached.get(other, set()) for other in below[room]))
    return [(upper, lower) for upper, lower in pairs if lower not in reached[upper]]


def listing() -> str:
    """An item a room: what it holds, and from which rooms it imports."""
    items = []
    for room in FLOOR:
        below = ", ".join(f"`{other}`" for upper, other in edges() if upper == room)
        text = f"- `{room}`: {says(room).rstrip('.')}. Imports: {below or 'none'}."
        items.append(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join(items) + "\n"


if __name__ == "__main__":
    sys.exit(main())
