"""Documents name only files that the repository has: by relative links, to headings too, and by paths in backquotes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOT_OURS = {"build", "demo", "dist"}  # and whatever begins with a dot
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
