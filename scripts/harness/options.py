"""The command-line options that all experiments have.

given = parser(__doc__, out=Path("docs/results"), sets=SETS, seeds=3)
given.add_argument("--methods")             # an experiment's own
options = parsed(given)
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from pathlib import Path

DATA_HELP = "folder of NAME.train.libsvm.xz and NAME.test.libsvm.xz (default $LOCALSVM_DATA)"
WORK = Path("build/bench")


def parser(
    description: str | None,
    *,
    out: Path | None,
    data: str = "needed",
    sets: Sequence[str] | None = None,
    seeds: int | None = None,
    methods: Sequence[str] | None = None,
    quick: str = "the small end, in minutes",
) -> argparse.ArgumentParser:
    """A parser of DATA (needed, optional or none), --sets, --seeds and --methods where there are such, and the rest."""
    command = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = os.environ.get("LOCALSVM_DATA") or None
    command.set_defaults(needs_data=data == "needed")
    if data != "none":
        command.add_argument("data", type=Path, nargs="?", default=known, help=DATA_HELP, metavar="DATA")
    if sets is not None:
        command.add_argument("--sets", type=names_of(sets), default=list(sets), help=f"default {','.join(sets)}")
    if seeds is not None:
        command.add_argument("--seeds", type=int, default=seeds, help="runs of each case (default %(default)s)")
    if methods is not None:
        help_text = f"default {','.join(methods)}".replace("%", "%%")
        command.add_argument("--methods", type=names_of(methods), default=list(methods), help=help_text)
    command.add_argument(
        "--out", type=Path, default=out, help=f"folder of log and page{f' (default {out})' if out else ''}"
    )
    command.add_argument("--quick", action="store_true", help=quick)
    command.add_argument("--fresh", action="store_true", help="forget the log")
    command.add_argument("--page-only", action="store_true", help="measure nothing, write the page from the log")
    return command


def parsed(command: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options, DATA as an absolute path or None. Where it is needed, only a page can be written without it."""
    options = command.parse_args(arguments)
    if options.needs_data and not (options.data or options.page_only):
        command.error("the folder DATA of the data sets is needed, or the variable LOCALSVM_DATA")
    options.data = Path(options.data).resolve() if getattr(options, "data", None) else None
    return options


def names(text: str) -> list[str]:
    """Names in a text such as "a,b"."""
    return text.split(",")


def names_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Parser of a text such as "a,b", whose names have to be among these."""

    def parse(text: str) -> list[str]:
        if unknown := [name for name in names(text) if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: no such name; there are {', '.join(known)}")
        return names(text)

    return parse


def integers(text: str) -> list[int]:
    """Whole numbers in a text such as "2000,1e6"."""
    return [int(float(value)) for value in text.split(",")]
