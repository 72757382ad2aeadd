"""Documents name only files and headings that exist, are short, and list options as the commands have them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from develop import write_options

ROOT = Path(__file__).parents[1]
NOT_OURS = {"build", "demo", "dist"}  # and whatever begins with a dot
WIDEST, LONGEST = 120, 150  # characters of a line; lines of a page
PATH = re.compile(r"(?:localsvm|scripts|csrc|tests|docs)/[^\s<>*$]+")


def documents() -> list[Path]:
    """Every Markdown file of the repository."""
    pages = (page.relative_to(ROOT) for page in ROOT.rglob("*.md"))
    return sorted(page for page in pages if not any(p in NOT_OURS or p.startswith(".") for p in page.parts))


def prose(page: Path) -> str:
    """The text outside blocks of code."""
    return re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Ends of links to the page's headings: lower case, no punctuation, hyphens for blanks."""
    headings = re.findall(r"^#+ +(.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_there_are_documents() -> None:
    assert {Path("README.md"), Path("docs/selection.md"), Path("docs/results/vp.md")} <= set(documents())


def is_there(page: Path, link: str) -> bool:
    """True where a link of the page leads to a file, and to a heading of it."""
    if re.match(r"[a-z]+:", link):  # https:, mailto:
        return True
    file, _, anchor = link.partition("#")
    target = (ROOT / page.parent / file).resolve() if file else ROOT / page
    return target.exists() and (not anchor or anchor in anchors(target.relative_to(ROOT)))


def test_links_lead_to_what_is_there() -> None:
    links = [(str(page), link) for page in documents() for link in re.findall(r"\]\(([^)\s]+)\)", prose(page))]
    assert not [pair for pair in links if not is_there(Path(pair[0]), pair[1])]


def test_paths_in_backquotes_are_there() -> None:
    named = [(str(page), code) for page in documents() for code in re.findall(r"`([^`\n]+)`", prose(page))]
    assert not [pair for pair in named if PATH.fullmatch(pair[1]) and not (ROOT / pair[1]).exists()]


def written() -> list[Path]:
    """The documents that are not results, which scripts write."""
    texts = ("*.md", "docs/*.md", "docs/options/*.md")
    return sorted(page.relative_to(ROOT) for pattern in texts for page in ROOT.glob(pattern))


def test_lines_fit_a_screen_and_pages_are_short() -> None:
    pages = {page: (ROOT / page).read_text(encoding="utf-8").splitlines() for page in written()}
    wide = [f"{page}:{i + 1}" for page, lines in pages.items() for i, line in enumerate(lines) if len(line) > WIDEST]
    long = [str(page) for page, lines in pages.items() if page.parts[0] == "docs" and len(lines) > LONGEST]
    assert not wide and not long


def test_options_are_listed_as_the_commands_have_them() -> None:
    outdated = [str(page.relative_to(ROOT)) for page in write_options.stale(write_options.pages())]
    assert not outdated, "run python scripts/develop/write_options.py"


def test_blocks_of_options_are_filled() -> None:
    begin, end = "<!-- options: mkl, svml -->\n", "<!-- end of options -->\n"
    text = write_options.filled(f"# Title\n\n{begin}old\n{end}after\n", "page.md")
    assert text.startswith(f"# Title\n\n{begin}- `-C, --cost VALUES`: ") and text.endswith(f"\n{end}after\n")
    assert "- `--form TEXT`: " in text and "Methods: `mkl`." in text and "old" not in text
    assert write_options.filled(text, "page.md") == text
    with pytest.raises(ValueError, match=r"page.md: there is no method 'nearest'"):
        write_options.filled(f"<!-- options: nearest -->\n{end}", "page.md")
    with pytest.raises(ValueError, match="needs a line <!-- end of options -->"):
        write_options.filled(f"{begin}{begin}{end}", "page.md")
