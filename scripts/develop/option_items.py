"""Options of the commands as items of Markdown lists; see write_options.py."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import click

from localsvm.cli import method_options
from localsvm.cli.group import COMMANDS, lsvm
from localsvm.cli.value_types import Group, Option
from localsvm.methods import options_of, packaged

WIDTH = 118
METHODS = packaged()
OWN = {name: {field.name: field for field in options_of(method)} for name, method in METHODS.items()}
ORDINARY_WORDS = ("linear", "rbf")  # names of methods that are words, or values, too
CODE = [
    re.compile(r"(?:exp|max)\([^()]*\)|\bC n\b|\bC = c/m"),  # formulas
    re.compile(
        r"(?<![\w(-])--?[a-zA-Z][\w-]*(?: (?:\d[\d.]*|sgd|sdca|full|kmeans|squared-hinge|manhattan)\b)?"
        r"|(?<=\()--?[a-z][\w-]*"
    ),
    re.compile(
        r"(?:^|(?<=[.;] )|(?<=, )|(?<=with ))(?:[a-z]+(?:-[a-z]+)?|[01]|rank:R)(?=(?:, [a-z]+)*: |, all classes)"
    ),
    re.compile(r"lsvm-[a-z]+|LOW:HIGH:COUNT|(?<=\()\d[\d.^:,-]+(?=\))"),
    re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(set(METHODS) - set(ORDINARY_WORDS), reverse=True))})(?![\w-])"),
]


@cache
def options(command: str) -> tuple[click.Option, ...]:
    """The options of a command, in the order of its help."""
    program = lsvm.get_command(click.Context(lsvm), command)
    assert program is not None and command in COMMANDS
    params = [param for param in program.get_params(click.Context(program)) if isinstance(param, click.Option)]
    return tuple(param for group in Group for param in params if group_of(param) == group)


def group_of(option: click.Option) -> Group:
    """The group of the help in which an option stands."""
    return option.group if isinstance(option, Option) else Group.RUNNING


def flag(option: click.Option) -> str:
    """The shortest name of an option."""
    return option.opts[0]


def having(option: click.Option) -> list[str]:
    """The methods that have an option; none for an option of all."""
    return [name for name, fields in OWN.items() if option.name in fields]


def items(given: Sequence[click.Option], among: Iterable[str] = METHODS) -> str:
    """Options as a list. among : the methods that the list is about."""
    methods = list(among)
    return "".join(wrapped(" ".join(_sentences(option, methods)), "- ") for option in given)


def block(methods: Iterable[str]) -> str:
    """The options that some methods have."""
    chosen = {name: METHODS[name] for name in methods}
    return items(method_options.merged(chosen), chosen)


def listed(names: Iterable[str], last: str = "and") -> str:
    """Names as code, separated by commas."""
    *first, end = [f"`{name}`" for name in names]
    return f"{', '.join(first)} {last} {end}" if first else end


def wrapped(text: str, bullet: str = "") -> str:
    """Text in lines, none of which ends within code or a link."""
    whole = re.sub(r"`[^`]*`|\[[^\]]*\]\([^)]*\)", lambda match: match[0].replace(" ", "\xa0"), text)
    later = " " * len(bullet)
    lines = textwrap.wrap(
        whole, WIDTH, initial_indent=bullet, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace("\xa0", " ") + "\n"


def _sentences(option: click.Option, among: list[str]) -> Iterator[str]:
    """Sentences of an item: the names of an option, its help, the methods that have it, and its default."""
    record = option.get_help_record(click.Context(click.Command("lsvm")))
    assert record is not None
    text = str(option.help)
    if option.name == "method":
        text = text.replace(", ".join(METHODS), listed(METHODS))
    yield f"`{record[0].replace('  ', ' ')}`: {text if '`' in text else as_code(text)}"
    fields = {name: OWN[name][str(option.name)] for name in having(option) if name in among}
    if fields and len(fields) < len(among):
        lacking = [name for name in among if name not in fields]
        few = len(lacking) <= 2 < len(fields)
        yield f"Methods: {f'all but {listed(lacking)}' if few else listed(fields)}."
    choices = tuple(option.type.choices) if isinstance(option.type, click.Choice) else ()
    values = {name: field.metadata["choices"] for name, field in fields.items()}
    for some in dict.fromkeys(each for each in values.values() if set(each) < set(choices)):
        names = listed(name for name, each in values.items() if each == some)
        lacking = [choice for choice in choices if choice not in some]
        few = len(lacking) < len(some)
        yield f"Not of {names}: {listed(lacking)}." if few else f"Values of {names}: {listed(some)}."
    if default := _default(option, {name: method_options.shown_default(field) for name, field in fields.items()}):
        yield f"Default: {default}."


def _default(option: click.Option, by_method: dict[str, str]) -> str:
    """The default as the help shows it, or each where methods differ; "" for none."""
    values = Counter(by_method.values())
    if len(values) <= 1:
        shown = str(option.get_help_extra(click.Context(click.Command("lsvm"))).get("default", ""))
        return _value(shown, option.type.choices if isinstance(option.type, click.Choice) else ())
    usual = values.most_common(1)[0][0]
    others = [
        f"{_value(value)} for {listed(name for name, its in by_method.items() if its == value)}"
        for value in values
        if value != usual
    ]
    return f"{'; '.join(others)}; else {_value(usual)}"


def _value(shown: str, choices: Sequence[str] = ()) -> str:
    if shown == "grid":
        return "a grid"
    numbers = re.fullmatch(r"[\d.]+(, [\d.]+)*", shown)
    if shown and (numbers or " " not in shown):
        return f"`{shown}`"
    return as_code(re.sub(r"[\w:-]+", lambda match: f"`{match[0]}`" if match[0] in choices else match[0], shown))


def as_code(text: str) -> str:
    """Text with flags, values, formulas and names of methods as code."""
    for pattern in CODE:
        parts = re.split(r"(`[^`]*`)", text)
        parts[::2] = [pattern.sub(lambda match: f"`{match[0]}`", part) for part in parts[::2]]
        text = "".join(parts)
    return text
