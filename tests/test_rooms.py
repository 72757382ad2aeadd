"""The house: imports point downwards, functions fit on a screen, and a method file can be read in one sitting."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "localsvm"
# from the top to the ground; rooms in one line do not know each other, unless they are named in BESIDE
ROOMS = (
    ("__main__", "cli", "estimators"),
    ("runs",),
    ("selection",),
    ("methods",),
    ("targets", "representations"),
    ("partition", "solvers"),
    ("kernels",),
    ("parallel", "data"),
    ("store",),
    ("_core",),
    ("errors", "threads", "__init__"),
)
FLOOR = {room: len(ROOMS) - i for i, row in enumerate(ROOMS) for room in row}
BESIDE = {("__main__", "cli"), ("threads", "errors")}
APART = {("validation", "training"), ("streaming", "training"), ("training", "validation"), ("training", "streaming")}
LONGEST_FUNCTION, LONGEST_METHOD = 40, 300
IMPORT = re.compile(r"^\s*(?:from|cimport|import)\s+(localsvm(?:\.\w+)*)(?:\s+c?import\s+(.+))?", re.MULTILINE)


def sources() -> list[Path]:
    return sorted(path for kind in ("*.py", "*.pyx", "*.pyi", "*.pxd") for path in PACKAGE.rglob(kind))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].partition(".")[0]


def imports(path: Path) -> Iterator[str]:
    """The rooms that a file imports from, wherever in the file."""
    for module, names in IMPORT.findall(path.read_text()):
        parts = module.split(".")
        yield from [parts[1]] if len(parts) > 1 else [n.strip("() ").split(" ")[0] for n in names.split(",")]


def test_every_room_has_its_floor() -> None:
    assert {room_of(path) for path in sources()} <= FLOOR.keys()


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path) -> None:
    room = room_of(path)
    for other in imports(path):
        other = other if other in FLOOR else "__init__"  # as in `from localsvm import __version__`
        assert other == room or FLOOR[other] < FLOOR[room] or (room, other) in BESIDE, f"{room} imports {other}"


def test_the_rule_sees_imports_in_functions_and_extensions() -> None:
    assert "data" in set(imports(PACKAGE / "cli" / "train.py"))
    assert "_core" in set(imports(PACKAGE / "solvers" / "_smo.pyx"))


def test_runs_do_not_lean_on_each_other() -> None:
    for path in (PACKAGE / "runs").glob("*.py"):
        found = re.findall(r"from localsvm\.runs\.(\w+) import", path.read_text())
        assert not {(path.stem, other) for other in found} & APART


@pytest.mark.parametrize("folder", ["localsvm", "scripts", "tests", "docs"])
def test_functions_fit_on_a_screen(folder: str) -> None:
    long = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION:
                long.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert not long


def test_a_method_can_be_read_in_one_sitting() -> None:
    lengths = {path.name: path.read_text().count("\n") for path in (PACKAGE / "methods").glob("*.py")}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_METHOD} == {}
