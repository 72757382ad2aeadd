"""Learning methods, one file each; `METHODS` is filled from the files of this folder."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from localsvm.errors import ModelError
from localsvm.methods.base import Method


def methods() -> dict[str, type[Method]]:
    """Every method by name: the frozen dataclasses of this folder's files that have one."""
    found: dict[str, type[Method]] = {}
    for module in pkgutil.iter_modules(__path__):
        for item in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            name = getattr(item, "name", None)
            if isinstance(item, type) and isinstance(name, str):
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
