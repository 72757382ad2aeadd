"""The example of docs/adding-a-method.md, loaded from its one file, and what is refused when methods are loaded."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any, ClassVar

import numpy as np
import pytest
from command_line import invoke
from sklearn.neighbors import NearestCentroid
from test_train import content

import localsvm.methods as package
from localsvm.data.blocks.dataset import as_examples
from localsvm.data.synthetic import banana
from localsvm.data.writers.libsvm import write
from localsvm.methods.base import Method
from localsvm.methods.linear.linear import LinearSVM
from localsvm.methods.option import option

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
PAGES = ("method-record.md", "method-solving.md")  # of docs: the example from top to bottom


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "LOCALSVM_METHODS": str(EXAMPLES)}


@pytest.fixture
def fresh() -> Iterator[None]:
    """Methods are loaded anew, before and after."""
    package.methods.cache_clear()
    yield
    package.methods.cache_clear()


def lsvm(environment: dict[str, str], *arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "localsvm", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.whole
def test_the_example_runs_from_one_file(environment: dict[str, str], tmp_path: Path) -> None:
    X, y = banana(600, np.random.default_rng(0))
    write(tmp_path / "d.libsvm", as_examples(X), y)
    common = ("-q", "-m", "nearest-centroid", "-P", "voronoi", "-c", 150, "--scale", "none", "--metric", "none")
    for jobs in (1, 2):
        done = lsvm(environment, "train", *common, "-j", jobs, tmp_path / "d.libsvm", tmp_path / f"{jobs}.h5")
        assert (done.returncode, done.stderr) == (0, "")
    done = lsvm(environment, "predict", tmp_path / "d.libsvm", tmp_path / "1.h5", tmp_path / "p.txt")
    assert done.returncode == 0 and "Accuracy" in done.stderr
    assert "models" in lsvm(environment, "inspect", tmp_path / "1.h5").stdout
    assert content(tmp_path / "1.h5") == content(tmp_path / "2.h5")
    assert lsvm(environment, "cv", *common, tmp_path / "d.libsvm").stdout.count("\n") > 3


def test_the_example_is_scikit_learn_s_nearest_centroid(environment: dict[str, str], tmp_path: Path) -> None:
    X, y = banana(300, np.random.default_rng(1))
    write(tmp_path / "d.libsvm", as_examples(X), y)
    options = ("-q", "-m", "nearest-centroid", "-P", "none", "--scale", "none", "--keep", "1")
    done = lsvm(environment, "train", *options[1:], tmp_path / "d.libsvm", tmp_path / "m.h5")
    assert done.returncode == 0 and "models      1, all converged" in done.stderr  # it has no support vectors
    assert lsvm(environment, "predict", tmp_path / "d.libsvm", tmp_path / "m.h5", tmp_path / "p.txt").returncode == 0
    labels = np.loadtxt(tmp_path / "p.txt")
    np.testing.assert_array_equal(labels, NearestCentroid().fit(X, y).predict(X))


def test_the_pages_show_the_whole_file_in_order() -> None:
    page = "".join((EXAMPLES.parent / name).read_text(encoding="utf-8") for name in PAGES)
    source = (EXAMPLES / "nearest_centroid.py").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    assert all(block in source or indent(block, "    ") in source for block in blocks)  # methods, without their class
    shown = [line.strip() for block in blocks for line in block.splitlines() if line]
    assert shown == [line.strip() for line in source.splitlines() if line]


def test_its_option_is_in_the_help(environment: dict[str, str]) -> None:
    done = lsvm(environment, "train", "--help")
    assert "nearest-centroid" in done.stdout and "--keep" in done.stdout
    assert "--keep" not in invoke("train", "--help").stdout


def test_a_method_that_lacks_a_part_is_refused_when_methods_are_loaded(
    fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "halfdone.py").write_text(
        "from dataclasses import dataclass\nfrom typing import ClassVar\n"
        "from localsvm.methods.base import Method\n\n@dataclass(frozen=True)\nclass Half(Method):\n"
        '    name: ClassVar[str] = "half"\n\n    def memory(self, size):\n        return 0\n'
    )
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    with pytest.raises(TypeError, match=r"'half' .* lacks: grid, pack, predictor, prepare"):
        package.methods()
    sys.modules.pop("localsvm.methods.halfdone", None)


def test_two_files_of_one_name_are_refused(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernel.py").write_text("")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    with pytest.raises(TypeError, match="kernel: there are several files of this name"):
        package.methods()


@dataclass(frozen=True)
class OtherCost(LinearSVM):
    """An option of the same name, and another meaning."""

    name: ClassVar[str] = "other"
    cost: tuple[float, ...] = option((), "-C", "--cost", help="The price.")


@dataclass(frozen=True)
class OtherFlag(LinearSVM):
    """A flag of another option."""

    name: ClassVar[str] = "other"
    price: tuple[float, ...] = option((), "-C", help="The price.")


@dataclass(frozen=True)
class PartOfMethods(LinearSVM):
    """A field in place of a part that every method has."""

    name: ClassVar[str] = "other"
    memory: int = option(1, "--most-memory", help="Bytes.")  # type: ignore[assignment]


def test_a_field_does_not_replace_a_part() -> None:
    with pytest.raises(TypeError, match="memory is a part of every method"):
        package.check_options([PartOfMethods])


@pytest.mark.parametrize("other", [OtherCost, OtherFlag])
def test_an_option_means_one_thing_over_all_methods(other: type[Method]) -> None:
    package.check_options(package.methods().values())
    with pytest.raises(TypeError, match="something else in another method"):
        package.check_options([LinearSVM, other])
