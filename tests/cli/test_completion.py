"""Completion in shells: commands, options, values and file names, for all programs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from command_line import clean_environment, invoke

from localsvm.cli.completion import SHELLS
from localsvm.cli.group import COMMANDS, PROGRAMS, lsvm

HEAVY = ("numpy", "scipy", "h5py", "sklearn")


def program(name: str) -> click.Command:
    part = name.removeprefix("lsvm-")
    return lsvm if name == "lsvm" else getattr(import_module(f"localsvm.cli.{part}"), part)


def completed(name: str, *words: str) -> list[tuple[str, str]]:
    """Types and values of the completions of the last word, which is incomplete, after the other words."""
    completions = ShellComplete(program(name), {}, name, "X").get_completions([*words[:-1]], words[-1])
    return [(item.type, item.value) for item in completions]


def values(name: str, *words: str) -> list[str]:
    return [value for _, value in completed(name, *words)]


def test_commands_options_and_values() -> None:
    assert values("lsvm", "") == list(COMMANDS)
    assert values("lsvm", "pre") == ["predict"]
    assert values("lsvm-train", "--part") == ["--partition", "--partition-file"]
    assert values("lsvm-train", "-m", "l3") == ["l3", "l3-kernel"]
    assert values("lsvm", "cv", "-P", "k") == ["kmeans", "kmeans-manhattan"]
    assert values("lsvm", "completion", "") == list(SHELLS)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lsvm-train", ("tr",)),
        ("lsvm-train", ("-C", "1", "train.libsvm", "mo")),
        ("lsvm-train", ("--partition-file", "ce")),
        ("lsvm-predict", ("test.libsvm", "")),
        ("lsvm-predict", ("test.libsvm", "m.h5", "out")),
        ("lsvm-partition", ("train.libsvm", "ce")),
        ("lsvm-cv", ("--plot", "")),
        ("lsvm", ("inspect", "m")),
        ("lsvm", ("convert", "a", "b")),
    ],
)
def test_file_names_are_left_to_the_shell(name: str, words: tuple[str, ...]) -> None:
    assert completed(name, *words) == [("file", words[-1])]


@pytest.mark.parametrize("shell", SHELLS)
def test_one_line_is_for_all_programs(shell: str) -> None:
    script = invoke("completion", shell).stdout
    for name in PROGRAMS:
        assert f"_{name.replace('-', '_').upper()}_COMPLETE" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes(tmp_path: Path) -> None:
    """Completion functions of a real bash leave the completed words in COMPREPLY."""
    for name in PROGRAMS:
        module = "group:lsvm" if name == "lsvm" else f"{name[5:]}:{name[5:]}"
        file, _, function = module.partition(":")
        code = f"from localsvm.cli.{file} import {function}; {function}(prog_name={name!r})"
        (tmp_path / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$@"\n')
        (tmp_path / name).chmod(0o755)
    script = r"""
        eval "$(lsvm completion bash)"
        reply() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            function=$(complete -p "$1" | sed 's/.*-F \([^ ]*\) .*/\1/')
            "$function" "$1" 2>/dev/null  # compopt is for a terminal only
            echo "${COMPREPLY[*]}"
        }
        reply lsvm tr
        reply lsvm-train --see
        reply lsvm-train -P chu
        reply lsvm-cv -m ml3
        reply lsvm-predict --conf
        reply lsvm-partition --forc
    """
    path = f"{tmp_path}:{clean_environment()['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, env=clean_environment(PATH=path)
    )
    assert done.stdout.splitlines() == ["train", "--seed", "chunks", "ml3", "--confusion", "--force"]


def test_completing_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom localsvm.cli.train import train\n"
        "try: train(prog_name='lsvm-train')\nexcept SystemExit: pass\n"
        f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    words = {"_LSVM_TRAIN_COMPLETE": "bash_complete", "COMP_WORDS": "lsvm-train --solv", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=clean_environment(**words))
    assert (done.stdout, done.stderr) == ("plain,--solver\n", "[]\n")
