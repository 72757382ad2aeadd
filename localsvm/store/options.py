"""Check of options that were stored as JSON: they are all there, none else, and each of its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from localsvm.store.pieces import Unsound

MOST = 1 << 63  # whole numbers are smaller, but seeds
Seed = int
SEEDS = 10**1000  # seeds are smaller; Python writes whole numbers of up to 4300 digits as text


def check_options(place: str, options: Mapping[str, Any], types: Mapping[str, str], later: set[str]) -> None:
    """Raise Unsound unless the options are those of `types`, which gives their annotations.

    later: those that came after the first files, which a file may be without.
    """
    for name in types.keys() - options.keys() - later:
        raise Unsound(f"{place}: the option {name} is missing")
    for name, value in options.items():
        if name not in types:
            raise Unsound(f"{place}: the option {name[:50]!a} is not known to this version")
        if not _TYPES[types[name]](value):
            raise Unsound(f"{place}: the option {name} is no {types[name]}")


def _number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < MOST)


def _whole(value: Any) -> bool:
    return _number(value) and value == int(value)


def _seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < SEEDS


def _flag(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, int) and value in (0, 1))


def _list_of(kind: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(kind(item) for item in value)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "bool": _flag,
    "int": _whole,
    "Seed": _seed,
    "float": _number,
    "int | None": lambda value: value is None or _whole(value),
    "float | None": lambda value: value is None or _number(value),
    "str": lambda value: isinstance(value, str),
    "str | None": lambda value: value is None or isinstance(value, str),
    "tuple[float, ...]": _list_of(_number),
    "tuple[str, ...]": _list_of(lambda value: isinstance(value, str)),
    "tuple[tuple[float, float], ...]": _list_of(lambda pair: _list_of(_number)(pair) and len(pair) == 2),
    "Method": lambda value: isinstance(value, dict),
    "dict": lambda value: isinstance(value, dict),
}
