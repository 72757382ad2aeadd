#!/usr/bin/env python3
"""Train several hundred small models with two versions of localsvm, and report which of them differ.

    python scripts/develop/same_models.py HEAD                the working tree against the last commit
    python scripts/develop/same_models.py v1.2 HEAD           two commits
    python scripts/develop/same_models.py HEAD ../other       a checkout that is built

For changes that must not change a model. Every method goes with every partition and multiclass scheme over ten
generated sets, and most options are there once (same_models_runs.py). Compared are the manifests of the model files,
which hold a checksum of all that is in them, the options that both versions keep in them, the output of
`lsvm predict --decision-values`, the tables of `lsvm cv`, and models trained with -j 2 with those of -j 1.

    --quick           a sixth of the runs
    --only SUBSTRING  the runs whose name has this in it, as in --only 'csvm blobs'

One line for each run that differs, then a summary; the exit code is 1 where one differs. Commits are checked out and
built below build/same_models, once; what they gave is kept there, too. A working tree has to be built and is always
run anew.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from develop.same_models_runs import Run, files, runs, write_sets

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "same_models"
NAMED = 3  # manifest entries of a line
# neither the version of the program or the format, nor new options, nor the report on a model makes it another one
NOT_CONTENT = ("/@generator", "/@format_version", "/@config", "/report")
EUCLIDEAN = ["--metric", "none"]  # a learned metric would hide what else differs
CONTENT = ("manifest", "config", "decisions", "table")  # what is kept of a run
PACKAGES = ("numpy", "scipy", "scikit-learn", "h5py")

# of one run: the "manifest" and "config" (dicts), the "decisions" (text), the "table" of a command; or only an "error"
Result = dict[str, Any]
Results = dict[str, Result]


class Unusable(Exception):
    """A version that cannot be run; the message says why."""


class Version(NamedTuple):
    """A checkout, and the file that keeps the results of a commit."""

    name: str
    tree: Path
    cache: Path | None


def main(arguments: list[str] | None = None) -> int:
    """Compare; returns the exit code."""
    options = parse(arguments)
    if options.work:
        work(Path(options.work))
        return 0
    chosen = runs(options.quick, options.only)
    if not chosen:
        print(f"error: no run has {options.only!r} in its name", file=sys.stderr)
        return 2
    digests = write_sets(FOLDER / "sets")
    try:
        versions = [version_of(options.old), version_of(options.new)]
        old, new = (results(one, chosen, digests) for one in versions)
    except Unusable as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 2
    lines = [f"{run.name}: {text}" for run in chosen if (text := compare(run, old, new))]
    print("\n".join([*lines, summary(chosen, old, new, len(lines))]))
    return 1 if lines else 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", nargs="?", help="a commit, or the folder of a built checkout")
    parser.add_argument("new", nargs="?", default=str(ROOT), help="the same; by default this checkout")
    parser.add_argument("--quick", action="store_true", help="a sixth of the runs")
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="runs whose name has this in it")
    parser.add_argument("--work", help=argparse.SUPPRESS)  # what the process of one version does
    options = parser.parse_args(arguments)
    if not (options.old or options.work):
        parser.error("name a commit to compare with")
    return options


# --- the comparison


def compare(run: Run, old: Results, new: Results) -> str:
    """Text of what differs in a run, between the versions or from its twin; empty where nothing does."""
    texts = [difference(old[run.name], new[run.name])]
    if run.twin:
        for name, of_version in (("OLD", old), ("NEW", new)):
            text = difference(of_version[run.twin], of_version[run.name])
            texts.append(text and f"from -j 1 in {name}: {text}")
    return "; ".join(filter(None, texts))


def difference(old: Result, new: Result) -> str:
    """Text of what differs between two results; empty where nothing does."""
    if "error" in old or "error" in new:
        errors = [str(result.get("error", "no error")) for result in (old, new)]
        return "" if errors[0] == errors[1] else f"{errors[0]} -> {errors[1]}"
    texts = [entries(old.get("manifest", {}), new.get("manifest", {}))]
    texts.append(options(old.get("config", {}), new.get("config", {})))
    texts.append(decisions(old.get("decisions", ""), new.get("decisions", "")))
    texts.append("the table" if old.get("table") != new.get("table") else "")
    return "; ".join(filter(None, texts))


def entries(old: dict[str, str], new: dict[str, str]) -> str:
    """The first entries of two manifests that differ."""
    names = [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
    names = [name for name in names if not name.startswith(NOT_CONTENT)]
    words = [name + (" (gone)" if name not in new else " (new)" if name not in old else "") for name in names[:NAMED]]
    return ", ".join(words) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def options(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The options kept in both models that differ, those of the method among them."""
    texts = []
    for name in sorted(old.keys() & new.keys()):
        if name == "method":
            texts.append(options(old[name], new[name]))
        elif old[name] != new[name]:
            texts.append(f"the option {name}")
    return "; ".join(filter(None, texts))


def decisions(old: str, new: str) -> str:
    """Text of the differences between two outputs of predict; empty where they are equal."""
    if old == new:
        return ""
    before, after = ([line.split() for line in text.splitlines()] for text in (old, new))
    if len(before) != len(after) or before[:1] != after[:1]:
        return "other lines of decision values"
    pairs = list(zip(before[1:], after[1:], strict=True))
    labels = sum(a[0] != b[0] for a, b in pairs)
    apart = max(abs(float(x) - float(y)) for a, b in pairs for x, y in zip(a[1:], b[1:], strict=True))
    return f"{labels} of {len(pairs)} labels, decision values by up to {apart:.2g}"


def summary(chosen: list[Run], old: Results, new: Results, differ: int) -> str:
    """The last line."""
    failed = sum("error" in old[run.name] and "error" in new[run.name] for run in chosen)
    return f"{len(chosen)} runs, {differ} differ" + (f"; {failed} fail in both versions" if failed else "")


# --- versions


def git(*arguments: str) -> str:
    """The output of a git command in this checkout."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True)
    except OSError as error:
        raise Unusable("there is no git") from error
    except subprocess.CalledProcessError as error:
        raise Unusable(f"git {arguments[0]}: {(error.stderr.strip().splitlines() or ['failed'])[-1]}") from error
    return done.stdout.strip()


def version_of(text: str) -> Version:
    """The checkout in a folder, or that of a commit, made and built where it is not there yet."""
    folder = Path(text).resolve()
    if (folder / "localsvm").is_dir():
        if missing := unbuilt(folder):
            raise Unusable(f"{folder} is not built: there is no {missing}")
        return Version(text, folder, None)
    try:
        sha = git("rev-parse", "--verify", "--end-of-options", f"{text}^{{commit}}")
    except Unusable as reason:
        raise Unusable(f"there is no commit {text}, and no checkout in a folder of that name") from reason
    tree = FOLDER / sha
    if not tree.exists():
        git("worktree", "add", "--quiet", "--force", "--detach", str(tree), sha)
    if unbuilt(tree):
        build(tree, sha)
    return Version(text, tree, FOLDER / f"{sha}.json")


def unbuilt(tree: Path) -> str:
    """The first extension that is not built; empty where all are."""
    names = (str(path.with_suffix("").relative_to(tree)) for path in sorted(tree.glob("localsvm/**/_*.pyx")))
    return next((name for name in names if not list(tree.glob(f"{name}.*.so"))), "")


def build(tree: Path, sha: str) -> None:
    """Build the extensions of a checkout in their places."""
    print(f"building {sha[:7]} (a minute or two)", file=sys.stderr)
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    if done.returncode or unbuilt(tree):
        sys.stderr.write(done.stderr)
        raise Unusable(f"{sha[:7]} does not build")


# --- running one version: a process of its own that imports this version alone


def results(one: Version, chosen: list[Run], digests: dict[str, str]) -> Results:
    """Results of the runs, from the cache or anew."""
    cache: Results = json.loads(one.cache.read_text()) if one.cache and one.cache.exists() else {}
    keys = {run.name: key(run, digests[run.data]) for run in chosen}
    todo = [run for run in chosen if keys[run.name] not in cache]
    if todo:
        started = time.perf_counter()
        for name, result in trained(one, todo).items():
            cache[keys[name]] = result
        print(f"{one.name}: {len(todo)} runs in {time.perf_counter() - started:.0f} s", file=sys.stderr)
        if one.cache:
            one.cache.with_suffix(".new").write_text(json.dumps(cache))
            one.cache.with_suffix(".new").rename(one.cache)
    return {name: cache[digest] for name, digest in keys.items()}


def key(run: Run, digest: str) -> str:
    """Digest of all that a result depends on beside the version."""
    machine = [platform.machine(), platform.python_version(), *map(version, PACKAGES), os.environ.get("LOCALSVM_SIMD")]
    what = [run.command, run.arguments, run.cells, digest, processor(), machine, CONTENT]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def processor() -> str:
    """Flags of the processor, on which SIMD levels depend; empty where the system does not name them."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line for line in lines if line.startswith("flags")), "")


def trained(one: Version, todo: list[Run]) -> Results:
    """The results of a process that has the version's localsvm on its path."""
    with tempfile.TemporaryDirectory(prefix="same-models-") as folder:
        order, answer = Path(folder) / "order.json", Path(folder) / "answer.json"
        order.write_text(json.dumps({"tree": str(one.tree), "runs": todo}))
        environment = {**os.environ, "PYTHONPATH": str(one.tree), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(Path(__file__).resolve()), "--work", str(order)]
        if subprocess.run(command, env=environment, cwd=folder).returncode:
            raise Unusable(f"{one.name} cannot be run")
        answers: Results = json.loads(answer.read_text())
        return answers


def work(order: Path) -> None:
    """Do the runs of an order, and write the answer beside it."""
    given = json.loads(order.read_text())
    import localsvm

    if not Path(localsvm.__file__).resolve().is_relative_to(Path(given["tree"]).resolve()):
        sys.exit(f"localsvm comes from {localsvm.__file__}, not from {given['tree']}")
    outcomes = {}
    for values in given["runs"]:
        run = Run(*values)
        with tempfile.TemporaryDirectory(dir=order.parent) as folder:
            outcomes[run.name] = outcome(run, Path(folder))
    order.with_name("answer.json").write_text(json.dumps(outcomes))


def outcome(run: Run, folder: Path) -> Result:
    """Result of one run."""
    train, test = map(str, files(FOLDER / "sets", run.data))
    output, arguments = str(folder / "output.h5"), list(run.arguments)
    if "-j" not in arguments:
        arguments += ["-j", "1"]
    try:
        if run.cells:
            lsvm("partition", "-j", "1", *run.cells, *EUCLIDEAN, train, str(folder / "cells.h5"))
            arguments += ["--partition-file", str(folder / "cells.h5")]
        else:
            arguments += EUCLIDEAN
        if run.command == "cv":
            return {"table": lsvm("cv", "-q", *arguments, train)}
        table = lsvm(run.command, "-q", *arguments, train, output)
        result: Result = {"manifest": manifest(output), "config": config(output), "table": table}
        if run.command == "train":
            result["decisions"] = lsvm("predict", "-q", "-j", "1", "--decision-values", test, output)
        return result
    except Unusable as error:
        return {"error": str(error)}


def lsvm(*arguments: str) -> str:
    """The output of a command, run in this process; Unusable with its message where it fails."""
    import click

    from localsvm.cli.group import lsvm as group

    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = group.main(list(arguments), prog_name="lsvm", standalone_mode=False)
    except click.ClickException as error:
        raise Unusable(error.format_message()) from error
    except Exception as error:  # a version that breaks is a result, too
        raise Unusable(f"{type(error).__name__}: {error}") from error
    if code:
        raise Unusable(err.getvalue().strip() or f"exit code {code}")
    return out.getvalue()


def manifest(path: str) -> dict[str, str]:
    """The manifest of a model file."""
    import h5py

    with h5py.File(path) as file:
        content: dict[str, str] = json.loads(file.attrs["manifest"])
    return content


def config(path: str) -> dict[str, Any]:
    """The options that a model or partition file keeps."""
    import h5py

    with h5py.File(path) as file:
        content: dict[str, Any] = json.loads(file.attrs["config"])
    return content


if __name__ == "__main__":
    sys.exit(main())
