"""Classifiers for scikit-learn: `LocalSVC`, and one for each other method, made from its fields when first imported.

from localsvm import L3SVMClassifier, LocalSVC
"""

from __future__ import annotations

from localsvm.estimators.classifier import LocalClassifier, LocalSVC
from localsvm.methods import methods

__all__ = ["LocalClassifier", "LocalSVC"]  # and what `names` gives: the methods of plugins are known only when loaded


def names() -> list[str]:
    """The classes of this module, with one for each method."""
    return sorted({*__all__, *(f"{method.__name__}Classifier" for method in methods().values())})


def __dir__() -> list[str]:
    return names()


def __getattr__(name: str) -> type[LocalClassifier]:
    if name.startswith("__"):  # the import machinery asks for some: no reason to load all methods
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = {f"{method.__name__}Classifier": method for method in methods().values()}
    if name not in found:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    about = f"The method {found[name].name!r}; see LocalClassifier."
    own = {"method": found[name], "__doc__": about, "__module__": __name__}
    made = type(name, (LocalClassifier,), own)
    globals()[name] = made  # so that it is made once, and pickle finds it
    return made
