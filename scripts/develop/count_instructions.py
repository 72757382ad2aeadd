#!/usr/bin/env python3
"""Count the instructions of the C kernels under callgrind, and compare them with the parent commit's.

    python scripts/develop/count_instructions.py              the counts of this checkout
    python scripts/develop/count_instructions.py --check      fails where a kernel takes over 5 % more than in the parent commit
    python scripts/develop/count_instructions.py --check --base v1.2 --accept 'smo_path +12 %'

Seconds are noise on shared machines, instructions are not: one generated cell (count_instructions.c) goes through
every kernel at the AVX2 level, the highest that valgrind knows. Both sides are built with the checkout's driver, each
with the FLAGS of its own setup.py; a base that this driver does not fit, with its own one. Where csrc has changes that
are not committed, they are compared with HEAD instead.
Counts of different machines or compilers do not compare.

An increase that is meant is accepted by a trailer of the commit message (its last paragraph) with its size, to which
the 5 % are added:

    Instructions: smo_path +12 %, smo_solve +8 % because the second-order choice saves more iterations on real cells

The table goes to stdout. Where nothing can be compared (no valgrind, no AVX2, no parent commit, a parent that neither
driver fits), a line on stderr says so, and the exit code is 0; it is 1 for an increase or a driver that does
not work.
"""

from __future__ import annotations

import argparse
import ast
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DRIVER = Path("scripts/develop/count_instructions.c")  # within a tree
DRIVER_FILES = [str(DRIVER), "scripts/develop/count_cell.h"]
TOLERANCE = 5.0  # per cent
NO_AVX2 = 3  # exit code of the driver
CALLGRIND = ["--command-line-only=yes", "--tool=callgrind", "--dump-after=measure_*", "--dump-after=between*"]


class Unavailable(Exception):
    """What a comparison needs is not here; the message says what."""


class Broken(Exception):
    """The driver does not build or run with a tree's csrc; the message says why."""


class Count(NamedTuple):
    """What one kernel took."""

    instructions: int
    iterations: int  # of the solvers, 0 elsewhere


Counts = dict[str, Count]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Print the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with the parent commit")
    parser.add_argument("--base", help="compare with this commit instead")
    parser.add_argument("--accept", default=[], action="append", help="an accepted increase, as in a trailer")
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="count-instructions-") as folder:
            if options.check:
                return check(root, options.base, options.accept, Path(folder))
            print(table(count(root, Path(folder))))
    except Unavailable as reason:
        print(f"instructions not {'compared' if options.check else 'counted'}: {reason}", file=sys.stderr)
    except Broken as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 1
    return 0


def check(root: Path, asked: str | None, accept: list[str], folder: Path) -> int:
    """Compare the checkout with its base; 1 where a kernel takes too many instructions."""
    base = base_commit(root, asked)
    tree = extract(root, base, folder / "tree")
    if contents(root) == contents(tree):
        print(f"csrc and its flags are those of {base}: no instructions to compare")
        return 0
    now, then = count_both(root, tree, folder)
    allowed = increases([*trailers(root, base), *accept])
    for name in sorted(allowed.keys() - now.keys()):
        print(f"warning: no kernel {name} to accept an increase of; there are {', '.join(now)}", file=sys.stderr)
    print(table(now, then, allowed))
    return report(too_many(now, then, allowed), base)


def report(failures: dict[str, float], base: str) -> int:
    """Say what failed and what to do about it."""
    for name, change in failures.items():
        print(f"error: {name} takes {change:.1f} % more instructions than in {base}", file=sys.stderr)
    if failures:
        line = ", ".join(f"{name} +{math.ceil(change)} %" for name, change in failures.items())
        print(f"If that is meant, end the commit message with: Instructions: {line} because ...", file=sys.stderr)
        print(f"Before the commit: make check-instructions ACCEPT='{line}'", file=sys.stderr)
    return 1 if failures else 0


# --- the comparison


def change_of(now: Count, then: Count) -> float:
    """Instructions more than before, in per cent."""
    return 100 * (now.instructions - then.instructions) / then.instructions


def too_many(now: Counts, then: Counts, allowed: dict[str, float]) -> dict[str, float]:
    """The kernels that take more than TOLERANCE over what is allowed, and their changes in per cent."""
    changes = {name: change_of(now[name], then[name]) for name in now if name in then}
    return {name: change for name, change in changes.items() if change > allowed.get(name, 0) + TOLERANCE}


def increases(texts: list[str]) -> dict[str, float]:
    """Per cent accepted for each kernel: "smo_path +12 %, smo_solve +8 % because ..."."""
    allowed: dict[str, float] = {}
    for text in texts:
        found = re.findall(r"(\w+)\s+\+(\d+(?:\.\d+)?)\s*%", text)
        if not found:
            print(f"warning: no increase in {text!r}; write it as: smo_path +12 % because ...", file=sys.stderr)
        for name, percent in found:
            allowed[name] = max(float(percent), allowed.get(name, 0))
    return allowed


def table(now: Counts, then: Counts | None = None, allowed: dict[str, float] | None = None) -> str:
    """A row a kernel; with the counts before, also their change."""
    if then is None:
        rows = [f"{name:<12} {c.instructions:>13,} {c.iterations or '':>11}" for name, c in now.items()]
        return "\n".join([f"{'kernel':<12} {'instructions':>13} {'iterations':>11}", *rows])
    head = f"{'kernel':<12} {'before':>13} {'now':>13} {'change':>9}   iterations"
    failed = too_many(now, then, allowed or {})
    rows = [row(name, now[name], then[name], name in failed, allowed or {}) for name in now if name in then]
    return "\n".join([head, *rows])


def row(name: str, now: Count, then: Count, failed: bool, allowed: dict[str, float]) -> str:
    """One kernel before and now."""
    iterations = f"{then.iterations} -> {now.iterations}" if now.iterations else ""
    note = "TOO MANY" if failed else f"accepted: +{allowed[name]:g} %" if name in allowed else ""
    change = f"{change_of(now, then):+z.1f} %"
    return f"{name:<12} {then.instructions:>13,} {now.instructions:>13,} {change:>9}   {iterations:<14} {note}".rstrip()


# --- git


def git(root: Path, *arguments: str) -> bytes:
    """The output of a git command in the checkout."""
    try:
        return subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True).stdout
    except OSError as error:
        raise Unavailable("there is no git") from error
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {error.returncode}"]
        raise Unavailable(f"git {arguments[0]}: {reason[-1]}") from error


def base_commit(root: Path, asked: str | None) -> str:
    """Short name of the commit to compare with: the parent, or HEAD where csrc has changes of its own."""
    if git(root, "rev-parse", "--show-prefix").strip():
        raise Unavailable(f"{root} is not the top of a git checkout")
    dirty = git(root, "status", "--porcelain", "--", "csrc", "setup.py").strip()
    commit = asked or ("HEAD" if dirty else "HEAD~1")
    try:
        return git(root, "rev-parse", "--verify", "--short", commit + "^{commit}").decode().strip()
    except Unavailable as error:
        raise Unavailable(f"there is no commit {commit} here (a first commit or a shallow clone?)") from error


def extract(root: Path, commit: str, to: Path) -> Path:
    """csrc, setup.py and what there is of the driver of a commit, in a new folder."""
    driver = git(root, "ls-tree", "--name-only", commit, "--", *DRIVER_FILES).decode().split()
    archive = git(root, "archive", "--format=tar", commit, "--", "csrc", "setup.py", *driver)
    to.mkdir()
    subprocess.run(["tar", "-x", "-C", str(to)], input=archive, check=True)
    return to


def trailers(root: Path, base: str) -> list[str]:
    """The `Instructions:` trailers of the commits after the base."""
    form = "--format=%(trailers:key=Instructions,valueonly,unfold)"
    return [line for line in git(root, "log", form, f"{base}..HEAD").decode().splitlines() if line.strip()]


# --- building and counting


def flags(tree: Path) -> list[str]:
    """FLAGS of the tree's setup.py."""
    for node in ast.parse((tree / "setup.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLAGS":
            return list(ast.literal_eval(node.value))
    raise Broken("setup.py has no FLAGS")


def contents(tree: Path) -> tuple[list[str], dict[str, bytes]]:
    """All that the kernels' code is made of; no flags for a tree without them."""
    try:
        given = flags(tree)
    except Broken:
        given = []
    return given, {path.name: path.read_bytes() for path in (tree / "csrc").glob("*.[ch]")}


def count_both(root: Path, tree: Path, folder: Path) -> tuple[Counts, Counts]:
    """Counts of the checkout and of its base. A base that the driver does not fit is no mistake of the checkout's."""
    with ThreadPoolExecutor(2) as pool:
        now, then = pool.submit(count, root, folder / "now"), pool.submit(count, tree, folder / "then")
        counts = now.result()
        try:
            return counts, then.result()
        except Broken as reason:
            raise Unavailable(f"the driver does not fit the earlier csrc ({reason})") from reason


def count(tree: Path, folder: Path) -> Counts:
    """Count with the checkout's driver; where it does not fit the tree's csrc, with the tree's own."""
    try:
        return count_with(ROOT / DRIVER, tree, folder)
    except Broken as reason:
        if tree == ROOT or not (tree / DRIVER).exists():
            raise
        print(f"note: the earlier csrc is counted with its own driver ({reason})", file=sys.stderr)
        return count_with(tree / DRIVER, tree, folder)


def count_with(driver: Path, tree: Path, folder: Path) -> Counts:
    """Build a driver with the tree's csrc, in a folder, and count every kernel of it."""
    valgrind = shutil.which("valgrind")
    if not valgrind:
        raise Unavailable("valgrind is not installed")
    folder.mkdir(exist_ok=True)
    program = build(driver, tree, folder)
    lines = run([program]).split("\n")
    run([valgrind, *CALLGRIND, f"--callgrind-out-file={folder / 'part'}", program])
    instructions = read_parts(folder)
    iterations = dict(line.split() for line in lines if line)
    if instructions.keys() != iterations.keys():
        raise Unavailable(f"callgrind saw {len(instructions)} of {len(iterations)} kernels")
    return {name: Count(instructions[name], int(steps)) for name, steps in iterations.items()}


def build(driver: Path, tree: Path, folder: Path) -> str:
    """A driver over the tree's csrc, without warnings: make check-c has them."""
    program, sources = str(folder / "cell"), sorted(map(str, (tree / "csrc").glob("*.c")))
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, *flags(tree), "-w", f"-I{tree / 'csrc'}", str(driver), *sources, "-o", program, "-lm"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except OSError as error:
        raise Unavailable(f"there is no compiler {compiler[0]}") from error
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
