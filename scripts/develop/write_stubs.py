"""Write localsvm/__init__.pyi: the classifiers, whose parameters are made when they are imported, for mypy and editors.

    python scripts/develop/write_stubs.py [--check]

With --check, nothing is written: it exits with 1 if the file is not up to date.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import localsvm
import localsvm.estimators as estimators
from localsvm.estimators.parameters import COMMON, defaults
from localsvm.methods.base import Method

STUB = Path(__file__).parents[2] / "localsvm" / "__init__.pyi"
HEAD = '''"""Written by scripts/develop/write_stubs.py from the fields of the methods."""

import os
from collections.abc import Sequence
from typing import Any

from localsvm.estimators.base import LocalEstimator
from localsvm.estimators.classifier import LocalClassifier
from localsvm.estimators.one_class import LocalDetector
from localsvm.estimators.regressor import LocalRegressor

__version__: str

def load(path: str | os.PathLike[str]) -> LocalEstimator: ...
'''
KINDS = {
    "str": "str", "int": "int", "bool": "bool", "str or None": "str | None", "int or None": "int | None",
    "float or None": "float | None",
    "int or str": "int | str", 'dict, "balanced" or None': "dict[Any, float] | str | None",
    "str, list or None": "str | Sequence[Any] | None", "int, RandomState or None": "Any",
}  # fmt: skip
VALUES = "float | str | Sequence[float] | None"  # of a parameter from which cross-validation may choose


def written() -> str:
    """Text of the stub."""
    public = "".join(f'    "{name}",\n' for name in localsvm.__all__)
    parts = [HEAD, f"__all__ = [\n{public}]\n"]
    for name in estimators.names():
        made = getattr(estimators, name)
        method: type[Method] = made.method
        own = {field.name: field for field in method.__dataclass_fields__.values()}  # type: ignore[attr-defined]
        base = made.__mro__[1].__name__
        lines = [f"class {name}({base}):", "    def __init__(", "        self,"]
        for parameter in defaults(method, made.kind):
            if parameter in COMMON:
                kind = KINDS[COMMON[parameter].kind]
            else:
                default = own[parameter].default
                kind = VALUES if isinstance(default, tuple) else type(default).__name__
            lines.append(f"        {parameter}: {kind} = ...,")
        lines += ["        *,", f"        C: {VALUES} = ...,"] if "cost" in own else []
        parts.append("\n".join([*lines, "    ) -> None: ...", ""]))
    return "\n".join(parts)


def main() -> int:
    """Write the stub, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare alone")
    if not parser.parse_args().check:
        STUB.write_text(written())
        return 0
    return int(STUB.read_text() != written())


if __name__ == "__main__":
    sys.exit(main())
