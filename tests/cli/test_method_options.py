"""The options of methods, read from source: fields that are inherited, and options that several methods share."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click
import pytest

from localsvm import methods as package
from localsvm.cli import method_options
from localsvm.cli.method_options import MethodOption, merged

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
BASE = """
from dataclasses import dataclass
from typing import ClassVar

from localsvm.methods.base import Method, option
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
    """Without a name: no method. A base has another one of this name, in its own file."""
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
    found = method_options.read([folder])
    assert {name: [o.name for o in found[name]] for name in OPTIONS} == OPTIONS
    classes = package.methods()
    assert classes.keys() == OPTIONS.keys()
    for name, own in found.items():
        for option, field in zip(own, fields(classes[name]), strict=True):  # type: ignore[arg-type]
            assert (option.name, option.default) == (field.name, field.default)
            assert {"flags": option.flags, "help": option.help, "choices": option.choices} == dict(field.metadata)
    assert (found["first"][1].default, found["second"][2].default) == (True, False)


def test_a_folder_of_methods_does_not_make_the_package_s_read_for_each_option(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: Counter[Path] = Counter()
    monkeypatch.setattr(method_options, "FOLDERS", [*method_options.FOLDERS[:1], EXAMPLES])
    classes = method_options._classes

    def counted(path: Path) -> method_options.Classes:
        parsed[path] += 1
        return classes(path)

    monkeypatch.setattr(method_options, "_classes", counted)
    caches = method_options._loaded, method_options._packaged
    for cache in caches:
        cache.cache_clear()
    try:
        assert "nearest-centroid" in method_options.methods() and method_options.problem() is None
        assert len(method_options.options()) > 30 and max(parsed.values()) <= 2
    finally:
        for cache in caches:
            cache.cache_clear()


COST = MethodOption("cost", "tuple[float, ...]", (), ("-C", "--cost"), "The cost.")
KERNEL = MethodOption("kernel", "str", "gaussian", ("-t",), "Kernel.", ("gaussian", "linear"))


def shown(*options: MethodOption) -> click.Option:
    (option,) = merged({str(i): (o,) for i, o in enumerate(options)})
    return option


def test_methods_share_an_option() -> None:
    assert (shown(COST, COST).show_default, shown(COST, COST).help) == ("grid", "The cost.")
    assert shown(COST, COST, replace(COST, default=(1.0,)), COST).show_default == "by method"
    assert shown(COST, COST).opts == ["-C", "--cost"] and shown(COST, COST).default is None


def test_a_choice_of_any_method_can_be_given() -> None:
    kind = shown(KERNEL, replace(KERNEL, choices=("linear", "cosine"))).type
    assert isinstance(kind, click.Choice) and list(kind.choices) == ["gaussian", "linear", "cosine"]


@pytest.mark.parametrize("other", [{"flags": ("--cost",)}, {"annotation": "float"}, {"help": "Another cost."}])
def test_another_meaning_is_an_error(other: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="cost of 1 has other flags, another type or another help than before"):
        shown(COST, replace(COST, **other))


def test_a_flag_of_another_option_is_an_error() -> None:
    with pytest.raises(TypeError, match="price of 1 has a flag of another option"):
        merged({"0": (COST,), "1": (replace(COST, name="price", flags=("-C",)),)})


def test_no_flag_has_two_meanings() -> None:
    flags = [flag for option in method_options.options() for flag in (*option.opts, *option.secondary_opts)]
    assert len(flags) == len(set(flags))


def test_a_list_takes_zero_where_it_is_a_default() -> None:
    coupling, shrinkage = (method_options.parameter("mtl", name) for name in ("coupling", "shrinkage"))
    assert coupling is not None and shrinkage is not None
    assert coupling._type().convert("10,0", None, None) == (0.0, 10.0)
    with pytest.raises(click.BadParameter, match="'0' is not a positive number"):
        shrinkage._type().convert("0", None, None)
