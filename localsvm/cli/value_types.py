"""Types of option values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from localsvm.cli import other_tools
from localsvm.errors import OptionError

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

UNITS = {"K": 10, "M": 20, "G": 30, "T": 40}
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
SMALLEST_CELL = 10


class Group(StrEnum):
    """Groups of options, in the order in which the help of a command lists them."""

    DATA = "Data"
    TABLE = "Tables"
    PARTITION = "Partition"
    METHOD = "Method"
    SELECTION = "Selection"
    KERNEL = "Kernel methods"
    LINEAR = "Linear methods"
    SINGLE = "Single methods"
    OTHER = "Other methods"
    OUTPUT = "Output"
    RUNNING = "Running"


class Option(click.Option):
    """An option of a group, whose help shows a default in words as click shows other defaults."""

    def __init__(self, *args: Any, group: Group = Group.RUNNING, **extra: Any) -> None:
        super().__init__(*args, **extra)
        self.group = group

    def get_help_extra(self, ctx: click.Context) -> OptionHelpExtra:
        """Give what click gives, but without parentheses around words, and without ranges."""
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default
        extra.pop("range", None)
        return extra


class Label(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A label of the training file: a number, or of a table a text. float64 has to hold whole numbers."""

    name = "label"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        try:
            label = float(value)
        except ValueError:
            return str(value)
        if not math.isfinite(label):
            self.fail(f"{value!r} is no label; labels are finite numbers, or text.", param, ctx)
        if re.fullmatch(r"[+-]?\d+", str(value)) and int(value) != label:
            self.fail(f"the label {value} is a whole number that float64 does not hold.", param, ctx)
        return label


class Names(click.Choice[str]):
    """One of some names. `others` maps names that other tools use to messages, and `aliases` other names to some."""

    def __init__(
        self, names: Sequence[str], others: Mapping[str, str] | None = None, aliases: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(names)
        self.others, self.aliases = others or {}, aliases or {}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        value = self.aliases.get(value, value)
        if value in self.others:
            self.fail(f"{value!r} is not a name: {self.others[value]}.", param, ctx)
        if value not in self.choices:
            names = ", ".join(map(repr, self.choices))
            self.fail(f"{value!r} is not one of {names}.{meant(value, self.choices)}", param, ctx)
        return super().convert(value, param, ctx)


class MetricName(Names):
    """The name of a metric; R of the last one stands for a whole number."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if re.fullmatch(r"rank:[1-9][0-9]{0,8}", str(value)):
            return str(value)
        if re.fullmatch(r"rank(:.*)?", str(value)):
            self.fail(f"{value!r}: R in rank:R is the number of dimensions, from 1: write rank:2, say.", param, ctx)
        return super().convert(value, param, ctx)


def meant(typed: str, names: Sequence[str]) -> str:
    """Question whether the name was meant that looks most like the typed one; empty if none does."""
    from difflib import get_close_matches

    near = get_close_matches(typed, names, 1) or get_close_matches(typed.lower(), names, 1)
    return f" Did you mean {near[0]}?" if near else ""


class FileName(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """The name of a file, which shells complete."""

    name = "file"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


class Methods(Names):
    """The name of a method. A number was probably meant as LIBSVM's cache size, and the message says so."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if str(value).isdecimal():
            self.fail(f"{other_tools.METHOD}.", param, ctx)
        return super().convert(value, param, ctx)


def whole(text: str) -> int | None:
    """The whole number that a text is, as in 20000, 2e4 or 1.5e3; None where it is none."""
    if re.fullmatch(r"[+-]?\d{1,4000}", text):
        return int(text)
    match = re.fullmatch(r"(\d{1,19})(?:\.(\d{1,19}))?[eE]\+?(\d{1,2})", text)
    if match is None:
        return None
    digits, places = match[1] + (match[2] or ""), int(match[3]) - len(match[2] or "")
    value, rest = (int(digits) * 10**places, 0) if places >= 0 else divmod(int(digits), 10**-places)
    return None if rest else value


DEFAULT_FOLDS = 5


class WholeNumber(click.IntRange):
    """A whole number in a range, which may be written as 2e4."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number = whole(str(value))
        if number is None:
            least = "" if self.min is None else f" from {self.min}"
            self.fail(f"{value!r} is not a whole number{least}.", param, ctx)
        return super().convert(number, param, ctx)


class Blocks(int):
    """A number of folds that are stretches of consecutive rows."""

    def __str__(self) -> str:
        return f"blocks:{int(self)}"


class FoldsType(WholeNumber):
    """A number of folds, or blocks, or blocks:N."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, Blocks):
            return value
        word, colon, count = str(value).partition(":")
        if word != "blocks":
            return super().convert(value, param, ctx)
        return Blocks(super().convert(count if colon else DEFAULT_FOLDS, param, ctx))


class CellSizeType(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A number of rows in a cell. Anything but a whole number was probably meant as LIBSVM's cost."""

    name = "rows"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        size = whole(str(value))
        if size is None or size < SMALLEST_CELL:
            self.fail(f"{str(value)!r}: {other_tools.COST}.", param, ctx)
        return size


class ZeroOrOne(click.types.BoolParamType):
    """Truth value, as LIBSVM's -b has it: 0 or 1; true, no and the like are understood, too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bool:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is neither 0 nor 1.", param, ctx)


class MemoryType(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """Memory in bytes, written with a unit (powers of 1024): 500M, 8G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT])(?:i?B)?", str(value), re.IGNORECASE)
        if match is None or float(match[1]) == 0:
            self.fail(f"{value!r} is not a size; write a number with a unit, as in 500M or 8G.", param, ctx)
        return int(float(match[1]) * 2 ** UNITS[match[2].upper()])


class DurationType(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """A time in seconds, written with a unit, 90s, 30m or 2h, or as batch systems have it: 1:30:00."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)(ms|s|m|h|d)", str(value))
        clock = re.fullmatch(r"(?:(?:(\d{1,4})-)?(\d{1,6}):)?(\d{1,2}):(\d{2})", str(value))
        seconds = 0.0
        if match is not None:
            seconds = float(match[1]) * SECONDS[match[2]]
        elif clock is not None:  # DAYS-HOURS:MINUTES:SECONDS
            days, hours, minutes, rest = (int(part or 0) for part in clock.groups())
            seconds = float(((24 * days + hours) * 60 + minutes) * 60 + rest)
        if seconds == 0:
            self.fail(
                f"{value!r} is not a time; write a number with a unit, as in 90s, 30m or 2h, or 1:30:00.", param, ctx
            )
        return seconds


class Values(click.ParamType):  # type: ignore[type-arg]  # generic only in newer versions of click
    """The values of one parameter: 0.5, a list 0.1,1,10, or a range 2^-5:2^3:9; see `grids.parse_values`."""

    name = "values"

    def __init__(self, zero: bool = False, even: bool = False) -> None:
        self._zero, self._even = zero, even

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        from localsvm.methods.grids import check_values, parse_values

        try:
            return check_values(parse_values(value, self._zero, self._even))
        except OptionError as error:
            self.fail(f"{error}.", param, ctx)
