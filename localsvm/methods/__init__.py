"""Learning methods, one file each, found by looking through this folder.

Folders named by the variable LOCALSVM_METHODS (separated as in PATH) are looked through as well, so that a method can
be tried without touching this package; docs/adding-a-method.md shows one.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import fields
from functools import cache
from types import ModuleType
from typing import Any

from localsvm.errors import MethodError, OptionError
from localsvm.methods.base import Method
from localsvm.store.options import check_options as check_stored
from localsvm.store.pieces import Unsound

__path__ += [folder for folder in os.environ.get("LOCALSVM_METHODS", "").split(os.pathsep) if folder]

BECAME_LISTS = {"neighbours"}  # options that the first models have as one number
# options that came after the first models of a method; a model without one has its default
LATER: dict[str, set[str]] = {
    "mkl": {"online"},
    "mllkm": {"online", "kept_rows", "solver", "epochs"},
    **{name: {"start"} for name in ("kmeans-svm", "csvm", "llsvm", "mlsvm", "mtl")},
}


@cache
def methods() -> dict[str, type[Method]]:
    """Every method by name: the frozen dataclasses defined in these folders' files that give themselves one.

    MethodError for a folder that is not there, a file that cannot be imported, a method that lacks a part, and two
    methods that use a name or an option for different things.
    """
    found: dict[str, type[Method]] = {}
    if missing := [folder for folder in __path__ if not os.path.isdir(folder)]:
        raise MethodError(f"LOCALSVM_METHODS names {missing[0]}, which is not a folder")
    files = Counter(module.name for folder in __path__ for module in pkgutil.iter_modules([folder]))
    if twice := [name for name, n in files.items() if n > 1]:
        raise MethodError(
            f"{', '.join(twice)}: there are several files of this name in the folders of methods; rename one"
        )
    for module in pkgutil.iter_modules(__path__):
        defined = _loaded(module)
        for item in vars(defined).values():
            own = isinstance(item, type) and item.__module__ == defined.__name__
            name = vars(item).get("name") if own else None
            if isinstance(name, str):
                _check_parts(name, item, found)
                found[name] = item
    check_options(found.values())
    return found


@cache
def method_called(name: str) -> type[Method] | None:
    """A method by its name, None where there is none.

    A method of this package is the only one to be imported, where its file is called like it: a prediction needs no
    other. MethodError as of `methods`.
    """
    file = name.replace("-", "_")
    if not os.environ.get("LOCALSVM_METHODS") and file in {module.name for module in pkgutil.iter_modules(__path__)}:
        for item in vars(importlib.import_module(f"{__name__}.{file}")).values():
            if isinstance(item, type) and issubclass(item, Method) and vars(item).get("name") == name:
                return item
    return methods().get(name)


def method_from(options: dict[str, Any]) -> Method:
    """The method of a model's config; Unsound where this version does not know it, or would not train with it."""
    values = dict(options)
    name = values.pop("name", "")
    found = method_called(name) if isinstance(name, str) else None  # a mistake in a method's file is not the model's
    if found is None:
        raise Unsound(f"the model was trained with the method {str(name)[:50]!a}, which this version does not have")
    types = {f.name: str(f.type) for f in fields(found)}  # type: ignore[arg-type]
    for key in BECAME_LISTS & values.keys() & types.keys():
        values[key] = [values[key]] if isinstance(values[key], int) else values[key]
    check_stored("/@config method", values, types, LATER.get(name, set()))
    try:
        return found(**{key: tuple(v) if isinstance(v, list) else v for key, v in values.items()})
    except OptionError as error:
        raise Unsound(f"/@config: {error}") from error


def check_options(classes: Iterable[type[Method]]) -> None:
    """MethodError unless an option name, and a flag, means one thing in all methods: the same field, type and help."""
    meaning: dict[str, tuple[Any, ...]] = {}
    for item in classes:
        for field in fields(item):  # type: ignore[arg-type]
            if "flags" not in field.metadata:
                raise MethodError(f"{item.__name__}: {field.name} is neither made by option() nor a ClassVar")
            flags, text = field.metadata["flags"], field.metadata["help"]
            if hasattr(Method, field.name):
                raise MethodError(f"{item.__name__}: {field.name} is a part of every method; rename the option")
            for key in (field.name, *flags):
                if meaning.setdefault(key, (field.name, field.type, flags, text)) != (
                    field.name,
                    field.type,
                    flags,
                    text,
                ):
                    raise MethodError(f"{item.__name__}: {key} means something else in another method")


def _loaded(module: pkgutil.ModuleInfo) -> ModuleType:
    """The module. What goes wrong in a file that is not of this package is told in one line."""
    try:
        return importlib.import_module(f"{__name__}.{module.name}")
    except Exception as error:
        folder = getattr(module.module_finder, "path", __path__[0])
        if folder == __path__[0]:
            raise
        raise MethodError(f"{folder}/{module.name}.py cannot be loaded: {type(error).__name__}: {error}") from error


def _check_parts(name: str, item: type[Any], known: dict[str, type[Method]]) -> None:
    if not issubclass(item, Method) or inspect.isabstract(item):
        missing = ", ".join(sorted(getattr(item, "__abstractmethods__", ()))) or "the base class Method"
        raise MethodError(f"the method {name!r} ({item.__module__}.{item.__name__}) lacks: {missing}")
    if name in known:
        raise MethodError(f"{item.__module__}.{item.__name__} and {known[name].__name__} are both named {name!r}")
