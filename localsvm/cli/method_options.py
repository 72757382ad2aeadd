"""The options of the learning methods, read from the source of the methods without importing them.

A method is a dataclass in one file of `localsvm/methods`, perhaps with a base class in another, and the metadata of its
fields describe its options. Importing these files takes numpy, scipy and the compiled kernels, for which `--help` must
not wait. So the fields are read from the source, where flags, help and choices are literals. A test compares them with
the dataclasses.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localsvm.cli import other_tools
from localsvm.cli.value_types import Names, Option, Values

if TYPE_CHECKING:
    from localsvm.methods.base import Method

OTHERS = [folder for folder in os.environ.get("LOCALSVM_METHODS", "").split(os.pathsep) if folder]
FOLDERS = [Path(__file__).parent.parent / "methods", *map(Path, OTHERS)]
KINDS = {"bool": click.BOOL, "int": click.INT, "float": click.FLOAT, "tuple[float, ...]": Values()}
HELPER = "option"  # the function with which a method declares an option
BY_METHOD = "by method"  # the default in the help if methods have different ones

Classes = dict[str, ast.ClassDef]  # classes of one file, by name


@dataclass(frozen=True)
class MethodOption:
    """An option of a method.

    Attributes
    ----------
    name, annotation, default
        Of the dataclass's field.
    flags : tuple of str
        For example ("-g", "--gamma").
    help : str
    choices : tuple of str
        The values it may have; empty for any.
    """

    name: str
    annotation: str
    default: Any
    flags: tuple[str, ...]
    help: str
    choices: tuple[str, ...] = ()

    def option(self, shown: str) -> Option:
        """The option of the command line, whose help shows `shown` as the default.

        Its value is None if it is not given, because defaults differ between methods.
        """
        declarations = [*self.flags, self.name]
        return Option(declarations, default=None, type=self._type(), help=self.help, show_default=shown)

    def _type(self) -> click.ParamType[Any]:
        if self.choices:
            return Names(self.choices, other_tools.NAMES.get(self.name))
        return KINDS[self.annotation]

    @property
    def shown(self) -> str:
        """The default as the help shows it."""
        if self.annotation == "bool":
            on, off = self.flags[0].split("/")
            return (on if self.default else off).lstrip("-")
        if isinstance(self.default, tuple):
            return ", ".join(f"{value:g}" for value in self.default) or "grid"
        return f"{self.default}"


@cache
def methods() -> dict[str, tuple[MethodOption, ...]]:
    """The options of every method, by the method's name."""
    return read(FOLDERS)


def read(folders: Sequence[Path]) -> dict[str, tuple[MethodOption, ...]]:
    """The options of all methods that are defined in these folders, by the method's name."""
    paths = [path for folder in folders for path in sorted(folder.glob("*.py"))]
    sources = [ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in paths]
    files = [{node.name: node for node in source.body if isinstance(node, ast.ClassDef)} for source in sources]
    named = [(node, file) for file in files for node in file.values() if _name(node)]
    return {str(_name(node)): tuple(_fields(node, file, files).values()) for node, file in named}


def options() -> list[Option]:
    """The options of all methods together, each once."""
    return merged(methods())


def merged(methods: dict[str, tuple[MethodOption, ...]]) -> list[Option]:
    """One option for each name, with the choices of all methods, and the default if all have the same.

    TypeError if methods disagree on its flags, type or help, or use one flag for several options.
    """
    found: dict[str, MethodOption] = {}
    shown: dict[str, str] = {}
    owners: dict[str, str] = {}
    for method, fields in methods.items():
        for option in fields:
            first = found.setdefault(option.name, option)
            if (option.flags, option.annotation, option.help) != (first.flags, first.annotation, first.help):
                raise TypeError(f"{option.name} of {method} has other flags, another type or another help than before")
            if any(owners.setdefault(flag, option.name) != option.name for flag in option.flags):
                raise TypeError(f"{option.name} of {method} has a flag of another option")
            found[option.name] = replace(first, choices=tuple(dict.fromkeys((*first.choices, *option.choices))))
            shown[option.name] = option.shown if shown.get(option.name, option.shown) == option.shown else BY_METHOD
    return [option.option(shown[name]) for name, option in found.items()]


def flag(method: str, name: str) -> str:
    """The first flag of the option for a method's parameter; `--NAME` if there is none."""
    flags = next((option.flags for option in methods()[method] if option.name == name), None)
    return flags[0] if flags else f"--{name.replace('_', '-')}"


def create(name: str, given: dict[str, Any]) -> Method:
    """Make a method from the options that were given; None means not given.

    Raises
    ------
    UsageError
        The method does not have one of the options.
    """
    from localsvm.methods import methods as classes

    values = {key: value for key, value in given.items() if value is not None}
    own = {option.name for option in methods()[name]}
    for key in sorted(values.keys() - own):
        has = next(method for method, options in methods().items() if any(option.name == key for option in options))
        raise click.UsageError(f"{flag(has, key)} is not an option of the method {name}.")
    return classes()[name](**values)


def _name(node: ast.ClassDef) -> str | None:
    """The name of the method that a class defines; None if it defines none."""
    for item in node.body:
        value = item.value if isinstance(item, ast.AnnAssign) else None
        if isinstance(item, ast.AnnAssign) and isinstance(value, ast.Constant) and ast.unparse(item.target) == "name":
            return str(value.value)
    return None


def _fields(node: ast.ClassDef, file: Classes, files: list[Classes]) -> dict[str, MethodOption]:
    """Options by name, in the order of a dataclass: those of base classes first, redefined ones in their old place."""
    found: dict[str, MethodOption] = {}
    for base in reversed(node.bases):  # bases may be in the same file or another one
        name = ast.unparse(base).rpartition(".")[2]
        home = next((part for part in (file, *files) if part.get(name, node) is not node), None)
        if home is not None:
            found |= _fields(home[name], home, files)
    return found | {option.name: option for option in _own(node)}


def _own(node: ast.ClassDef) -> Iterator[MethodOption]:
    """The options that a class declares itself."""
    for item in node.body:
        call = item.value if isinstance(item, ast.AnnAssign) else None
        if isinstance(item, ast.AnnAssign) and isinstance(call, ast.Call) and ast.unparse(call.func) == HELPER:
            default, *flags = (ast.literal_eval(arg) for arg in call.args)
            metadata = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
            name, annotation = ast.unparse(item.target), ast.unparse(item.annotation)
            yield MethodOption(name, annotation, default, tuple(flags), **metadata)
