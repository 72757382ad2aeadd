"""The comparison of instruction counts: what fails, what is accepted, what is skipped. Nothing is counted here."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("count_instructions", ROOT / "scripts" / "count_instructions.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


script = load()
COUNT = script.count  # the fixture below puts another in its place


def counts(**instructions: int) -> dict:
    return {name: script.Count(n, 0) for name, n in instructions.items()}


THEN = counts(pack=1000, smo_path=1000)


@pytest.mark.parametrize(("now", "fails"), [(900, False), (1000, False), (1050, False), (1051, True), (2000, True)])
def test_more_than_five_per_cent_fail(now: int, fails: bool) -> None:
    failures = script.too_many(counts(pack=1000, smo_path=now), THEN, {})
    assert list(failures) == (["smo_path"] if fails else [])


@pytest.mark.parametrize(("now", "fails"), [(1120, False), (1170, False), (1171, True)])
def test_the_tolerance_is_added_to_what_is_accepted(now: int, fails: bool) -> None:
    allowed = script.increases(["smo_path +12 % because"])
    assert bool(script.too_many(counts(pack=1000, smo_path=now), THEN, allowed)) == fails


def test_an_increase_is_accepted_for_the_named_kernel_only() -> None:
    failures = script.too_many(counts(pack=1100, smo_path=1100), THEN, {"smo_path": 10.0})
    assert failures == {"pack": pytest.approx(10)}


def test_increases() -> None:
    texts = ["smo_path +12 %, pack +7.5% because of 3 % fewer iterations", "pack +9 %", "pack +1 %"]
    assert script.increases(texts) == {"smo_path": 12.0, "pack": 9.0}


@pytest.mark.parametrize("text", ["smo_path", "smo_path 12", "smo_path 12 %", "all kernels"])
def test_an_increase_without_its_size_is_told(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.increases([text]) == {}
    assert "write it as: smo_path +12 %" in capsys.readouterr().err


def test_the_table_has_every_change() -> None:
    now = {"pack": script.Count(1100, 0), "smo_path": script.Count(1200, 60)}
    then = {"pack": script.Count(1000, 0), "smo_path": script.Count(1000, 50)}
    lines = script.table(now, then, {"smo_path": 20.0}).splitlines()
    assert lines[1].split() == ["pack", "1,000", "1,100", "+10.0", "%", "TOO", "MANY"]
    assert lines[2].split() == ["smo_path", "1,000", "1,200", "+20.0", "%", "50", "->", "60", "accepted:", "+20", "%"]
    assert script.table(now).splitlines()[2].split() == ["smo_path", "1,200", "60"]


def test_the_parts_that_callgrind_writes(tmp_path: Path) -> None:
    part = "desc: Trigger: --dump-after={}\n\nevents: Ir\nsummary: 7\n\n\ntotals: {}\n"
    (tmp_path / "part").write_text("desc: Trigger: Program termination\n\ntotals: 99\n")
    for i, (name, total) in enumerate([("between.constprop.0", 50), ("measure_pack", 7), ("measure_hash.isra.0", 8)]):
        (tmp_path / f"part.{i}").write_text(part.format(name, total))
    assert script.read_parts(tmp_path) == {"pack": 7, "hash": 8}


def test_the_flags_are_those_of_setup_py(tmp_path: Path) -> None:
    assert "-O3" in script.flags(ROOT)
    (tmp_path / "setup.py").write_text("OTHER = 1\n")
    with pytest.raises(script.Broken, match="no FLAGS"):
        script.flags(tmp_path)


def test_the_exit_codes_of_the_driver(tmp_path: Path) -> None:
    with pytest.raises(script.Unavailable, match="AVX2"):
        script.run([program(tmp_path, "exit 3")])
    with pytest.raises(script.Broken, match="cell ended with code 1: pack failed"):
        script.run([program(tmp_path, "echo pack failed >&2; exit 1")])
    with pytest.raises(script.Unavailable, match="sh ended with code 1"):  # under valgrind, after it ran on its own
        script.run(["/bin/sh", program(tmp_path, "exit 1")])


def program(folder: Path, text: str) -> str:
    """A shell script in place of the driver."""
    path = folder / "cell"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


# --- the whole check, in repositories of two commits, with counts made up


class Repository:
    """A checkout whose kernel takes as many instructions as csrc/cost.c says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "csrc").mkdir(parents=True)
        (root / "setup.py").write_text("FLAGS = ['-O3']\n")
        self.git("init", "--quiet")

    def git(self, *arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], check=True, cwd=self.root, capture_output=True)

    def cost(self, instructions: int) -> None:
        (self.root / "csrc" / "cost.c").write_text(str(instructions))

    def commit(self, instructions: int, message: str = "Change") -> None:
        self.cost(instructions)
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)

    def check(self, *arguments: str) -> int:
        return script.main(["--check", *arguments], self.root)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    if not shutil.which("git"):
        pytest.skip("there is no git")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):  # of a hook that runs the tests
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(script, "count", lambda tree, folder: counts(pack=int((tree / "csrc" / "cost.c").read_text())))
    return Repository(tmp_path / "repository")


def test_a_slower_commit_fails(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.commit(1000)
    repository.commit(1081)
    assert repository.check() == 1
    captured = capsys.readouterr()
    assert "TOO MANY" in captured.out
    assert "end the commit message with: Instructions: pack +9 % because" in captured.err
    assert repository.check("--accept", "pack +9 %") == 0


def test_a_trailer_of_the_commit_accepts(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.commit(1000)
    repository.commit(1081, "Slower\n\nFor good.\n\nInstructions: pack +9 %\n because of sums in double, smo +4 %\n")
    assert repository.check() == 0
    captured = capsys.readouterr()
    assert "accepted: +9 %" in captured.out
    assert captured.err.startswith("warning: no kernel smo to accept")
    repository.commit(1200)  # and the next one not
    assert repository.check() == 1


def test_a_commit_that_leaves_the_kernels_alone_counts_nothing(
    repository: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "count", lambda tree, folder: pytest.fail("counted"))
    repository.commit(1000)
    repository.commit(1000)
    assert repository.check() == 0
    assert "no instructions to compare" in capsys.readouterr().out


def test_what_is_not_committed_is_compared_with_head(repository: Repository) -> None:
    repository.commit(1000)
    repository.commit(2000)
    repository.cost(2010)
    assert repository.check() == 0
    assert repository.check("--base", "HEAD~1") == 1


def skipped(repository: Repository, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that says why nothing was compared."""
    assert repository.check() == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1 and captured.err.startswith("instructions not compared: ")
    return captured.err


def test_no_parent(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.commit(1000)
    assert "no commit HEAD~1" in skipped(repository, capsys)


def test_no_repository(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.commit(1000)
    repository.commit(2000)
    shutil.copytree(repository.root, repository.root / "exported", ignore=shutil.ignore_patterns(".git"))
    repository.root /= "exported"
    assert "not the top of a git checkout" in skipped(repository, capsys)
    shutil.rmtree(repository.root.parent / ".git")
    assert "git rev-parse" in skipped(repository, capsys)


def test_a_parent_without_the_kernels(repository: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    repository.git("commit", "--quiet", "--allow-empty", "--message", "Empty")
    repository.commit(1000)
    assert "git archive" in skipped(repository, capsys)


@pytest.mark.parametrize("side", ["earlier", "checkout"])
def test_a_driver_that_does_not_fit(
    side: str, repository: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def count(tree: Path, folder: Path) -> dict:
        if (tree == repository.root) == (side == "checkout"):
            raise script.Broken("no member named 'used'")
        return counts(pack=1)

    monkeypatch.setattr(script, "count", count)
    repository.commit(1000)
    repository.commit(2000)
    if side == "earlier":
        assert "does not fit the earlier csrc (no member named 'used')" in skipped(repository, capsys)
    else:
        assert repository.check() == 1
        assert capsys.readouterr().err == "error: no member named 'used'\n"


def test_a_base_that_the_driver_does_not_fit_is_counted_with_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / script.DRIVER

    def count_with(driver: Path, tree: Path, folder: Path) -> dict:
        if driver != own:
            raise script.Broken("no member named 'rows'")
        return counts(pack=1)

    monkeypatch.setattr(script, "count_with", count_with)
    for tree in (tmp_path, ROOT):  # one without a driver, and the checkout itself
        with pytest.raises(script.Broken, match="rows"):
            COUNT(tree, tmp_path)
    own.parent.mkdir()
    own.touch()
    assert COUNT(tmp_path, tmp_path) == counts(pack=1)
    assert capsys.readouterr().err == "note: the earlier csrc is counted with its own driver (no member named 'rows')\n"


def test_the_base_comes_with_what_it_has_of_a_driver(repository: Repository, tmp_path: Path) -> None:
    repository.commit(1000)
    (repository.root / "scripts").mkdir()
    for name in (*script.DRIVER_FILES, "scripts/other.py"):
        (repository.root / name).touch()
    repository.commit(1001)
    with_driver = script.extract(repository.root, "HEAD", tmp_path / "with")
    assert sorted(path.name for path in (with_driver / "scripts").iterdir()) == ["count_cell.h", "count_instructions.c"]
    without = script.extract(repository.root, "HEAD~1", tmp_path / "without")
    assert sorted(path.name for path in without.iterdir()) == ["csrc", "setup.py"]


def test_no_valgrind(
    repository: Repository, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("git", "tar"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    monkeypatch.setattr(script, "count", COUNT)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    repository.commit(1000)
    repository.commit(2000)
    assert "valgrind is not installed" in skipped(repository, capsys)
