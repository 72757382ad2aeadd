"""Names by which a metric can be asked for."""

from __future__ import annotations

import re

from localsvm.errors import OptionError
from localsvm.naming import opt

EUCLIDEAN = "none"
METRICS = (EUCLIDEAN, "auto", "diag", "full", "nca", "itml", "lmnn")
RANK = re.compile(r"rank:([1-9][0-9]{0,8})")


def check_metric(asked: str) -> int | None:
    """The rank of "rank:R", None for another metric; OptionError for a name of none."""
    match = RANK.fullmatch(asked)
    if asked not in METRICS and not match:
        raise OptionError(f"{opt.metric(asked)}: choose one of {', '.join(METRICS)}, or rank:R with a whole number R")
    return int(match[1]) if match else None
