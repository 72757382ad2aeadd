"""Folders of methods that cannot be used: every command says so in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import clean_environment, run

HEAD = """
from dataclasses import dataclass
from typing import ClassVar
from localsvm.methods.base import Method
from localsvm.methods.option import option
from localsvm.methods.linear.linear import LinearSVM

@dataclass(frozen=True)
class Mine(LinearSVM):
    name: ClassVar[str] = "mine"
"""
BROKEN = {
    "a syntax error": ("def f(:\n", "mine.py cannot be loaded: SyntaxError"),
    "a flag of all methods": (HEAD + '    size: int = option(1, "-c", help="Size.")\n', "-c has two meanings"),
    "a name of all methods": (HEAD + '    seed: int = option(1, "--grain", help="Seed.")\n', "seed has two meanings"),
    "no value": (
        HEAD + '    size: int = option(1 + one, "--size", help="Size.")\n',
        "mine.py cannot be loaded: NameError",
    ),
    "another type": (HEAD + '    size: list = option(1, "--size", help="Size.")\n', "size is list, not bool, int"),
    "a flag of another method": (HEAD + '    size: int = option(1, "-g", help="Size.")\n', "something else in another"),
    "no folder": (None, "which is not a folder"),
}


@pytest.mark.fast(1)
@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("command", [("train", "x"), ("predict", "x", "y"), ("inspect", "--help")])
def test_a_folder_that_cannot_be_used_is_told(what: str, command: tuple[str, ...], tmp_path: Path) -> None:
    source, message = BROKEN[what]
    folder = tmp_path / "methods"
    if source is not None:
        folder.mkdir()
        (folder / "mine.py").write_text(source)
    if "of all methods" in what and command[0] != "train":
        pytest.skip("the command has no options of methods")
    done = run(*command, env=clean_environment(LOCALSVM_METHODS=str(folder)))
    text = done.stderr.decode()
    assert done.returncode == 2 and done.stdout == b""
    assert text.startswith("error: ") and message in text and text.count("\n") == 1


def test_a_folder_needs_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "mine.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    done = run("train", "x", env=clean_environment(LOCALSVM_METHODS="methods"))
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"error: LOCALSVM_METHODS names methods; give the whole path, {tmp_path}/methods\n"


def test_a_file_that_cannot_be_imported_is_told(train_file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HEAD + "\nimport a_module_that_is_not_there\n")
    environment = clean_environment(LOCALSVM_METHODS=str(tmp_path))
    done = run("train", "-m", "mine", train_file, tmp_path / "m.h5", env=environment)
    message = f"error: {tmp_path}/mine.py cannot be loaded: ModuleNotFoundError: No module named"
    assert done.returncode == 2 and done.stderr.decode().startswith(message)


def test_a_name_needs_no_annotation(train_file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HEAD.replace('name: ClassVar[str] = "mine"', 'name = "mine"'))
    environment = clean_environment(LOCALSVM_METHODS=str(tmp_path))
    done = run("train", "-q", "-m", "mine", "-C", 1, train_file, tmp_path / "m.h5", env=environment)
    assert (done.returncode, done.stderr) == (0, b"")


def test_options_of_other_methods_have_a_group(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HEAD + '    size: int = option(1, "--size", help="Size.")\n')
    done = run("train", "--help", env=clean_environment(LOCALSVM_METHODS=str(tmp_path)))
    assert b"\nOther methods:\n  --size" in done.stdout
