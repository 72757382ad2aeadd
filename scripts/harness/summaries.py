"""The page of a comparison: medians over the rounds, and ratios to ours within each round.

summary_table(summaries(turns), [("error %", fixed("error", 2))])
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.comparison import OURS, Case, Comparison, Turn
from harness.tables import number, table, thousands

Column = tuple[str, Callable[["Summary"], str]]


@dataclass(frozen=True)
class Summary:
    """All turns of a contestant in one case.

    figures: medians, of errors the mean. ratio: its seconds over ours, None without both.
    """

    case: Case
    contestant: str
    status: str
    message: str
    runs: int
    figures: dict[str, Any]
    ratio: float | None


def summaries(turns: list[Turn], baseline: str = OURS) -> list[Summary]:
    """One for each case and contestant, in the order of their first turns, cases together."""
    by_case: dict[str, dict[str, list[Turn]]] = {}
    for turn in turns:
        by_case.setdefault(turn.case, {}).setdefault(turn.contestant, []).append(turn)
    return [
        _summary(Case.from_key(case), name, turns, contestants.get(baseline, []))
        for case, contestants in by_case.items()
        for name, turns in contestants.items()
    ]


def _summary(case: Case, name: str, turns: list[Turn], ours: list[Turn]) -> Summary:
    good = [t for t in turns if t.status == "ok"]
    bad = next((t for t in turns if t.status != "ok"), None)
    status, message = (bad.status, bad.message) if bad else ("ok", "")
    return Summary(case, name, status, message, len(good), medians([t.figures for t in good]), ratio(good, ours))


def medians(figures: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each number that all have, the mean of errors; of anything else the first."""
    names = [name for name in (figures[0] if figures else {}) if all(name in f for f in figures)]
    return {name: (_mean if name.startswith("error") else _median)([f[name] for f in figures]) for name in names}


def _mean(values: list[Any]) -> Any:
    return statistics.mean(values) if all(v is not None for v in values) else None


def _median(values: list[Any]) -> Any:
    if isinstance(values[0], dict):
        return medians(values)
    plain = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    return statistics.median(values) if plain else values[0]


def ratio(theirs: list[Turn], ours: list[Turn], figure: str = "wall") -> float | None:
    """The median over the rounds of theirs over ours, each within its round; without a common round, of the medians."""
    a, b = (
        {t.repeat: t.figures[figure] for t in turns if t.status == "ok" and t.figures.get(figure)}
        for turns in (theirs, ours)
    )
    if not a or not b:
        return None
    common = [a[repeat] / b[repeat] for repeat in a if repeat in b]
    return statistics.median(common) if common else statistics.median(a.values()) / statistics.median(b.values())


def fixed(figure: str, decimals: int) -> Callable[[Summary], str]:
    """A column of a figure with so many decimals."""
    return lambda s: f"{s.figures[figure]:.{decimals}f}" if s.figures.get(figure) is not None else ""


def whole(figure: str) -> Callable[[Summary], str]:
    """A column of a whole number."""
    return lambda s: thousands(round(s.figures[figure])) if s.figures.get(figure) is not None else ""


def megabytes(figure: str = "peak") -> Callable[[Summary], str]:
    """A column of bytes, in MiB."""
    return lambda s: thousands(round(s.figures[figure] / 2**20)) if s.figures.get(figure) else ""


WHO: list[Column] = [
    ("set", lambda s: s.case.set),
    ("rows", lambda s: thousands(s.case.rows) if s.case.rows else "all"),
    ("cores", lambda s: str(s.case.cores)),
]
READING: list[Column] = [  # of the text that was read, in units of 1e6 bytes
    ("MB of text", lambda s: f"{s.figures['text'] / 1e6:.0f}" if "text" in s.figures else ""),
    ("MB/s", lambda s: f"{s.figures['text'] / 1e6 / s.figures['wall']:.0f}" if "text" in s.figures else ""),
]
TIME: list[Column] = [
    ("contestant", lambda s: s.contestant),
    ("seconds", lambda s: number(s.figures["wall"]) if s.figures else s.status),
    ("times localsvm's", lambda s: number(s.ratio)),
    ("processor s", lambda s: number(s.figures.get("cpu"))),
    ("runs", lambda s: str(s.runs)),
]
NOTE: list[Column] = [("note", lambda s: s.message.replace("|", "/"))]


def summary_table(rows: list[Summary], more: list[Column], parameters: list[Column] | None = None) -> list[str]:
    """A row for each summary: who, the case's own parameters, time, and the comparison's figures."""
    columns = [*WHO, *(parameters or []), *TIME, *more, *NOTE]
    return table([head for head, _ in columns], ([text(s) for _, text in columns] for s in rows))


def page(comparison: Comparison, turns: list[Turn]) -> str:
    """The whole Markdown page, a section for each machine (and SIMD level)."""
    lines = [f"# {comparison.title}", "", *comparison.introduction, "", *_written_by(comparison), ""]
    for machine in _different_machines(turns):
        mine = [turn for turn in turns if turn.machine == machine]
        commits = ", ".join(dict.fromkeys(turn.commit or "" for turn in mine))
        what = f"{machine['cpu']}, {machine['cores']} cores, SIMD level {machine['simd']}, {machine['memory_gib']} GiB"
        lines += [f"## {what}", "", f"localsvm at {commits}.", "", *comparison.section(mine), ""]
    return "\n".join(lines).rstrip() + "\n"


def _written_by(comparison: Comparison) -> list[str]:
    """Paragraph on where the figures come from."""
    name = comparison.name
    return [
        f"Written by `make {comparison.target}=...` (`scripts/bench/{name}.py`) from `{name}.jsonl`. Seconds are",
        "medians over interleaved rounds, errors means; every run is a process of its own with as many threads as",
        "cores named. Imports and the making of the data are not in them. Ratios are taken within each round; where a",
        "run takes over a minute there is one round. Contestants that failed, were stopped or were not started are",
        "listed with the reason.",
    ]


def _different_machines(turns: list[Turn]) -> list[dict[str, Any]]:
    texts = dict.fromkeys(json.dumps(turn.machine, sort_keys=True) for turn in turns)
    return [json.loads(text) for text in texts]
