"""The rooms of the package, from the top to the ground, and who imports whom; not a command.

tests/test_rooms.py holds the imports against this list, and draw_architecture.py draws it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "localsvm"
# from the top to the ground; rooms in one line do not know each other, unless they are named in BESIDE
ROOMS = (
    ("__main__", "cli", "estimators"),
    ("runs",),
    ("selection",),
    ("methods", "engines"),
    ("features",),
    ("targets", "representations"),
    ("partition", "solvers"),
    ("kernels",),
    ("parallel", "data"),
    ("store",),
    ("_core",),
    ("errors", "memory", "threads", "pulse", "naming", "blas", "__init__"),
)
FLOOR = {room: len(ROOMS) - i for i, row in enumerate(ROOMS) for room in row}
BESIDE = {
    ("__main__", "cli"),
    ("memory", "errors"),
    ("threads", "memory"),
    ("threads", "pulse"),
    ("errors", "naming"),
    ("memory", "naming"),
}
IMPORT = re.compile(r"^\s*(?:from|cimport|import)\s+(localsvm(?:\.\w+)*)(?:\s+c?import\s+(.+))?", re.MULTILINE)


def sources() -> list[Path]:
    """The package's files in Python and Cython, but for the stub of its door: what that names is imported on demand."""
    every = (path for kind in ("*.py", "*.pyx", "*.pyi", "*.pxd") for path in PACKAGE.rglob(kind))
    return sorted(path for path in every if path != PACKAGE / "__init__.pyi")


def room_of(path: Path) -> str:
    """The room that a file is in, or is."""
    return path.relative_to(PACKAGE).parts[0].partition(".")[0]


def imports(path: Path) -> Iterator[str]:
    """The rooms that a file imports from, wherever in the file, once for each import."""
    for module, names in IMPORT.findall(path.read_text()):
        parts = module.split(".")
        rooms = [parts[1]] if len(parts) > 1 else [n.strip("() ").split(" ")[0] for n in names.split(",")]
        yield from (room if room in FLOOR else "__init__" for room in rooms)  # as in `from localsvm import __version__`


def edges() -> list[tuple[str, str]]:
    """Pairs of rooms of which the first imports from the second, in the order of ROOMS."""
    places = {room: i for i, room in enumerate(FLOOR)}
    pairs = {(room_of(path), other) for path in sources() for other in imports(path)}
    between = [pair for pair in pairs if pair[0] != pair[1]]
    return sorted(between, key=lambda pair: (places[pair[0]], places[pair[1]]))


def says(room: str) -> str:
    """Description of what a room holds: the first paragraph of its docstring."""
    files = (PACKAGE / room / "__init__.py", PACKAGE / f"{room}.py", PACKAGE / f"{room}.pyx")
    text = next(path.read_text() for path in files if path.exists())
    description = re.match(r'"""(.*?)(?:\n\n|""")', text, re.DOTALL)
    return " ".join(description[1].split()) if description else ""
