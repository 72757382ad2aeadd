"""Experiments: their log, what is missing of it, their page, and their options."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness import machine
from harness.experiment import Experiment, carry_out
from harness.options import parsed, parser
from harness.runlog import Run, RunLog
from harness.tables import table


@dataclass(frozen=True)
class Square(Run):
    number: int
    value: int

    @property
    def key(self) -> int:
        return self.number


def measure(missing: list[Any], known: list[Square], options: argparse.Namespace) -> Iterator[Square]:
    for number in missing:
        if number == options.broken:
            raise KeyboardInterrupt
        yield Square(number, number**2)


def page(runs: list[Square], options: argparse.Namespace) -> str:
    return "\n".join(table(("number", "square"), ((run.number, run.value) for run in runs)))


def carried_out(out: Path, *arguments: str, broken: int | None = None, least: int = 0) -> list[dict[str, Any]]:
    """The log after an experiment on three numbers; runs of a value below `least` do not count."""
    options = parsed(parser("", out=out, data="none"), arguments)
    options.broken = broken
    experiment = Experiment(
        "squares", Square, lambda o: [1, 2, 3], measure, page, str, lambda run, o: run.value >= least
    )
    carry_out(experiment, options)
    return [json.loads(line) for line in (out / "squares.jsonl").read_text().splitlines()]


def test_an_interrupted_experiment_goes_on(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        carried_out(tmp_path, broken=3)
    assert "| 2 | 4 |" in (tmp_path / "squares.md").read_text()
    assert "| 3 |" not in (tmp_path / "squares.md").read_text()
    log = tmp_path / "squares.jsonl"
    log.write_text(log.read_text()[:-10])  # as a killed process may leave it
    assert [line["number"] for line in carried_out(tmp_path)] == [1, 2, 3]
    assert "| 3 | 9 |" in (tmp_path / "squares.md").read_text()


def test_a_complete_log_is_left_alone(tmp_path: Path) -> None:
    first = carried_out(tmp_path)
    text = (tmp_path / "squares.md").read_text()
    assert carried_out(tmp_path, broken=1) == first
    assert (tmp_path / "squares.md").read_text() == text
    assert first[0]["machine"] == machine.machine()
    assert f"localsvm at {first[0]['commit']}" in text


def test_runs_that_do_not_count_are_replaced(tmp_path: Path) -> None:
    carried_out(tmp_path)
    (tmp_path / "squares.jsonl").write_text('{"number": 1, "value": 0}\n{"number": 2, "value": 5}\n')
    assert [line["number"] for line in carried_out(tmp_path, least=1)] == [1, 2, 1, 3]
    assert [run.value for run in RunLog(tmp_path / "squares.jsonl", Square).runs] == [1, 5, 9]
    assert " and before" in (tmp_path / "squares.md").read_text()


def test_only_the_page_and_a_fresh_log(tmp_path: Path) -> None:
    carried_out(tmp_path)
    (tmp_path / "squares.jsonl").write_text('{"number": 7, "value": 49}\n')
    assert len(carried_out(tmp_path, "--page-only", "--fresh")) == 1
    assert "| 7 | 49 |" in (tmp_path / "squares.md").read_text()
    assert [line["number"] for line in carried_out(tmp_path, "--fresh")] == [1, 2, 3]


def test_the_folder_of_the_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LOCALSVM_DATA", raising=False)
    assert parsed(parser("", out=tmp_path), [str(tmp_path)]).data == tmp_path
    assert parsed(parser("", out=tmp_path, data="optional"), []).data is None
    with pytest.raises(SystemExit):
        parsed(parser("", out=tmp_path), [])
    monkeypatch.setenv("LOCALSVM_DATA", str(tmp_path))
    assert parsed(parser("", out=tmp_path), []).data == tmp_path


def test_only_known_names_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    argument_parser = parser("", out=None, data="none", sets=["magic", "usps"], methods=["a gap of 1 %", "linear"])
    assert parsed(argument_parser, ["--sets", "usps"]).sets == ["usps"]
    assert parsed(argument_parser, []).methods == ["a gap of 1 %", "linear"]
    with pytest.raises(SystemExit):
        parsed(argument_parser, ["--methods", "linear,cubic"])
    assert "cubic: no such name; there are a gap of 1 %, linear" in capsys.readouterr().err
    assert "default a gap of 1 %,linear" in argument_parser.format_help()


def test_machines_in_words() -> None:
    other = {"cpu": "Xeon", "cores": 4}
    assert machine.cores_of_processors([None, None, other]) == "one core of an AMD EPYC and 4 cores of a Xeon"
    assert machine.processors([other, None]) == "Xeon and AMD EPYC"
