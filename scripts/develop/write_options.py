"""Write the lists of options in the documents, from the commands themselves.

    python scripts/develop/write_options.py [--check]

It writes docs/options/*.md, and in docs/*.md what stands between `<!-- options: NAMES -->` and
`<!-- end of options -->`: the options of these methods, whose names are separated by commas. With --check, nothing is
written: it names the pages that are not up to date, and exits with 1 if there are any.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from develop.option_items import METHODS, OWN, block, flag, group_of, having, items, listed, options, wrapped
from localsvm.cli import method_options
from localsvm.cli.group import COMMANDS
from localsvm.cli.value_types import Group

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^(<!-- options: (.+?) -->\n)(.*?)(^<!-- end of options -->)$", re.MULTILINE | re.DOTALL)
NOTE = (
    "<!-- Written by scripts/develop/write_options.py. To change it, change the help of the option, and run this. -->"
)


def main() -> int:
    """Write the pages, or name those that are not up to date."""
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    if os.environ.get("LOCALSVM_METHODS"):
        sys.exit("error: the documents have the methods of the package alone; unset LOCALSVM_METHODS")
    check, texts = bool(sys.argv[1:]), pages()
    for page in (outdated := stale(texts)):
        if not check and page in texts:
            page.parent.mkdir(exist_ok=True)
            page.write_text(texts[page], encoding="utf-8")
        elif not check:
            page.unlink()
        done = "is not up to date" if check else "written" if page in texts else "removed"
        print(f"{page.relative_to(ROOT)} {done}")
    return 1 if check and outdated else 0


def stale(texts: dict[Path, str]) -> list[Path]:
    """Pages that are missing or differ from their text, and pages of docs/options that have none."""
    differ = [page for page, text in texts.items() if not page.exists() or page.read_text(encoding="utf-8") != text]
    return differ + [page for page in sorted((DOCS / "options").glob("*.md")) if page not in texts]


def pages() -> dict[Path, str]:
    """The text of each page that has lists of options."""
    written = {
        "train": train(),
        "selection": selection(),
        "tables": tables(),
        "predict": predict(),
        "others": others(),
        "methods": methods(),
        "single-methods": single_methods(),
    }
    texts = {DOCS / "options" / f"{name}.md": text for name, text in written.items()}
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if "<!-- options: " in prose(text):
            texts[page] = filled(text, page.name)
    return texts


def prose(text: str) -> str:
    """The text outside code."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


def filled(text: str, page: str) -> str:
    """A page with its blocks filled.

    Raises
    ------
    ValueError : for a block without an end, or of a method that is not there.
    """

    def options_in(match: re.Match[str]) -> str:
        names = [name.strip() for name in match[2].split(",")]
        if unknown := [name for name in names if name not in METHODS]:
            raise ValueError(f"{page}: there is no method {unknown[0]!r}; the methods are {', '.join(METHODS)}")
        return match[1] + block(names) + match[4]

    begun = prose(text).count("<!-- options: ")
    text, blocks = BLOCK.subn(options_in, text)
    if blocks != begun:
        raise ValueError(f"{page}: each line <!-- options: NAMES --> needs a line <!-- end of options --> after it")
    return text


def train() -> str:
    """The options of lsvm train but those of single methods."""
    intro = (
        "Where an option is one of some learning methods, its methods are named. Options of single methods have "
        "[a page of their own](methods.md), and so have those of [tables](tables.md) and of [the selection of "
        "parameters](selection.md). The page about [the command line](../command-line.md#lsvm-train) says how options "
        "work together."
    )
    groups = [group for group in Group if group not in (Group.TABLE, Group.SELECTION, Group.SINGLE, Group.OTHER)]
    return page("Options of lsvm train", intro, *(section(group.value, "train", group) for group in groups))


def selection() -> str:
    """The options of lsvm train about selection, and about what the model promises by held-out rows."""
    intro = "The page about [selection](../selection.md) says what they do. [All others](train.md) have a page, too."
    return page("Options of lsvm train for selection", intro, section(Group.SELECTION.value, "train", Group.SELECTION))


def tables() -> str:
    """The options of lsvm train for tables."""
    intro = "The page about [tables](../tables.md) says how they are read. [All others](train.md) have a page, too."
    return page("Options of lsvm train for tables", intro, section(Group.TABLE.value, "train", Group.TABLE))


def predict() -> str:
    """The options of lsvm predict."""
    intro = "The page about [the command line](../command-line.md#lsvm-predict) says what the command writes."
    return page("Options of lsvm predict", intro, *(section(group.value, "predict", group) for group in Group))


def others() -> str:
    """The options of all other commands. What they share with lsvm train is named alone."""
    known = {param.name: param for param in options("train")}
    parts = []
    for name in COMMANDS:
        if name in ("train", "predict"):
            continue
        params = options(name)
        same = [param.name for param in params if param.name in known and said(param) == said(known[param.name])]
        missing = [known[key] for key in known if key not in same]
        if len(missing) < len(same):
            text = f"All options of `lsvm train` but {listed(map(flag, missing))}."
        else:
            text = f"As of `lsvm train`: {listed(flag(known[key]) for key in same)}."
        others_of = items([param for param in params if param.name not in same])
        parts.append(f"## lsvm {name}\n\n{others_of}{wrapped(text, '- ')}")
    intro = "An option that `lsvm train` has as well is only named here: see [its page](train.md)."
    return page("Options of the other commands", intro, *parts)


def said(option: click.Option) -> tuple[object, ...]:
    """Names and help of an option, by which it is the same in two commands."""
    return (*option.opts, *option.secondary_opts, option.help)


def methods() -> str:
    """The options of each method by name, and those of several methods that are no group of the help."""
    every = method_options.merged(METHODS)
    flags = {str(option.name): flag(option) for option in every}
    lists = "".join(wrapped(f"`{name}`: {listed(flags[key] for key in fields)}.", "- ") for name, fields in OWN.items())
    shared = [option for option in every if group_of(option) == Group.SINGLE and len(having(option)) > 1]
    intro = (
        "A method refuses an option that it does not have. An option is described on one of three pages: those that "
        "kernel methods or linear methods have in common are [options of lsvm train](train.md), those of one method "
        "alone have [their page](single-methods.md), and all other options are below."
    )
    return page(
        "Options of the learning methods",
        intro,
        f"## Methods and their options\n\n{lists}",
        f"## Options of several methods\n\n{items(shared)}",
    )


def single_methods() -> str:
    """The options that one method has alone."""
    every = method_options.merged(METHODS)
    alone = {name: [option for option in every if having(option) == [name]] for name in METHODS}
    intro = "All options that a method has are [listed by method](methods.md#methods-and-their-options)."
    parts = [f"## {name}\n\n{items(given, [name])}" for name, given in alone.items() if given]
    return page("Options of single methods", intro, *parts)


def section(title: str, command: str, group: Group) -> str:
    """The options of a command in one group of its help; empty if there are none."""
    members = [param for param in options(command) if group_of(param) == group]
    return f"## {title}\n\n{items(members)}" if members else ""


def page(title: str, intro: str, *parts: str) -> str:
    """A page of these parts, of which empty ones are left out."""
    return "\n".join([f"# {title}\n\n{NOTE}\n", wrapped(intro), *filter(None, parts)])


if __name__ == "__main__":
    sys.exit(main())
