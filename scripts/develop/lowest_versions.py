#!/usr/bin/env python3
"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

    python scripts/develop/lowest_versions.py > constraints.txt

`make test-lowest` runs the tests with them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
INDIRECT = ["pyparsing==3.1.0"]  # later ones warn of what matplotlib 3.9 does, and warnings are errors in the tests
LEAST = re.compile(r"([\w.-]+)\s*(?:>=|==)\s*([\w.]+)")


def constraints() -> list[str]:
    """NAME==VERSION of each dependency, those of the tests included."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    matches = [LEAST.fullmatch(one.strip()) for one in needed]
    unbounded = [one for one, match in zip(needed, matches, strict=True) if match is None]
    if unbounded:
        sys.exit(f"error: {', '.join(unbounded)}: there is no lowest version; write NAME>=VERSION in {PROJECT.name}")
    return INDIRECT + [f"{match[1]}=={match[2]}" for match in matches if match]


if __name__ == "__main__":
    print("\n".join(constraints()))
