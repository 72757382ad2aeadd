"""The house: imports point downwards, functions fit on a screen, and a method file can be read in one sitting."""

from __future__ import annotations

import ast
import re

import pytest

from develop import draw_architecture
from develop.rooms import BESIDE, FLOOR, PACKAGE, ROOT, edges, imports, room_of, sources

APART = {("validation", "training"), ("streaming", "training"), ("training", "validation"), ("training", "streaming")}
LONGEST_FUNCTION, LONGEST_METHOD = 40, 300


def test_every_room_has_its_floor() -> None:
    assert {room_of(path) for path in sources()} <= FLOOR.keys()


def test_imports_point_downwards() -> None:
    upwards = [
        f"{path.relative_to(PACKAGE)} imports {other}"
        for path in sources()
        for room in [room_of(path)]
        for other in imports(path)
        if not (other == room or FLOOR[other] < FLOOR[room] or (room, other) in BESIDE)
    ]
    assert not upwards


def test_the_rule_sees_imports_in_functions_and_extensions() -> None:
    assert "data" in set(imports(PACKAGE / "cli" / "convert.py"))
    assert "_core" in set(imports(PACKAGE / "solvers" / "_smo.pyx"))


def test_the_page_of_the_architecture_is_up_to_date() -> None:
    begin, end = draw_architecture.MARKS
    page = draw_architecture.PAGE.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]
    assert page.strip() == draw_architecture.written().strip(), "run scripts/develop/draw_architecture.py"


def test_the_diagram_implies_every_import_above_the_ground() -> None:
    drawn = re.findall(r"^ +(\w+) -+> (\w+)$", draw_architecture.diagram(), re.MULTILINE)
    paths = set(drawn)
    for middle in FLOOR:  # Warshall
        paths |= {(a, b) for a, m in paths if m == middle for n, b in paths if n == middle}
    ground = draw_architecture.GROUND
    assert {pair for pair in edges() if not set(pair) & set(ground)} <= paths
    for pair in drawn:  # and none is drawn that the others imply
        others = set(drawn) - {pair}
        for middle in FLOOR:
            others |= {(a, b) for a, m in others if m == middle for n, b in others if n == middle}
        assert pair not in others


def test_runs_do_not_lean_on_each_other() -> None:
    for path in (PACKAGE / "runs").glob("*.py"):
        imported = re.findall(r"from localsvm\.runs\.(\w+) import", path.read_text())
        assert not {(path.stem, other) for other in imported} & APART


@pytest.mark.parametrize("folder", ["localsvm", "scripts", "tests", "docs"])
def test_functions_fit_on_a_screen(folder: str) -> None:
    long = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION:
                long.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert not long


def test_a_method_can_be_read_in_one_sitting() -> None:
    lengths = {path.name: path.read_text().count("\n") for path in (PACKAGE / "methods").rglob("*.py")}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_METHOD} == {}
