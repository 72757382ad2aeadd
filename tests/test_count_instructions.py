"""The comparison of instruction counts: what fails, what is written, what is skipped. Nothing is counted here."""

from __future__ import annotations

from pathlib import Path

import pytest

from develop import count_instructions as script
from develop.count_instructions import Count, Counts

WHERE = {"compiler": "cc 12", "library": "glibc 2", "processor": "any"}
COUNTED = script.count  # the fixture below puts another in its place
FEW = {"pack": Count(1000, 0), "smo_path": Count(1000, 50)}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Count]:
    """Instruction counts of the kernels, for tests to change; the file has FEW, and the place is WHERE."""
    now = dict(FEW)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "GOLDEN", tmp_path / "instructions.txt")
    monkeypatch.setattr(script, "count", lambda: dict(now))
    monkeypatch.setattr(script, "where", lambda: WHERE)
    script.write(script.GOLDEN, Counts(WHERE, FEW))
    return now


@pytest.mark.parametrize(("now", "code"), [(900, 0), (1000, 0), (1050, 0), (1051, 1), (2000, 1)])
def test_more_than_five_per_cent_fail(counted: dict[str, Count], now: int, code: int) -> None:
    counted["smo_path"] = Count(now, 50)
    assert script.main(["--check"]) == code


def test_an_increase_is_accepted_by_the_file(counted: dict[str, Count], capsys: pytest.CaptureFixture[str]) -> None:
    counted["smo_path"] = Count(1200, 60)
    assert script.main(["--check"]) == 1
    captured = capsys.readouterr()
    text = "error: smo_path takes 20.0 % more instructions\nIf that is meant: make count-instructions, and commit instr"
    assert captured.err.startswith(text)
    lines = [line.split() for line in captured.out.splitlines()]
    assert lines[1] == ["pack", "1,000"]
    assert lines[2] == ["smo_path", "1,200", "1,000", "+20.0", "%", "50", "->", "60", "TOO", "MANY"]
    assert script.read(script.GOLDEN).kernels == FEW
    assert script.main([]) == 0
    assert script.read(script.GOLDEN) == Counts(WHERE, counted)
    assert script.main(["--check"]) == 0


def test_a_kernel_that_comes_or_goes_is_told(counted: dict[str, Count], capsys: pytest.CaptureFixture[str]) -> None:
    counted["hash"] = counted.pop("pack")
    assert script.main(["--check"]) == 1
    assert capsys.readouterr().err.startswith("error: hash is not in the file\nerror: pack is in the file only\n")


def test_another_compiler_is_not_compared(
    counted: dict[str, Count], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted["pack"] = Count(9999, 0)
    monkeypatch.setattr(script, "where", lambda: WHERE | {"compiler": "cc 13"})
    assert script.main(["--check"]) == 0
    message = "instructions not compared: instructions.txt is of another place (cc 13, not cc 12)\n"
    assert capsys.readouterr() == ("", message)


def test_no_valgrind(
    counted: dict[str, Count], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(script, "count", COUNTED)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert script.main(["--check"]) == 0
    assert capsys.readouterr() == ("", "instructions not compared: valgrind is not installed\n")
    assert script.main([]) == 0
    assert script.read(script.GOLDEN).kernels == FEW


def test_no_file(counted: dict[str, Count], capsys: pytest.CaptureFixture[str]) -> None:
    script.GOLDEN.unlink()
    assert script.main(["--check"]) == 1
    assert "write it by: make count-instructions" in capsys.readouterr().err


def test_the_file_of_the_repository_has_every_kernel() -> None:
    kernels = [line[8:].partition(")")[0] for line in script.DRIVER.read_text().splitlines() if line[:8] == "MEASURE("]
    assert list(script.read(script.GOLDEN).kernels) == kernels


def test_the_parts_that_callgrind_writes(tmp_path: Path) -> None:
    part = "desc: Trigger: --dump-after={}\n\nevents: Ir\nsummary: 7\n\n\ntotals: {}\n"
    (tmp_path / "part").write_text("desc: Trigger: Program termination\n\ntotals: 99\n")
    for i, (name, total) in enumerate([("between.constprop.0", 50), ("measure_pack", 7), ("measure_hash.isra.0", 8)]):
        (tmp_path / f"part.{i}").write_text(part.format(name, total))
    assert script.read_parts(tmp_path) == {"pack": 7, "hash": 8}


def test_the_flags_are_those_of_setup_py(tmp_path: Path) -> None:
    assert "-O3" in script.flags()
    (tmp_path / "setup.py").write_text("OTHER = 1\n")
    with pytest.raises(script.Broken, match="no FLAGS"):
        script.flags(tmp_path)


def test_the_exit_codes_of_the_driver(tmp_path: Path) -> None:
    with pytest.raises(script.Unavailable, match="AVX2"):
        script.run([program(tmp_path, "exit 3")])
    with pytest.raises(script.Broken, match="cell ended with code 1: pack failed"):
        script.run([program(tmp_path, "echo pack failed >&2; exit 1")])
    with pytest.raises(script.Unavailable, match="sh ended with code 1"):  # under valgrind, after it ran on its own
        script.run(["/bin/sh", program(tmp_path, "exit 1")])


def program(folder: Path, text: str) -> str:
    """A shell script in place of the driver."""
    path = folder / "cell"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)
