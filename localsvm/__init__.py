"""Local support vector machines: cells, a small problem in each, hyper-parameters chosen cell by cell.

from localsvm import L3SVMClassifier, LocalOneClass, LocalSVC, LocalSVR, load
"""

from typing import Any

__version__ = "0.1.0"


def __dir__() -> list[str]:
    return sorted({*globals(), *_public()})


def __getattr__(name: str) -> Any:
    """Import `load` or an estimator on demand, as the programs answer `--help` without scikit-learn."""
    if name == "__all__":
        return _public()
    if name == "load" or name.endswith(("Classifier", "Regressor", "SVC", "SVR", "OneClass")):
        return getattr(_estimators(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _public() -> list[str]:
    return [*_estimators().names(), "load"]


def _estimators() -> Any:
    from importlib import import_module

    return import_module("localsvm.estimators")
