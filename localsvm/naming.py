"""Options in messages: a message mentions them by their fields, and an interface puts its own names there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

MARK, VALUE = "\x1e", "\x1f"  # around an option, and before its value
# the command line's names, where they are not the field with dashes before
SHORT = {
    "class_weights": "-w", "cell_size": "-c", "clusters": "-K", "common": "--lambda", "cost": "-C", "epsilon": "-p",
    "folds": "-v", "gamma": "-g", "ids": "--id-column", "jobs": "-j", "kernel": "-t", "landmarks_count": "-L",
    "method": "-m", "partition": "-P", "probability": "-b", "quiet": "-q", "scoring": "--score", "solver": "-s",
    "tolerance": "-e",
}  # fmt: skip
LONG = {name: f"--{name.replace('_', '-')}" for name in SHORT} | {
    "class_weights": "", "common": "", "ids": "", "landmarks_count": "--n-landmarks", "scoring": "",
}  # fmt: skip
OFF = {"mean_loss": "--sum-loss", "zero_based": "--one-based"}  # else --no- and the name


class Mention(str):
    """An option in a message; called with a value, the option with that value."""

    def __call__(self, value: Any) -> str:
        return f"{self[:-1]}{VALUE}{json.dumps(value, default=str)}{MARK}"


class _Options:
    def __getattr__(self, field: str) -> Mention:
        return Mention(f"{MARK}{field}{MARK}")


opt = _Options()  # f"{opt.cell_size} must be ...", f"leave {opt.partition('voronoi')} out"


def fields_in(text: str) -> list[str]:
    """The options that a message mentions, in their order."""
    return [part.partition(VALUE)[0] for part in text.split(MARK)[1::2]]


def named(text: str, name: Callable[[str, Any], str]) -> str:
    """A message with its options named.

    name : makes the name of a field, with the value that it is to have, None for none.
    """
    parts = text.split(MARK)
    for i, part in enumerate(parts[1::2]):
        field, valued, value = part.partition(VALUE)
        parts[2 * i + 1] = name(field, json.loads(value) if valued else None)
    return "".join(parts)


def on_command_line(text: str) -> str:
    """A message as the commands show it; an option that the message begins with has both of its names."""
    message = named(text, flag)
    if text.startswith(MARK) and LONG.get(field := fields_in(text)[0]):
        return f"{SHORT[field]}/{LONG[field]}{message.removeprefix(SHORT[field])}"
    return message


def flag(field: str, value: Any = None) -> str:
    """An option on the command line, and its value."""
    dashed = f"--{field.replace('_', '-')}"
    if isinstance(value, bool):
        return dashed if value else OFF.get(field, f"--no-{field.replace('_', '-')}")
    return SHORT.get(field, dashed) + ("" if value is None else f" {value:g}" if _number(value) else f" {value}")


def _number(value: Any) -> bool:
    return isinstance(value, float)
