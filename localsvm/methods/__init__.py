"""Learning methods: a folder for each family, and in it one file for each method, found by looking through the folders.

A file here is a record, which `--help` imports: it imports what takes time inside functions. How the problems of a cell
are solved and decided is in the folders `systems`.

Folders named by the variable LOCALSVM_METHODS (separated as in PATH) are looked through as well, so that a method can
be tried without touching this package; docs/adding-a-method.md shows one.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import Field, fields
from functools import cache
from typing import Any

from localsvm.errors import MethodError, OptionError
from localsvm.methods.base import Method
from localsvm.methods.option import kind_of
from localsvm.store.options import check_options as check_stored
from localsvm.store.pieces import Unsound

HOME = __path__[0]
ASKED = [folder for folder in os.environ.get("LOCALSVM_METHODS", "").split(os.pathsep) if folder]
__path__ += [folder for folder in ASKED if os.path.isabs(folder)]  # a run in a stranger's folder takes nothing from it

DEFAULT = "svm"
KINDS = ("bool", "int", "float", "str", "tuple[float, ...]")


@cache
def methods() -> dict[str, type[Method]]:
    """Every method by name: the frozen dataclasses defined in these folders' files that give themselves one.

    MethodError for a folder that is not there, a file that cannot be imported, a method that lacks a part, and two
    methods that use a name or an option for different things.
    """
    if relative := [folder for folder in ASKED if not os.path.isabs(folder)]:
        raise MethodError(f"LOCALSVM_METHODS names {relative[0]}; give the whole path, {os.path.abspath(relative[0])}")
    if missing := [folder for folder in __path__ if not os.path.isdir(folder)]:
        raise MethodError(f"LOCALSVM_METHODS names {missing[0]}, which is not a folder")
    files = Counter(module.name for folder in __path__ for module in pkgutil.iter_modules([folder]))
    if twice := [name for name, n in files.items() if n > 1]:
        raise MethodError(
            f"{', '.join(twice)}: there are several files of this name in the folders of methods; rename one"
        )
    by_name = dict(packaged()) if HOME in __path__ else {}
    for folder in __path__:
        if folder != HOME:
            for module in pkgutil.iter_modules([folder]):
                _add(by_name, module.name, folder)
    check_options(by_name.values())
    return by_name


@cache
def packaged() -> dict[str, type[Method]]:
    """The methods of this package, by name."""
    by_name: dict[str, type[Method]] = {}
    for name in _files():
        _add(by_name, name, HOME)
    return dict(sorted(by_name.items()))


@cache
def method_called(name: str) -> type[Method] | None:
    """A method by its name, None where there is none.

    A method of this package is the only one to be imported, where its file is called like it. MethodError as of
    `methods`.
    """
    file = name.replace("-", "_")
    if not os.environ.get("LOCALSVM_METHODS"):
        for module in _files():
            if module.endswith(f".{file}"):
                return _defined(module, HOME).get(name)
    return methods().get(name)


def default_method() -> Method:
    """The method without -m, with its default options."""
    method = method_called(DEFAULT)
    assert method is not None, "it is in this package"
    return method()


def method_from(options: dict[str, Any]) -> Method:
    """The method of a model's config; Unsound where this version does not know it, or would not train with it."""
    values = dict(options)
    name = values.pop("name", "")
    method = method_called(name) if isinstance(name, str) else None  # a mistake in a method's file is not the model's
    if method is None:
        raise Unsound(f"the model was trained with the method {str(name)[:50]!a}, which this version does not have")
    its_options = options_of(method)
    for option in its_options:
        if "became_list" in option.metadata and isinstance(values.get(option.name), int):
            values[option.name] = [values[option.name]]
    later = {option.name for option in its_options if "later" in option.metadata}
    check_stored("/@config method", values, {option.name: kind_of(option) for option in its_options}, later)
    try:
        return method(**{key: tuple(v) if isinstance(v, list) else v for key, v in values.items()})
    except OptionError as error:
        raise Unsound(f"/@config: {error.message}") from error


def options_of(method: type[Method]) -> tuple[Field[Any], ...]:
    """The options of a method, as its fields; see `base.option`."""
    return fields(method)  # type: ignore[arg-type]


def check_options(classes: Iterable[type[Method]]) -> None:
    """Raise MethodError unless an option name, and a flag, means one thing in all methods.

    That is the same field, type and help.
    """
    meaning: dict[str, tuple[Any, ...]] = {}
    for item in classes:
        for field in options_of(item):
            if "flags" not in field.metadata:
                raise MethodError(f"{item.__name__}: {field.name} is neither made by option() nor a ClassVar")
            kind, flags, text = kind_of(field), field.metadata["flags"], field.metadata["help"]
            if kind not in KINDS:
                raise MethodError(f"{item.__name__}: {field.name} is {kind}, not {', '.join(KINDS)}")
            if hasattr(Method, field.name):
                raise MethodError(f"{item.__name__}: {field.name} is a part of every method; rename the option")
            for key in (field.name, *flags):
                definition = (field.name, kind, flags, text)
                if meaning.setdefault(key, definition) != definition:
                    raise MethodError(f"{item.__name__}: {key} means something else in another method")


def _files() -> Iterator[str]:
    """The modules of this package's families, without the package's name."""
    for family in pkgutil.iter_modules([HOME]):
        if family.ispkg:
            for module in pkgutil.iter_modules([os.path.join(HOME, family.name)]):
                if not module.ispkg:
                    yield f"{family.name}.{module.name}"


def _add(by_name: dict[str, type[Method]], module: str, folder: str) -> None:
    for name, item in _defined(module, folder).items():
        if not issubclass(item, Method) or inspect.isabstract(item):
            missing = ", ".join(sorted(getattr(item, "__abstractmethods__", ()))) or "the base class Method"
            raise MethodError(f"the method {name!r} ({item.__module__}.{item.__name__}) lacks: {missing}")
        if name in by_name:
            raise MethodError(f"{item.__module__}.{item.__name__} and {by_name[name].__name__} are both named {name!r}")
        by_name[name] = item


def _defined(module: str, folder: str) -> dict[str, type[Any]]:
    """The classes that a module defines and names. A mistake in a file of another folder is a MethodError."""
    try:
        loaded = importlib.import_module(f"{__name__}.{module}")
    except Exception as error:
        if folder == HOME:
            raise
        raise MethodError(f"{folder}/{module}.py cannot be loaded: {type(error).__name__}: {error}") from error
    classes = [item for item in vars(loaded).values() if isinstance(item, type) and item.__module__ == loaded.__name__]
    return {name: item for item in classes if isinstance(name := vars(item).get("name"), str)}
