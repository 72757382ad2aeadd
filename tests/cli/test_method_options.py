"""The options of methods: fields that are inherited, and options that several methods share."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from localsvm import methods as package
from localsvm.cli import method_options
from localsvm.cli.method_options import merged, value_type
from localsvm.methods.linear.linear import LinearSVM
from localsvm.methods.option import option

BASE = """
from dataclasses import dataclass
from typing import ClassVar

from localsvm.methods.base import Method
from localsvm.methods.option import option
from localsvm.partition.none import NoPartition


@dataclass(frozen=True)
class Common(Method):
    grid = prepare = pack = predictor = memory = print  # no part is missing
    cost: tuple[float, ...] = option((), "-C", "--cost", help="Cost.")
    offset: bool = option(False, "--offset/--no-offset", help="Offset.")


@dataclass(frozen=True)
class Machine(Common):
    tolerance: float = option(1e-3, "-e", "--tolerance", help="Tolerance.")


@dataclass(frozen=True)
class Clustered:
    clusters: int = option(10, "-K", "--clusters", help="Clusters.")
"""
METHODS = '''
from dataclasses import dataclass
from typing import ClassVar

from localsvm.methods import grown_base
from localsvm.methods.grown_base import Clustered, Machine


@dataclass(frozen=True)
class First(Machine):
    name: ClassVar[str] = "first"
    landmarks: int = option(5, "-L", "--landmarks", help="Landmarks.")
    offset: bool = option(True, "--offset/--no-offset", help="Offset.")


@dataclass(frozen=True)
class Second(grown_base.Machine, Clustered):
    name: ClassVar[str] = "second"


@dataclass(frozen=True)
class Third(First):
    name: ClassVar[str] = "third"
    cost: tuple[float, ...] = option((1.0,), "-C", "--cost", help="Cost.")


class Common(Third):
    """Class without a method name, and so no method. A base has another one of this name, in its own file."""
'''.replace("import Clustered, Machine", "import Clustered, Machine, option")
OPTIONS = {
    "first": ["cost", "offset", "tolerance", "landmarks"],
    "second": ["clusters", "cost", "offset", "tolerance"],
    "third": ["cost", "offset", "tolerance", "landmarks"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of methods in place of those of the package."""
    (tmp_path / "grown_base.py").write_text(BASE)
    (tmp_path / "grown.py").write_text(METHODS)
    monkeypatch.setattr(package, "__path__", [str(tmp_path)])
    package.methods.cache_clear()
    importlib.invalidate_caches()
    yield tmp_path
    for name in ("grown", "grown_base"):
        sys.modules.pop(f"{package.__name__}.{name}", None)
        vars(package).pop(name, None)
    package.methods.cache_clear()


def test_fields_are_inherited_in_a_dataclass_s_order(folder: Path) -> None:
    known = package.methods()
    assert {name: [o.name for o in package.options_of(known[name])] for name in known} == OPTIONS
    defaults = [{o.name: o.default for o in package.options_of(known[name])}["offset"] for name in ("first", "second")]
    assert defaults == [True, False]


COST = option((), "-C", "--cost", help="The cost.")
KERNEL = option("gaussian", "-t", help="Kernel.", choices=("gaussian", "linear"))


def method_with(kind: Any, field: Any) -> Any:
    """Method class whose cost or kernel option is this field."""
    name = "cost" if field.metadata["flags"][0] == "-C" else "kernel"
    return make_dataclass("Made", [(name, kind, field)], bases=(LinearSVM,), namespace={"name": "made"}, frozen=True)


def shown(*classes: Any) -> click.Option:
    one, *_ = (each for each in merged({str(i): c for i, c in enumerate(classes)}) if each.name in ("cost", "kernel"))
    return one


def test_methods_share_an_option() -> None:
    first = method_with("tuple[float, ...]", COST)
    other = method_with("tuple[float, ...]", option((1.0,), "-C", help="The cost."))
    assert (shown(first, first).show_default, shown(first, first).help) == ("grid", "The cost.")
    assert shown(first, first, other, first).show_default == "by method"
    assert shown(first, first).opts == ["-C", "--cost"] and shown(first, first).default is None


def test_a_choice_of_any_method_can_be_given() -> None:
    more = option("linear", "-t", help="Kernel.", choices=("linear", "cosine"))
    by_name = {each.name: each for each in merged({"0": method_with("str", KERNEL), "1": method_with("str", more)})}
    kind = by_name["kernel"].type
    assert isinstance(kind, click.Choice) and list(kind.choices) == ["gaussian", "linear", "cosine"]


def test_no_flag_has_two_meanings() -> None:
    flags = [flag for option in method_options.options() for flag in (*option.opts, *option.secondary_opts)]
    assert len(flags) == len(set(flags))


def test_a_list_takes_zero_where_it_is_a_default() -> None:
    coupling, shrinkage = (method_options.parameter("mtl", name) for name in ("coupling", "shrinkage"))
    assert coupling is not None and shrinkage is not None
    assert value_type(coupling).convert("10,0", None, None) == (0.0, 10.0)
    with pytest.raises(click.BadParameter, match="'0' is not a positive number"):
        value_type(shrinkage).convert("0", None, None)
