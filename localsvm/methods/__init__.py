"""Learning methods, one file each; `METHODS` is filled from the files of this folder."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from localsvm.errors import ModelError
from localsvm.methods.base import Method


def methods() -> dict[str, type[Method]]:
    """Every method by name: the frozen dataclasses defined in this folder's files that give themselves one."""
    found: dict[str, type[Method]] = {}
    for module in pkgutil.iter_modules(__path__):
        defined = importlib.import_module(f"{__name__}.{module.name}")
        for item in vars(defined).values():
            own = isinstance(item, type) and item.__module__ == defined.__name__
            name = vars(item).get("name") if own else None
            if isinstance(name, str):
                found[name] = item
    return found


def method_from(options: dict[str, Any]) -> Method:
    """The method of a model's config; ModelError where this version does not know it."""
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    name = str(values.pop("name", ""))
    try:
        return methods()[name](**values)
    except (KeyError, TypeError):
        raise ModelError(f"the model was trained with the method {name!r}, which this version does not have") from None
