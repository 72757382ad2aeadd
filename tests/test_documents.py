"""Documents name only files that the repository has: by relative links, to headings too, and by paths in backquotes.
They are short, and list options as the commands have them.
"""

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
    found = (page.relative_to(ROOT) for page in ROOT.rglob("*.md"))
    return sorted(page for page in found if not any(p in NOT_OURS or p.startswith(".") for p in page.parts))


def prose(page: Path) -> str:
    """The text outside blocks of code."""
    return re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What links to the page's headings end in: lower case, no punctuation, hyphens for blanks."""
    headings = re.findall(r"^#+ +(.*)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_there_are_documents() -> None:
    assert {Path("README.md"), Path("docs/selection.md"), Path("docs/results/vp.md")} <= set(documents())


@pytest.mark.parametrize("page", documents(), ids=str)
def test_links_lead_to_what_is_there(page: Path) -> None:
    missing = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", link):  # https:, mailto:
            continue
        file, _, anchor = link.partition("#")
        target = (ROOT / page.parent / file).resolve() if file else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target.relative_to(ROOT))):
            missing.append(link)
    assert not missing


@pytest.mark.parametrize("page", documents(), ids=str)
def test_paths_in_backquotes_are_there(page: Path) -> None:
    named = [code for code in re.findall(r"`([^`\n]+)`", prose(page)) if PATH.fullmatch(code)]
    assert not [path for path in named if not (ROOT / path).exists()]


def written() -> list[Path]:
    """The documents that are not results, which scripts write."""
    texts = ("*.md", "docs/*.md", "docs/options/*.md")
    return sorted(page.relative_to(ROOT) for pattern in texts for page in ROOT.glob(pattern))


@pytest.mark.parametrize("page", written(), ids=str)
def test_lines_fit_a_screen(page: Path) -> None:
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    assert not [f"line {i + 1} has {len(line)} characters" for i, line in enumerate(lines) if len(line) > WIDEST]


@pytest.mark.parametrize("page", [page for page in written() if page.parts[0] == "docs"], ids=str)
def test_pages_are_short(page: Path) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= LONGEST


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
