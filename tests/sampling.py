"""Which of many like cases the usual run of the tests tries; with LOCALSVM_WHOLE=1 it tries every one."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T, U = TypeVar("T"), TypeVar("U")
WHOLE = os.environ.get("LOCALSVM_WHOLE") == "1"


def some(cases: Sequence[T], share: int) -> list[T]:
    """One case in `share`, always the same ones, in their order."""
    chosen = random.Random(share).sample(range(len(cases)), -(-len(cases) // share))
    return list(cases) if WHOLE else [cases[i] for i in sorted(chosen)]


def each_other(cases: Sequence[T], others: Sequence[U], share: int) -> list[tuple[T, U]]:
    """One pair in `share`, so spread that each case and each of the others occurs."""
    return [
        (case, other) for i, case in enumerate(cases) for j, other in enumerate(others) if WHOLE or (i + j) % share == 0
    ]
