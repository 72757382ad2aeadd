"""The peers, each imported as it has to be. An import that fails ends the process with its message: it is reported.

liquid_svm().mcSVM(X, y, threads=1)
svc("scikit-learn-intelex")(C=1.0, gamma=0.1).fit(X, y)
"""

from __future__ import annotations

import sys
import sysconfig
import types
from collections.abc import Callable
from typing import Any

import numpy as np

CACHE_MB = 1000
VORONOI_2000 = 4  # liquidSVM's partition_choice: Voronoi cells of at most about 2 000 rows


def liquid_svm() -> Any:
    """The module liquidSVM. It asks for a variable of Python 3.3 and before and a module that setuptools dropped."""
    sysconfig.get_config_vars()["SO"] = sysconfig.get_config_var("EXT_SUFFIX")
    sys.modules.setdefault("pkg_resources", types.ModuleType("pkg_resources"))
    import liquidSVM

    return liquidSVM


def liquid_error(model: Any, X: Any, y: Any) -> float:
    """Share of wrong labels of a liquidSVM model, in per cent; it predicts only where it is given labels to compare."""
    labels, _ = model.test(np.asarray(X, np.float64), np.asarray(y, np.float64))
    return 100 * float((np.asarray(labels).reshape(len(y), -1)[:, 0] != y).mean())


def svc(peer: str) -> Callable[..., Any]:
    """The class, or what makes one, of a peer's C-SVM with LIBSVM's parameters."""
    if peer == "scikit-learn-intelex":
        from sklearnex.svm import SVC

        return lambda **options: SVC(cache_size=CACHE_MB, **options)
    from sklearn.svm import SVC as Plain

    return lambda **options: Plain(cache_size=CACHE_MB, **options)


def rows_for(peer: str, X: Any, y: Any) -> tuple[Any, Any]:
    """Rows and labels as the peer is fastest with: float32 for scikit-learn-intelex, which follows their type."""
    kind = np.float32 if peer == "scikit-learn-intelex" else np.float64
    return np.ascontiguousarray(X, kind), np.ascontiguousarray(y, kind)


def support(model: Any) -> int:
    """Number of support vectors."""
    return int(np.sum(model.n_support_))
