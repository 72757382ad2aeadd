"""The comparison of versions: what counts as a difference, and that sets are the same each time. Nothing is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from develop import same_models as script
from develop.same_models_runs import SETS, TEST_ROWS, Run, runs, texts, write_sets

MANIFEST = {"/@config": "text 1", "/@generator": "text 2", "/cells": "group", "/cells/coef": "<f8 [3] 4"}
DECISIONS = "labels -1/1\n1 0.5\n-1 -0.25\n"
RUN = Run("linear small none", "small", ("-m", "linear", "-C", "1"))
TWIN = Run("twin", "small", (), twin=RUN.name)


def result(decisions: str = DECISIONS, **entries: str) -> dict[str, Any]:
    names = {f"/cells/{name}": value for name, value in entries.items()}
    return {"manifest": MANIFEST | names, "decisions": decisions, "table": ""}


def test_equal_results_do_not_differ() -> None:
    other = result()
    other["manifest"]["/@generator"] = "text of another version"
    assert script.difference(result(), other) == ""


def test_only_options_that_both_versions_keep_are_compared() -> None:
    old, new = result(), result()
    old["config"] = {"seed": 0, "gone": 1, "method": {"name": "svm", "cost": [1.0]}}
    new["config"] = {"seed": 0, "new": 1, "method": {"name": "svm", "cost": [1.0], "new": 1}}
    new["manifest"] |= {"/@config": "text of more options", "/@format_version": "int 2"}
    assert script.difference(old, new) == ""
    new["config"]["seed"] = 1
    assert script.difference(old, new) == "the option seed"
    new["config"] = old["config"] | {"method": {"name": "svm", "cost": [2.0]}}
    assert script.difference(old, new) == "the option cost"


def test_the_first_entries_that_differ_are_named() -> None:
    assert script.difference(result(), result(coef="<f8 [3] 5")) == "/cells/coef"
    assert script.difference(result(), result(a="group")) == "/cells/a (new)"
    assert script.difference(result(a="group"), result()) == "/cells/a (gone)"
    many = result(a="1", b="2", c="3", coef="4", d="5")
    assert script.difference(result(), many) == "/cells/a (new), /cells/b (new), /cells/c (new) and 2 more"


def test_how_far_decisions_are_apart() -> None:
    assert "1 of 2 labels, decision values by up to 0.75" in script.difference(
        result(), result(DECISIONS.replace("-1 -0.25", "1 0.5"))
    )
    assert "other lines" in script.difference(result(), result("labels -1/1\n1 0.5\n"))


def test_tables_and_errors() -> None:
    assert script.difference({"table": "a"}, {"table": "b"}) == "the table"
    assert script.difference({"error": "no"}, {"error": "no"}) == ""
    assert script.difference({"error": "no"}, result()) == "no -> no error"


def test_a_run_is_compared_with_its_twin() -> None:
    old = {RUN.name: result(), TWIN.name: result()}
    assert script.compare(TWIN, old, old) == ""
    new = {RUN.name: result(coef="x"), TWIN.name: result()}
    assert script.compare(TWIN, old, new) == "from -j 1 in NEW: /cells/coef"


def test_exit_code_and_summary(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    new = result()
    by_version = {"old": {RUN.name: result()}, "new": {RUN.name: new}}
    monkeypatch.setattr(script, "runs", lambda quick, only: [RUN])
    monkeypatch.setattr(script, "write_sets", lambda folder: {})
    monkeypatch.setattr(script, "version_of", lambda name: name)
    monkeypatch.setattr(script, "results", lambda version, chosen, digests: by_version[version])
    assert script.main(["old", "new"]) == 0
    assert capsys.readouterr().out == "1 runs, 0 differ\n"
    new["manifest"]["/cells/coef"] = "<f8 [3] 5"
    assert script.main(["old", "new"]) == 1
    assert capsys.readouterr().out == "linear small none: /cells/coef\n1 runs, 1 differ\n"


def test_a_commit_is_run_once_and_a_working_tree_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def trained(version: script.Version, todo: list[Run]) -> dict[str, Any]:
        asked.append(version.name)
        return {run.name: result() for run in todo}

    monkeypatch.setattr(script, "trained", trained)
    for name, cache in (("commit", tmp_path / "sha.json"), ("tree", None)):
        for _ in range(2):
            version = script.Version(name, tmp_path, cache)
            assert script.results(version, [RUN], {"small": "digest"}) == {RUN.name: result()}
    assert asked == ["commit", "tree", "tree"]
    script.results(script.Version("commit", tmp_path, tmp_path / "sha.json"), [RUN], {"small": "of other rows"})
    assert asked[3:] == ["commit"]


def test_unbuilt_checkouts_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "write_sets", lambda folder: {})
    (tmp_path / "localsvm").mkdir()
    (tmp_path / "localsvm" / "_quick.pyx").touch()
    assert script.main([str(tmp_path)]) == 2
    assert "is not built: there is no localsvm/_quick" in capsys.readouterr().err


def test_what_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(script, "write_sets", lambda folder: {})
    assert script.main(["no-such-commit"]) == 2
    assert "no-such-commit" in capsys.readouterr().err
    assert script.main(["HEAD", "--only", "no such run"]) == 2
    assert "no run has 'no such run'" in capsys.readouterr().err


def test_sets_are_the_same_each_time(tmp_path: Path) -> None:
    assert write_sets(tmp_path / "a") == write_sets(tmp_path / "b")
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


@pytest.mark.parametrize("name", SETS)
def test_sets_have_the_classes_they_promise(name: str) -> None:
    train, test = (part.splitlines() for part in texts(name))
    assert (len(train), len(test)) == (SETS[name].rows, TEST_ROWS)
    labels = {line.split()[0] for line in train}
    assert len(labels) > 2 if SETS[name].many else len(labels) == 2
    assert {line.split()[0] for line in test} <= labels


def test_runs_have_names_of_their_own_and_their_twins() -> None:
    names = [run.name for run in runs()]
    assert len(names) == len(set(names)) and {run.twin for run in runs()} - {""} <= set(names)
    assert {run.name for run in runs(quick=True)} < set(names)
    twins = runs(only="-m linear -s primal -C 0.1,1 -j 2")
    assert [run.name[-4:] for run in twins] == ["-j 1", "-j 2"]


def test_a_run_of_this_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "FOLDER", tmp_path)
    write_sets(tmp_path / "sets")
    first, second = (script.outcome(RUN, tmp_path / name) for name in ("a", "b") if not (tmp_path / name).mkdir())
    assert first["manifest"]["/@config"].startswith("text ") and len(first["decisions"].splitlines()) == TEST_ROWS + 1
    assert script.difference(first, second) == ""
    wrong = script.outcome(RUN._replace(arguments=("-m", "nearest")), tmp_path / "a")
    assert "nearest" in wrong["error"]
    usage = script.outcome(RUN._replace(command="cv"), tmp_path / "a")
    assert usage["table"].startswith("cell,rows,")
