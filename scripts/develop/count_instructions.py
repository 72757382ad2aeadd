#!/usr/bin/env python3
"""Count the instructions of the C kernels under callgrind; compare them with those in tests/golden/instructions.txt.

    python scripts/develop/count_instructions.py            counts, and writes the file
    python scripts/develop/count_instructions.py --check    fails where a kernel takes over 5 % more than in the file

Seconds are noise on shared machines, instructions are not: one generated cell (count_instructions.c) goes through
every kernel at the AVX2 level, the highest that valgrind knows, built with the FLAGS of setup.py. An increase that is
meant is accepted by committing the rewritten file. The file names compiler, C library and processor, since counts of
others do not compare.

The table goes to stdout. Where nothing can be compared (no valgrind, no AVX2, another compiler, library or processor),
a line on stderr says so, and the exit code is 0; it is 1 for an increase, a kernel that is not in the file, or a driver
that does not work.
"""

from __future__ import annotations

import argparse
import ast
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DRIVER = ROOT / "scripts" / "develop" / "count_instructions.c"
GOLDEN = ROOT / "tests" / "golden" / "instructions.txt"
WRITE = "make count-instructions"
TOLERANCE = 5.0  # per cent
NO_AVX2 = 3  # exit code of the driver
CALLGRIND = ["--command-line-only=yes", "--tool=callgrind", "--dump-after=measure_*", "--dump-after=between*"]


class Unavailable(Exception):
    """Something that counting or comparing needs is not here; the message says what."""


class Broken(Exception):
    """The driver does not build or run; the message says why."""


class Count(NamedTuple):
    """The instructions and iterations of one kernel."""

    instructions: int
    iterations: int  # of the solvers, 0 elsewhere


class Counts(NamedTuple):
    """The counts of all kernels, and where they were counted: compiler, C library and processor."""

    where: dict[str, str]
    kernels: dict[str, Count]


def main(arguments: list[str] | None = None) -> int:
    """Write or compare; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the file, and write nothing")
    options = parser.parse_args(arguments)
    try:
        then = read(GOLDEN) if GOLDEN.exists() else None
        if options.check:
            return check(then)
        now = Counts(where(), count())
        print(table(now.kernels, then.kernels if then and then.where == now.where else {}))
        write(GOLDEN, now)
    except Unavailable as reason:
        print(f"instructions not {'compared' if options.check else 'counted'}: {reason}", file=sys.stderr)
    except Broken as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 1
    return 0


def check(then: Counts | None) -> int:
    """Compare with the file; 1 where a kernel takes too many instructions."""
    if then is None:
        raise Broken(f"there is no {GOLDEN.name}; write it by: {WRITE}")
    if (here := where()) != then.where:
        what = "; ".join(
            f"{here[name]}, not {then.where.get(name)}" for name in here if here[name] != then.where.get(name)
        )
        raise Unavailable(f"{GOLDEN.name} is of another place ({what})")
    now = count()
    print(table(now, then.kernels))
    mistakes = [
        f"{name} takes {change:.1f} % more instructions" for name, change in too_many(now, then.kernels).items()
    ]
    mistakes += [f"{name} is not in the file" for name in now.keys() - then.kernels.keys()]
    mistakes += [f"{name} is in the file only" for name in then.kernels.keys() - now.keys()]
    for mistake in mistakes:
        print(f"error: {mistake}", file=sys.stderr)
    if mistakes:
        print(f"If that is meant: {WRITE}, and commit {GOLDEN.relative_to(ROOT)}", file=sys.stderr)
    return 1 if mistakes else 0


# --- the comparison


def change_of(now: Count, then: Count) -> float:
    """Instructions more than in the file, in per cent."""
    return 100 * (now.instructions - then.instructions) / then.instructions


def too_many(now: dict[str, Count], then: dict[str, Count]) -> dict[str, float]:
    """The kernels that take more than TOLERANCE over the file, and their changes in per cent."""
    changes = {name: change_of(now[name], then[name]) for name in now if name in then}
    return {name: change for name, change in changes.items() if change > TOLERANCE}


def table(now: dict[str, Count], then: dict[str, Count]) -> str:
    """A row a kernel, with what the file says where it says something else."""
    head = f"{'kernel':<12} {'instructions':>13} {'in the file':>13} {'change':>9}   iterations"
    return "\n".join([head, *(row(name, one, then.get(name)) for name, one in now.items())])


def row(name: str, now: Count, then: Count | None) -> str:
    """One kernel."""
    before, change, steps = "", "", str(now.iterations or "")
    if then and then != now:
        before, change = f"{then.instructions:,}", f"{change_of(now, then):+z.1f} %"
        steps = f"{then.iterations} -> {now.iterations}" if then.iterations != now.iterations else steps
    note = "TOO MANY" if then and change_of(now, then) > TOLERANCE else ""
    return f"{name:<12} {now.instructions:>13,} {before:>13} {change:>9}   {steps:<14} {note}".rstrip()


# --- the file


def where() -> dict[str, str]:
    """Compiler, C library and processor, on which counts depend beside the code."""
    try:
        compiler = subprocess.run([*compiler_command(), "--version"], check=True, capture_output=True, text=True).stdout
    except OSError as error:
        raise Unavailable(f"there is no compiler {compiler_command()[0]}") from error
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "compiler": compiler.splitlines()[0],
        "library": " ".join(platform.libc_ver()),
        "processor": names[0] if names else platform.machine(),
    }


def compiler_command() -> list[str]:
    """CC, or cc."""
    return os.environ.get("CC", "cc").split()


def write(path: Path, counts: Counts) -> None:
    """The file: where it was counted, and a line a kernel."""
    lines = ["# Instructions and iterations of the C kernels, written by `make count-instructions`."]
    lines += [f"# {name}: {value}" for name, value in counts.where.items()]
    lines += [f"{name:<12} {one.instructions:>11} {one.iterations:>7}" for name, one in counts.kernels.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read(path: Path) -> Counts:
    """Counts from a file that `write` wrote."""
    text = path.read_text(encoding="utf-8")
    kernels = {
        name: Count(int(n), int(steps)) for name, n, steps in re.findall(r"^(\w+) +(\d+) +(\d+)$", text, re.MULTILINE)
    }
    return Counts(dict(re.findall(r"^# (\w+): (.*)$", text, re.MULTILINE)), kernels)


# --- building and counting


def flags(root: Path = ROOT) -> list[str]:
    """FLAGS of setup.py."""
    for node in ast.parse((root / "setup.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLAGS":
            return list(ast.literal_eval(node.value))
    raise Broken("setup.py has no FLAGS")


def count() -> dict[str, Count]:
    """Build the driver with csrc, and count every kernel."""
    valgrind = shutil.which("valgrind")
    if not valgrind:
        raise Unavailable("valgrind is not installed")
    with tempfile.TemporaryDirectory(prefix="count-instructions-") as name:
        folder = Path(name)
        program = build(folder)
        lines = run([program]).split("\n")
        run([valgrind, *CALLGRIND, f"--callgrind-out-file={folder / 'part'}", program])
        instructions = read_parts(folder)
    iterations = dict(line.split() for line in lines if line)
    if instructions.keys() != iterations.keys():
        raise Unavailable(f"callgrind saw {len(instructions)} of {len(iterations)} kernels")
    return {name: Count(instructions[name], int(steps)) for name, steps in iterations.items()}


def build(folder: Path) -> str:
    """The driver, without warnings: make check-c has them."""
    program, csrc = str(folder / "cell"), ROOT / "csrc"
    sources = [str(DRIVER), *sorted(map(str, csrc.glob("*.c")))]
    command = [*compiler_command(), *flags(), "-w", f"-I{csrc}", *sources, "-o", program, "-lm"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.splitlines()
        raise Broken(next((line for line in lines if "error" in line or "undefined" in line), "no build")) from error
    return program


def run(command: list[str]) -> str:
    """The output of the driver, on its own or under valgrind."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == NO_AVX2:
        raise Unavailable("the processor, or valgrind, has no AVX2")
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [""])[-1]
        failure = Broken if len(command) == 1 else Unavailable  # it ran on its own before
        raise failure(f"{Path(command[0]).name} ended with code {done.returncode}: {reason}")
    return done.stdout


def read_parts(folder: Path) -> dict[str, int]:
    """Instructions of each kernel: callgrind writes a part at the end of each, named by its function."""
    counts: dict[str, int] = {}
    for path in folder.glob("part.*"):
        text = path.read_text(encoding="utf-8", errors="replace")
        name = re.search(r"^desc: Trigger: --dump-after=measure_(\w+)", text, re.MULTILINE)
        total = re.search(r"^totals: (\d+)", text, re.MULTILINE)
        if name and total:
            counts[name[1]] = int(total[1])
    return counts


if __name__ == "__main__":
    sys.exit(main())
