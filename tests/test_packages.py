"""Packages: the sdist has the whole repository, and extensions have no debug information unless it is asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
needs_cython = pytest.mark.skipif(
    find_spec("Cython") is None or find_spec("setuptools") is None, reason="Cython and setuptools are not here to build"
)


def run_setup(*arguments: str, code: int = 0, **variables: str) -> None:
    """Run setup.py."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "setup.py", "-q", *arguments],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, **variables},
    )  # fmt: skip
    assert (done.returncode != 0) == bool(code), done.stderr


@needs_cython
@pytest.mark.skipif(
    shutil.which("git") is None or not (ROOT / ".git").exists(), reason="what the repository has is asked of git"
)
def test_the_sdist_has_what_the_repository_has(tmp_path: Path) -> None:
    run_setup("egg_info", "--egg-base", str(tmp_path))
    packed = set((tmp_path / "localsvm.egg-info" / "SOURCES.txt").read_text().splitlines())
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(tracked.splitlines()) - packed == set()
    assert not [name for name in packed if name.startswith("localsvm/") and name.endswith((".c", ".so", ".pyc"))]


@pytest.mark.whole
@needs_cython
@pytest.mark.parametrize(("flags", "plain"), [("", True), ("-g -fsanitize=address", False)])
def test_debug_information_is_for_those_who_ask(flags: str, plain: bool, tmp_path: Path) -> None:
    """Extensions are compiled with -g0, or with -g where CFLAGS ask for it; the compiler records its arguments."""
    compiler, calls = tmp_path / "cc", tmp_path / "calls"
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexit 1\n')
    compiler.chmod(0o755)
    folders = ("--build-temp", str(tmp_path / "t"), "--build-lib", str(tmp_path / "l"))
    run_setup("build_ext", "--force", *folders, code=1, CC=str(compiler), CFLAGS=flags)
    words = calls.read_text().splitlines()[0].split()
    levels = [word for word in words if word in ("-g", "-g0")]
    assert levels[-1:] == (["-g0"] if plain else ["-g"])


def test_the_metadata_name_the_versions_that_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if ":: Python :: 3." in line]
    assert tuple(named) == VERSIONS and project["requires-python"] == f">={VERSIONS[0]}"
    makefile = (ROOT / "Makefile").read_text()
    assert "PYTHONS := " + " ".join(f"python{version}" for version in VERSIONS) in makefile


def test_the_stub_of_the_package_is_up_to_date() -> None:
    from develop import write_stubs

    assert write_stubs.STUB.read_text() == write_stubs.written(), "run scripts/develop/write_stubs.py"
