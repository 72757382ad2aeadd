"""Comparisons of contestants: rounds, ratios, what is stopped or fails, going on after an interruption, memory."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness import comparison, datasets, timing
from harness.commands import ANSWER, run_contestant
from harness.comparison import Case, Comparison, Rounds, Turn, main
from harness.memory import Memory
from harness.runlog import RunLog
from harness.summaries import medians, page, ratio, summaries
from harness.tables import number
from harness.timing import timed

MACHINE = {"cpu": "a processor", "cores": 2, "simd": "avx2", "memory_gib": 8}


def turn(contestant: str, repeat: int, wall: float, case: Case | None = None) -> Turn:
    key = (case or Case("set", 10)).key()
    return Turn(key, contestant, repeat, "ok", figures={"wall": wall}, machine=MACHINE, commit="c")


def failed(contestant: str, message: str) -> Turn:
    return replace(turn(contestant, 0, 1.0), status="failed", message=message, figures={})


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_cases_are_found_again_by_their_keys() -> None:
    case = Case("covtype", 100, 2, (("C", 1.0),))
    assert Case.from_key(case.key()) == case
    assert case.get("C") == 1.0
    assert case.get("form") is None


def test_medians_of_numbers_and_of_phases() -> None:
    rounds = [{"wall": w, "seconds": {"read": w / 2}, "note": "x"} for w in (3.0, 1.0, 2.0)]
    assert medians(rounds) == {"wall": 2.0, "seconds": {"read": 1.0}, "note": "x"}
    assert medians([]) == {}


def test_ratios_are_taken_within_rounds() -> None:
    ours = [turn("localsvm", i, wall) for i, wall in enumerate((1.0, 10.0, 2.0))]
    theirs = [turn("peer", i, wall) for i, wall in enumerate((4.0, 40.0, 6.0))]
    assert ratio(theirs, ours) == 4.0  # the ratio of the medians is 3
    assert ratio(theirs[1:2], ours) == 4.0
    assert ratio([failed("peer", "")], ours) is None


def test_a_failure_is_in_the_page_with_its_words() -> None:
    contest = Comparison("name", "Title", lambda o: [], {}, words)
    text = page(contest, [turn("localsvm", 0, 1.0), failed("peer", "No module named 'peer'")])
    assert "failed No module named 'peer'" in text
    assert "a processor" in text


@pytest.mark.parametrize(("value", "text"), [(None, ""), (0.01234, "0.0123"), (12.34, "12.3"), (12345.6, "12 346")])
def test_numbers(value: float | None, text: str) -> None:
    assert number(value) == text


def test_a_contestant_answers_fails_or_is_stopped() -> None:
    good = run_contestant(python(f"print('chatter'); print({ANSWER!r} + '{{\"wall\": 2}}')"), 1, 60)
    assert good["status"] == "ok"
    assert good["figures"]["wall"] == 2
    assert run_contestant(python("import no_such_peer"), 1, 60) == {
        "status": "failed", "message": "ModuleNotFoundError: No module named 'no_such_peer'"
    }  # fmt: skip
    crashed = run_contestant(python("import os; os.abort()"), 1, 60)
    assert crashed == {"status": "failed", "message": "ended with exit status -6"}
    started = time.perf_counter()
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    assert run_contestant(python(child), 1, 0.5) == {"status": "timeout", "message": "stopped after 0.5 s"}
    assert time.perf_counter() - started < 20


def test_contestants_are_pinned() -> None:
    text = "import os, json; e = os.environ; a = {'t': e['OMP_NUM_THREADS'], 'n': len(os.sched_getaffinity(0))}"
    result = run_contestant(python(f"{text}; print({ANSWER!r} + json.dumps(a))"), 1, 60)
    assert (result["figures"]["t"], result["figures"]["n"]) == ("1", 1)


class Counting(Rounds):
    """Counts what is measured and answers from a script."""

    answers: dict[str, dict[str, Any]] = {}  # noqa: RUF012

    def measure(self, case: Case, name: str, repeat: int) -> dict[str, Any]:
        self.order = [*getattr(self, "order", []), (case.rows, name)]
        return self.answers.get(name, {"status": "ok", "figures": {"wall": 1.0, "process": 1.0}})


def words(turns: list[Turn]) -> list[str]:
    return [f"{s.status} {s.message}" for s in summaries(turns)]


def measuring(tmp_path: Path, repeats: int = 2, reuse: tuple[str, ...] = (), **answers: dict[str, Any]) -> Counting:
    contestants = {"localsvm": lambda c, o: {}, "peer": lambda c, o: {}}
    contest = Comparison("job", "Title", lambda o: [Case("set", 10), Case("set", 20)], contestants, words, reuse=reuse)
    options = argparse.Namespace(repeats=repeats, peers=None, out=tmp_path, fresh=False, page_only=False)
    rounds = Counting(contest, options, [])
    rounds.answers = answers
    rounds.carry_out()
    return rounds


def load(log: Path) -> list[Turn]:
    return RunLog(log, Turn).runs


def test_contestants_take_turns_and_finished_runs_are_kept(tmp_path: Path) -> None:
    first = measuring(tmp_path)
    turns = [(10, "localsvm"), (10, "peer")] * 2
    assert first.order == turns + [(20, name) for _, name in turns]
    log = tmp_path / "job.jsonl"
    assert len(load(log)) == 8
    assert not hasattr(measuring(tmp_path), "order")
    text = log.read_text()
    log.write_text(text[: len(text) - 20])  # as an interruption may leave it
    assert measuring(tmp_path).order == [(20, "peer")]
    assert len(load(log)) == 8


def test_long_runs_are_not_repeated_and_stopped_peers_not_started_again(tmp_path: Path) -> None:
    long = {"status": "ok", "figures": {"wall": 100.0, "process": 100.0}}
    stopped = {"status": "timeout", "message": "stopped after 600 s"}
    rounds = measuring(tmp_path, localsvm=long, peer=stopped)
    assert rounds.order == [(10, "localsvm"), (10, "peer"), (20, "localsvm")]
    assert rounds.turns[-1].message == "over the limit with 10 rows already"


def test_one_long_run_ends_the_rounds_of_all(tmp_path: Path) -> None:
    rounds = measuring(tmp_path, peer={"status": "ok", "figures": {"wall": 100.0, "process": 100.0}})
    assert rounds.order == [(10, "localsvm"), (10, "peer"), (20, "localsvm"), (20, "peer")]


def test_draws_are_different_rows_and_always_the_same() -> None:
    options = argparse.Namespace()
    first, again, second = (datasets.arrays(options, datasets.GENERATED, 50, "train", draw) for draw in (0, 0, 1))
    np.testing.assert_array_equal(first[0], again[0])
    assert not np.isin(first[0], second[0]).any()
    assert first[0].shape == second[0].shape


def test_failures_are_tried_again_by_the_next_call(tmp_path: Path) -> None:
    rounds = measuring(tmp_path, peer={"status": "failed", "message": "no such module"})
    assert [turn for turn in rounds.order if turn[1] == "peer"] == [(10, "peer"), (20, "peer")]
    again = measuring(tmp_path)
    assert again.order == [(10, "peer"), (10, "peer"), (20, "peer"), (20, "peer")]
    assert {t.status for t in again.turns} == {"ok"}
    assert not hasattr(measuring(tmp_path), "order")
    assert "no such module" not in (tmp_path / "job.md").read_text()


def test_results_of_another_comparison_count_too(tmp_path: Path) -> None:
    measuring(tmp_path, repeats=1)
    (tmp_path / "job.jsonl").rename(tmp_path / "other.jsonl")
    assert not hasattr(measuring(tmp_path, repeats=1, reuse=("other",)), "order")
    assert "ok" in (tmp_path / "job.md").read_text()


def test_a_contestant_whose_command_fails_ends_with_its_exit_status() -> None:
    def fails(case: Case, options: argparse.Namespace) -> dict[str, Any]:
        raise subprocess.CalledProcessError(3, "lsvm")

    contest = Comparison("job", "Title", lambda o: [], {"localsvm": fails}, lambda t: [])
    with pytest.raises(SystemExit) as ended:
        main(contest, "", ["--contestant", "localsvm", "--case", Case("set", 10).key()])
    assert ended.value.code == 3


def test_another_machine_counts_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measuring(tmp_path)
    monkeypatch.setattr(comparison, "machine", lambda: MACHINE)
    assert len(measuring(tmp_path).order) == 8


def test_repetition_within_a_process() -> None:
    calls: list[int] = []
    figures = timed(lambda: calls.append(1))
    assert figures["calls"] == len(calls) == timing.ENOUGH_CALLS
    assert timed(lambda: calls.append(1), most=1)["calls"] == 1


def test_memory_of_a_family_is_watched() -> None:
    text = "import subprocess, sys, time; x = b'x' * (100 << 20); time.sleep(.5)"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {text!r}])"
    with subprocess.Popen(python(nested)) as process, Memory(process.pid) as memory:
        process.wait()
    assert 100 << 20 < memory.peak <= memory.mapped < 300 << 20


def test_the_log_is_plain_json(tmp_path: Path) -> None:
    measuring(tmp_path, repeats=1)
    line = json.loads((tmp_path / "job.jsonl").read_text().splitlines()[0])
    assert {"case", "contestant", "repeat", "machine", "commit", "status", "message", "figures"} == set(line)
