"""Which of many like cases the fast tests try: the others have the mark `whole`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

WHOLE = pytest.mark.whole


def some(cases: Sequence[Any], share: int) -> list[Any]:
    """All cases in their order, of which the fast tests try one in `share`, always the same ones."""
    fast = set(random.Random(share).sample(range(len(cases)), -(-len(cases) // share)))
    return [pytest.param(case, marks=() if i in fast else WHOLE) for i, case in enumerate(cases)]


def each_other(cases: Sequence[Any], others: Sequence[Any], share: int) -> list[Any]:
    """All pairs, of which the fast tests try one in `share`, so spread that each case and each of the others occurs."""
    return [
        pytest.param(case, other, marks=() if (i + j) % share == 0 else WHOLE)
        for i, case in enumerate(cases)
        for j, other in enumerate(others)
    ]


def slow(*values: Any) -> Any:
    """A case that only `make test-all` tries."""
    return pytest.param(*values, marks=WHOLE)
