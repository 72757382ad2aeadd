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
from localsvm.cli.value_types import Group, Names, Option, Values, WholeNumber
from localsvm.errors import MethodError

if TYPE_CHECKING:
    from localsvm.methods.base import Method

OTHERS = [folder for folder in os.environ.get("LOCALSVM_METHODS", "").split(os.pathsep) if folder]
FOLDERS = [Path(__file__).parent.parent / "methods", *map(Path, OTHERS)]
KINDS = {
    "bool": click.BOOL,
    "int": WholeNumber(),
    "float": click.FLOAT,
    "str": click.STRING,
    "tuple[float, ...]": Values(),
}
TYPICAL = ("svm", "linear")  # a kernel method and a linear one: their options tell to which the others belong
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

    def option(self, shown: str, group: Group) -> Option:
        """The option of the command line, in a group of the help, which shows `shown` as the default.

        Its value is None if it is not given, because defaults differ between methods.
        """
        declarations = [*self.flags, self.name]
        return Option(declarations, default=None, type=self._type(), help=self.help, show_default=shown, group=group)

    def _type(self) -> click.ParamType[Any]:
        if self.choices:
            return Names(self.choices, other_tools.NAMES.get(self.name))
        if isinstance(self.default, tuple) and 0.0 in self.default:
            return Values(zero=True)
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


def methods() -> dict[str, tuple[MethodOption, ...]]:
    """The options of every method, by the method's name; those of the package alone if there is a `problem`."""
    return _loaded()[0]


def problem() -> MethodError | None:
    """What is wrong with the folders of methods. A command tells it: options are made before it can say anything."""
    return _loaded()[1]


@cache
def _loaded() -> tuple[dict[str, tuple[MethodOption, ...]], MethodError | None]:
    try:
        found = read(FOLDERS)
        merged(found)
        return found, None
    except MethodError as error:
        return _packaged(), error


@cache
def _packaged() -> dict[str, tuple[MethodOption, ...]]:
    return read(FOLDERS[:1])


def read(folders: Sequence[Path]) -> dict[str, tuple[MethodOption, ...]]:
    """The options of all methods that are defined in these folders, by the method's name.

    MethodError for a folder that is not there, and a file that cannot be read.
    """
    if missing := [folder for folder in folders if not folder.is_dir()]:
        raise MethodError(f"LOCALSVM_METHODS names {missing[0]}, which is not a folder")
    paths = [path for folder in folders for path in sorted(folder.glob("*.py"))]
    files = [_classes(path) for path in paths]
    found: dict[str, tuple[MethodOption, ...]] = {}
    for path, file in zip(paths, files, strict=True):
        for node in file.values():
            if name := _name(node):
                try:
                    found[name] = tuple(_fields(node, file, files).values())
                except (TypeError, ValueError) as error:
                    raise MethodError(f"{path}: an option of {name} cannot be read; write literals ({error})") from None
    return found


def _classes(path: Path) -> Classes:
    try:
        source = ast.parse(path.read_bytes(), str(path))
    except (OSError, SyntaxError, ValueError) as error:
        raise MethodError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from None
    return {node.name: node for node in source.body if isinstance(node, ast.ClassDef)}


def options() -> list[Option]:
    """The options of all methods together, each once."""
    return merged(methods())


def merged(methods: dict[str, tuple[MethodOption, ...]]) -> list[Option]:
    """One option for each name, with the choices of all methods, and the default if all have the same.

    MethodError if methods disagree on its flags, type or help, or use one flag for several options.
    """
    found: dict[str, MethodOption] = {}
    shown: dict[str, str] = {}
    owners: dict[str, str] = {}
    for method, fields in methods.items():
        for option in fields:
            first = found.setdefault(option.name, option)
            if (option.flags, option.annotation, option.help) != (first.flags, first.annotation, first.help):
                raise MethodError(
                    f"{option.name} of {method} has other flags, another type or another help than before"
                )
            if any(owners.setdefault(flag, option.name) != option.name for flag in option.flags):
                raise MethodError(f"{option.name} of {method} has a flag of another option")
            found[option.name] = replace(first, choices=tuple(dict.fromkeys((*first.choices, *option.choices))))
            shown[option.name] = option.shown if shown.get(option.name, option.shown) == option.shown else BY_METHOD
    return [option.option(shown[name], _group(name, methods)) for name, option in found.items()]


def _group(name: str, methods: dict[str, tuple[MethodOption, ...]]) -> Group:
    """Where the help lists an option, by the methods that have it."""

    def has(method: str) -> bool:
        return any(option.name == name for option in methods.get(method, ()))

    if any(map(has, TYPICAL)):
        return Group.METHOD if all(map(has, TYPICAL)) else Group.KERNEL if has(TYPICAL[0]) else Group.LINEAR
    own = methods if len(FOLDERS) == 1 else _packaged()
    return Group.LINEAR if any(map(has, own)) else Group.OTHER


def parameter(method: str, name: str) -> MethodOption | None:
    """The option for a parameter of a method's grid, which is named as its field or as one of its flags."""
    flag = f"--{name.replace('_', '-')}"
    return next((option for option in methods()[method] if option.name == name or flag in option.flags), None)


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
        have = [method for method, options in methods().items() if any(option.name == key for option in options)]
        option = parameter(have[0], key)
        assert option is not None
        what = f"{option.flags[0]} is not an option of the method {name}, but of {', '.join(have)}"
        raise click.UsageError(f"{what}: -m chooses.")
    return classes()[name](**values)


def _name(node: ast.ClassDef) -> str | None:
    """The name of the method that a class defines; None if it defines none."""
    for item in node.body:
        if isinstance(item, ast.AnnAssign | ast.Assign) and isinstance(item.value, ast.Constant):
            targets = [item.target] if isinstance(item, ast.AnnAssign) else item.targets
            if any(isinstance(target, ast.Name) and target.id == "name" for target in targets):
                return str(item.value.value)
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
            if annotation not in KINDS:
                raise ValueError(f"{name} is {annotation}, not {', '.join(KINDS)}")
            yield MethodOption(name, annotation, default, tuple(flags), **metadata)
