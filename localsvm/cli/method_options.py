"""The options of the learning methods on the command line: what the fields of their records say (methods/base.py)."""

from __future__ import annotations

import os
from dataclasses import Field
from functools import cache
from typing import TYPE_CHECKING, Any

import click

from localsvm.cli import other_tools
from localsvm.cli.value_types import Group, Names, Option, Values, WholeNumber
from localsvm.errors import MethodError
from localsvm.methods import methods as all_methods
from localsvm.methods import options_of, packaged
from localsvm.methods.option import EVENLY, FROM_ZERO, kind_of
from localsvm.naming import on_command_line

if TYPE_CHECKING:
    from localsvm.methods.base import Method

KINDS = {
    "bool": click.BOOL,
    "int": WholeNumber(),
    "float": click.FLOAT,
    "str": click.STRING,
    "tuple[float, ...]": Values(),
}
TYPICAL = ("svm", "linear")  # a kernel method and a linear one: their options decide to which group others belong
LONGEST_CHOICES = 70  # of what the help shows in place of a value
BY_METHOD = "by method"  # the default in the help if methods have different ones


def methods() -> dict[str, type[Method]]:
    """Every method by its name; those of the package alone if there is a problem."""
    return _loaded()[0]


def problem() -> MethodError | None:
    """The error of the folders of methods, None if there is none.

    A command reports it, because the options are made before anything can be printed.
    """
    return _loaded()[1] if os.environ.get("LOCALSVM_METHODS") else None


@cache
def _loaded() -> tuple[dict[str, type[Method]], MethodError | None]:
    try:
        return all_methods(), None
    except MethodError as error:
        return packaged(), error


def options() -> list[Option]:
    """The options of all methods together, each once."""
    return merged(methods())


def option_of(method: str, name: str) -> Option:
    """One option of a method, for a command that has no others."""
    return next(option for option in merged({method: methods()[method]}) if option.name == name)


def merged(methods: dict[str, type[Method]]) -> list[Option]:
    """Options, one for each name, with the choices of all methods, and the default if all have the same."""
    first: dict[str, Field[Any]] = {}
    choices: dict[str, tuple[str, ...]] = {}
    aliases: dict[str, dict[str, str]] = {}
    shown: dict[str, str] = {}
    for method in methods.values():
        for option in options_of(method):
            name, default = option.name, shown_default(option)
            first.setdefault(name, option)
            choices[name] = tuple(dict.fromkeys((*choices.get(name, ()), *option.metadata["choices"])))
            aliases.setdefault(name, {}).update(option.metadata["aliases"])
            shown[name] = default if shown.get(name, default) == default else BY_METHOD
    kinds = {name: Names(some, other_tools.NAMES.get(name), aliases[name]) for name, some in choices.items() if some}
    return [_option(each, kinds.get(name), shown[name], _group(name, methods)) for name, each in first.items()]


def _option(field: Field[Any], names: Names | None, shown: str, group: Group) -> Option:
    """An option of the command line. Its value is None if it is not given, because defaults differ between methods."""
    kind = names or value_type(field)
    long = names is not None and len("|".join(names.choices)) > LONGEST_CHOICES  # the help text names them all
    metavar = field.name.upper() if long and field.name != "method" else None
    declarations, text = [*field.metadata["flags"], field.name], on_command_line(field.metadata["help"])
    return Option(declarations, default=None, type=kind, help=text, show_default=shown, group=group, metavar=metavar)


def value_type(field: Field[Any]) -> click.ParamType[Any]:
    """Type of the values of an option without choices."""
    zero = field.name in FROM_ZERO or (isinstance(field.default, tuple) and 0.0 in field.default)
    even = field.name in EVENLY
    return Values(zero, even) if zero or even else KINDS[kind_of(field)]


def shown_default(field: Field[Any]) -> str:
    """The default as the help shows it."""
    if shown := field.metadata["shown"]:
        return str(shown)
    if kind_of(field) == "bool":
        on, off = str(field.metadata["flags"][0]).split("/")
        return (on if field.default else off).lstrip("-")
    if isinstance(field.default, tuple):
        return ", ".join(f"{value:g}" for value in field.default) or "grid"
    return f"{field.default}"


def _group(name: str, methods: dict[str, type[Method]]) -> Group:
    """Group of an option in the help, by the methods that have it."""
    having = [item for item in methods.values() if any(option.name == name for option in options_of(item))]
    typical = [item.name for item in having if item.name in TYPICAL]
    if typical:
        return Group.METHOD if len(typical) == len(TYPICAL) else Group.KERNEL if "svm" in typical else Group.LINEAR
    return Group.SINGLE if any(item.name in packaged() for item in having) else Group.OTHER


def parameter(method: str, name: str) -> Field[Any] | None:
    """The option for a parameter of a method's grid, which is named as its field or as one of its flags."""
    flag = f"--{name.replace('_', '-')}"
    candidates = options_of(methods()[method])
    return next((option for option in candidates if option.name == name or flag in option.metadata["flags"]), None)


def create(name: str, given: dict[str, Any]) -> Method:
    """Make a method from the options that were given; None means not given.

    Raises
    ------
    UsageError
        The method does not have one of the options.
    """
    known = methods()
    values = {key: value for key, value in given.items() if value is not None}
    for key in sorted(values.keys() - {option.name for option in options_of(known[name])}):
        have = [method for method, item in known.items() if any(option.name == key for option in options_of(item))]
        option = parameter(have[0], key)
        assert option is not None
        what = f"{option.metadata['flags'][0]} is not an option of the method {name}, but of {', '.join(have)}"
        raise click.UsageError(f"{what}: -m chooses.")
    return known[name](**values)
