"""The options of the learning methods, read from their files without running them.

A method is a dataclass in one file of `localsvm/methods`, and its fields' metadata are its options. Importing those
files takes numpy, scipy and the compiled kernels, which `--help` must not wait for; so the fields are read from the
source, in which flags, help and choices are literals. A test compares them with the dataclasses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localsvm.cli import formerly
from localsvm.cli.kinds import Names, Option, Values

if TYPE_CHECKING:
    from localsvm.methods.base import Method

FOLDER = Path(__file__).parent.parent / "methods"
KINDS = {"bool": click.BOOL, "int": click.INT, "float": click.FLOAT, "tuple[float, ...]": Values()}
HELPER = "_option"  # the function that makes an option's field


@dataclass(frozen=True)
class MethodOption:
    """A field of a method: its name, annotation and default, and the metadata of its option."""

    name: str
    annotation: str
    default: Any
    flags: tuple[str, ...]
    help: str
    choices: tuple[str, ...] = ()

    def option(self) -> Option:
        """The command line's option; None where it is not given, so that each method has its own defaults."""
        declarations = [*self.flags, self.name]
        return Option(declarations, default=None, type=self._type(), help=self.help, show_default=self._shown())

    def _type(self) -> click.ParamType | None:
        if self.choices:
            return Names(self.choices, formerly.NAMES.get(self.name))
        return KINDS[self.annotation]

    def _shown(self) -> str:
        if self.annotation == "bool":
            on, off = self.flags[0].split("/")
            return (on if self.default else off).lstrip("-")
        return "grid" if self.default == () else f"{self.default}"


@cache
def methods() -> dict[str, tuple[MethodOption, ...]]:
    """The options of every method, by its name."""
    sources = (ast.parse(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.py")))
    classes = [node for source in sources for node in source.body if isinstance(node, ast.ClassDef)]
    return {name: tuple(_options(node)) for node in classes if (name := _name(node))}


def options() -> list[Option]:
    """The options of all methods, each once."""
    return [option.option() for option in {o.name: o for fields in methods().values() for o in fields}.values()]


def create(name: str, given: dict[str, Any]) -> Method:
    """The method with the given options (None: not given); a usage error for an option that it does not have."""
    from localsvm.methods import methods as classes

    values = {key: value for key, value in given.items() if value is not None}
    own = {option.name for option in methods()[name]}
    for key in values.keys() - own:
        raise click.UsageError(f"--{key.replace('_', '-')} is not an option of the method {name}.")
    return classes()[name](**values)


def _name(node: ast.ClassDef) -> str | None:
    for item in node.body:
        value = item.value if isinstance(item, ast.AnnAssign) else None
        if isinstance(item, ast.AnnAssign) and isinstance(value, ast.Constant) and ast.unparse(item.target) == "name":
            return str(value.value)
    return None


def _options(node: ast.ClassDef) -> Iterator[MethodOption]:
    for item in node.body:
        call = item.value if isinstance(item, ast.AnnAssign) else None
        if isinstance(item, ast.AnnAssign) and isinstance(call, ast.Call) and ast.unparse(call.func) == HELPER:
            default, *flags = (ast.literal_eval(arg) for arg in call.args)
            metadata = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
            name, annotation = ast.unparse(item.target), ast.unparse(item.annotation)
            yield MethodOption(name, annotation, default, tuple(flags), **metadata)
