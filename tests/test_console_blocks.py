"""The commands in the documents run as they stand there, and print what stands below them.

Of each page, the commands in its blocks of `console` are run in their order, in a folder of their own. It has the data
of the repository, and small files for the names that stand for a reader's own. Only the commands of localsvm are run,
and awk, which makes their files, with the variables of localsvm that the page exports before. A line of output that is
`...` stands for any lines. Numbers may differ a little, as they do from processor to processor.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from command_line import clean_environment

from localsvm.data.synthetic import banana
from localsvm.data.writers.libsvm import write

ROOT = Path(__file__).parents[1]
PROGRAMS = os.path.dirname(sys.executable)
PLACEHOLDERS = ("train.libsvm", "test.libsvm", "other.libsvm")
TABLE = "customers.csv"
ROWS = 300
LONGEST = 120  # seconds of a command
OURS = re.compile(r"(?:awk|lsvm(?:-\w+)?) ")
VARIABLE = re.compile(r"export LOCALSVM_\w+=\S*")
BLOCKS = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
NEAR, LITTLE = 0.2, 1.0  # numbers that differ by this share, or by so much, are alike
FAST = {"README.md"}  # the pages that the fast tests run
CHANGING = {  # from run to run, or from version to version
    r"\d{4}-\d\d-\d\d[T ][\d:.+Z-]+": "DATE",
    r"\b\d+(?:\.\d+){2}\S*": "VERSION",
    r"\b[\d,.]+ (?:ms|s|min|h)\b": "TIME",
    r"\b[\d,]+ bytes\b": "BYTES",
}

pytestmark = pytest.mark.skipif(not os.path.exists(os.path.join(PROGRAMS, "lsvm")), reason="lsvm is not installed here")


class Command(NamedTuple):
    """A command of a document, and the output below it, "" for none."""

    line: str
    output: str


def commands(page: Path) -> list[Command]:
    """The commands of a page, in their order. A line that ends in a backslash goes on in the next."""
    parsed, exported = [], ""
    for block in BLOCKS.findall(page.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            if variable := VARIABLE.match(line):
                exported += f"{variable[0]}; "
            elif OURS.match(line):
                parsed.append(Command(exported + line.strip(), output.strip()))
    return parsed


def documents() -> list[Path]:
    """The pages with commands of localsvm."""
    return [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if commands(page)]


def steady(text: str) -> list[str]:
    """Lines without what differs from run to run."""
    for pattern, word in CHANGING.items():
        text = re.sub(pattern, word, text)
    return [line.rstrip() for line in text.strip().splitlines()]


def alike(shown: str, printed: str) -> bool:
    """True where a document shows what was printed."""
    lines = ("((?:.*\n)*?)" if line == "..." else pattern_of(line) + r" *\n" for line in steady(shown))
    match = re.fullmatch("".join(lines), "".join(f"{line}\n" for line in steady(printed)))
    numbers = [number for line in steady(shown) for number in NUMBER.findall(line)]
    groups = [group for group in match.groups() if NUMBER.fullmatch(group)] if match else []
    return match is not None and (
        len(groups) != len(numbers) or all(map(is_near, map(value_of, numbers), map(value_of, groups)))
    )


def pattern_of(line: str) -> str:
    """A pattern for the line with any numbers in the place of its own, and blanks that align columns."""
    parts = [re.sub(r"(\\ )+", " +", re.escape(part)) for part in NUMBER.split(line)]
    return f"({NUMBER.pattern})".join(parts)


def value_of(number: str) -> float:
    """The number of a text with commas."""
    return float(number.replace(",", ""))


def is_near(a: float, b: float) -> bool:
    """True where both numbers may be the same result on two machines."""
    return abs(a - b) <= max(LITTLE, NEAR * abs(a))


@pytest.fixture(scope="session")
def placeholders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that stand for a reader's own: three features, two classes."""
    folder = tmp_path_factory.mktemp("placeholders")
    for seed, name in enumerate(PLACEHOLDERS):
        random = np.random.default_rng(seed)
        X, y = banana(ROWS, random)
        write(folder / name, np.column_stack([X, random.normal(size=ROWS)]).astype(np.float32), y)
    lines = [f"{'yes' if i % 40 > 20 else 'no'},{i % 40},{'ab'[i % 2]}\n" for i in range(ROWS)]
    (folder / TABLE).write_text("".join(["churn,age,plan\n", *lines]))
    return folder


@pytest.fixture
def folder(placeholders: Path, tmp_path: Path) -> Path:
    """A folder as a reader has it, from which nothing is written into the repository."""
    (tmp_path / "data").mkdir()
    os.symlink(ROOT / "docs", tmp_path / "docs")
    for file in (ROOT / "data").iterdir():
        os.symlink(file, tmp_path / "data" / file.name)
    for name in (*PLACEHOLDERS, TABLE):
        shutil.copy(placeholders / name, tmp_path)
    return tmp_path


@pytest.mark.fast(99)
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.name, marks=() if page.name in FAST else pytest.mark.whole) for page in documents()],
)
def test_commands_run_and_print_what_is_shown(page: Path, folder: Path) -> None:
    environment = clean_environment(PATH=os.pathsep.join([PROGRAMS, os.environ["PATH"]]))
    for command in commands(page):
        done = subprocess.run(
            ["bash", "-c", command.line], cwd=folder, env=environment, timeout=LONGEST, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        failed = done.returncode != 0 or re.search(r"^error: ", done.stdout, re.MULTILINE | re.IGNORECASE)
        assert not failed, f"$ {command.line}\n{done.stdout}(exit code {done.returncode})"
        if command.output:
            assert alike(command.output, done.stdout), (
                f"$ {command.line}\n{done.stdout}is printed, not this:\n{command.output}"
            )


def test_what_changes_from_run_to_run_is_not_compared() -> None:
    shown = "read 0.0 s, metric 1.8 s; 2.0 s in all\nby localsvm 0.1.0, 2026-11-22T14:32:32+00:00, 5,215 bytes"
    printed = "read 9 s, metric 12.8 s; 22 s in all\nby localsvm 1.10.2, 2027-01-02T01:02:03+00:00, 15 bytes"
    assert alike(shown, printed) and not alike(shown, printed.replace("metric", "matrix"))
    assert alike("error 6.16 %", "error 6.41 %\n") and not alike("error 6.16 %", "error 26.41 %\n")
    assert alike("first\n...\nlast", "first\n1\n2\nlast\n") and not alike("first\n...\nlast", "first\n1\n2\n")


def test_only_commands_of_localsvm_are_run(tmp_path: Path) -> None:
    lines = [
        "```console",
        "$ make x",
        "$ export LOCALSVM_SIMD=avx2",
        "$ lsvm-cv a |\\",
        "  head",
        "out",
        "",
        "$ xz | lsvm-cv",
    ]
    (tmp_path / "page.md").write_text("\n".join([*lines, "```", "$ lsvm b"]))
    assert commands(tmp_path / "page.md") == [Command("export LOCALSVM_SIMD=avx2; lsvm-cv a |   head", "out")]
