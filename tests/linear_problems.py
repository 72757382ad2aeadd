"""The problems of the linear local methods as their papers write them, minimised by scipy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from localsvm.methods.linear.linear import LinearSVM
from localsvm.methods.linear.method import LinearMethod
from localsvm.methods.locally_linear.csvm import ClusteredSVM
from localsvm.methods.locally_linear.kmeans_svm import KMeansSVM
from localsvm.methods.locally_linear.l3 import L3SVM
from localsvm.methods.locally_linear.llsvm import LocallyLinearSVM

C = 0.7
# decision values and penalty as functions of the parameters, and the number of parameters
Problem = tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], float], int]


def nearest(X: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return np.square(X[:, None, :].astype(np.float64) - centres).sum(axis=2)


def least(objective: Callable[[np.ndarray], float], size: int) -> np.ndarray:
    """Minimiser (size,) of a smooth convex objective."""
    options = {"maxiter": 5000, "maxfun": 10**6, "ftol": 1e-15}
    return np.asarray(minimize(objective, np.zeros(size), method="L-BFGS-B", options=options).x)


def written_out(method: LinearMethod, X: np.ndarray, y: np.ndarray, state: dict[str, Any]) -> np.ndarray:
    """Decision values of the method's problem with the squared hinge, as its paper writes it, by scipy."""
    X = X.astype(np.float64)

    def loss(f: np.ndarray) -> float:
        return float(C * np.square(np.maximum(0, 1 - y * f)).sum())

    problems = {
        LinearSVM: linear_problem,
        ClusteredSVM: clustered_problem,
        LocallyLinearSVM: mixed_problem,
        L3SVM: projected_problem,
        KMeansSVM: separate_problem,
    }
    decisions, penalty, size = problems[type(method)](method, X, state)
    return decisions(least(lambda v: penalty(v) + loss(decisions(v)), size))


def half_squares(v: np.ndarray) -> float:
    return 0.5 * float(v @ v)


def linear_problem(method: LinearSVM, X: np.ndarray, state: dict[str, Any]) -> Problem:
    return lambda v: X @ v[:-1] + v[-1], half_squares, X.shape[1] + 1


def clustered_problem(method: ClusteredSVM, X: np.ndarray, state: dict[str, Any]) -> Problem:
    """Gu and Han's problem in w, w_1 .. w_k and b."""
    (k, d), of = state["centres"].shape, nearest(X, state["centres"]).argmin(axis=1)

    def decisions(v: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", X, v[d:-1].reshape(k, d)[of]) + v[-1]

    def penalty(v: np.ndarray) -> float:
        apart = v[d:-1].reshape(k, d) - v[:d]
        return 0.5 * float(4.0 * v[:d] @ v[:d] + np.vdot(apart, apart) + v[-1] ** 2)

    return decisions, penalty, d + k * d + 1


def mixed_problem(method: LocallyLinearSVM, X: np.ndarray, state: dict[str, Any]) -> Problem:
    """A linear function for each centre, mixed by the inverse distances to the nearest centres."""
    k, d = state["centres"].shape
    distances = nearest(X, state["centres"])
    near = np.argsort(distances, axis=1)[:, : int(method.neighbours[0])]
    gamma = np.zeros_like(distances)
    np.put_along_axis(gamma, near, 1 / np.take_along_axis(distances, near, axis=1), axis=1)
    gamma /= gamma.sum(axis=1, keepdims=True)

    def decisions(v: np.ndarray) -> np.ndarray:
        W = v.reshape(k, d + 1)
        return np.einsum("ik,ik->i", gamma, X @ W[:, :d].T + W[:, d])

    return decisions, half_squares, k * (d + 1)


def projected_problem(method: L3SVM, X: np.ndarray, state: dict[str, Any]) -> Problem:
    """A function linear in the similarities to the landmarks, with weights for each cluster and one bias."""
    k, of = len(state["centres"]), nearest(X, state["centres"]).argmin(axis=1)
    points = state["landmarks"].astype(np.float64)
    mu = X @ points.T if method.projection == "linear" else np.exp(-0.3 * nearest(X, points))

    def decisions(v: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", mu, v[:-1].reshape(k, -1)[of]) + v[-1]

    return decisions, half_squares, k * mu.shape[1] + 1


def separate_problem(method: KMeansSVM, X: np.ndarray, state: dict[str, Any]) -> Problem:
    """A linear SVM in each cluster."""
    (k, d), of = state["centres"].shape, nearest(X, state["centres"]).argmin(axis=1)

    def decisions(v: np.ndarray) -> np.ndarray:
        W = v.reshape(k, d + 1)[of]
        return np.einsum("ij,ij->i", X, W[:, :d]) + W[:, d]

    return decisions, half_squares, k * (d + 1)
