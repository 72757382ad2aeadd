"""The decision function of a mixture of linear SVMs, over csrc/mixture.c."""

import numpy as np

from libc.stdint cimport int64_t

from localsvm._core cimport lsvm_ops, ops_at

from localsvm.kernels._kernels import aligned
from localsvm.representations.mixture_screen import Screen


cdef extern from "mixture.h":
    enum: LSVM_MIXTURE_GROUP
    cdef struct lsvm_mixture_screen:
        float offset
    cdef struct lsvm_mixture:
        int64_t components, d
        int full, loss, hard
        const double *mean
        const double *factor
        const double *offset
        const double *weights
        const float *centre
        const float *directions
        const lsvm_mixture_screen *screen
    int64_t lsvm_mixture_stride(int64_t d, int full) nogil
    int64_t lsvm_mixture_scratch(int64_t components, int64_t d) nogil
    void lsvm_mixture_decide(const lsvm_ops *, const lsvm_mixture *, const float *, int64_t, double *, double *) nogil


cdef class Components:
    """K components: log_j = offset_j - 1/2 |A_j (x - mean_j)|^2 and f_j = w_j . x + b_j of rows x.

    Parameters
    ----------
    offset, mean, weights : (K,), (K, d), (K, d + 1) float64
        The bias is the last of the weights.
    factor : (K, d, d) or (K, d) float64
        Lower triangles, or the diagonals of diagonal matrices.
    loss : int
        The loss of `decide`, as csrc/mixture.h numbers them: 0 the hinge, 1 the squared hinge, 2 one of values.
    hard : bool
        The component with the largest log_j decides alone.
    level : int or None
        SIMD level; None for the one in use.
    """
    cdef lsvm_mixture m
    cdef const lsvm_ops *ops
    cdef object keep

    def __init__(self, offset, mean, factor, weights, int loss, bint hard, level=None):
        cdef int64_t K = mean.shape[0], d = mean.shape[1]
        cdef bint full = factor.ndim == 3
        cdef double[::1] a = np.zeros(max(1, K * lsvm_mixture_stride(d, full)))
        cdef const double[::1] o = np.ascontiguousarray(offset, np.float64)
        cdef const double[:, ::1] centres = np.ascontiguousarray(mean, np.float64)
        cdef const double[:, ::1] w = np.ascontiguousarray(weights, np.float64)
        expected = [K, d, d] if full else [K, d]
        if list(factor.shape) != expected or o.shape[0] != K or w.shape[0] != K or w.shape[1] != d + 1:
            raise ValueError("shapes of the components do not fit each other")
        if K < 1 or d < 1:
            raise ValueError("there must be a component and a feature")
        np.asarray(a)[:] = packed(np.asarray(factor, np.float64), LSVM_MIXTURE_GROUP) if full else np.ravel(factor)
        screen = Screen.of(np.asarray(o), np.asarray(centres), np.tril(factor) if full else np.asarray(factor))
        cdef const float[::1] centre = screen.centre
        cdef const float[:, :, ::1] u = interleaved(screen.directions, LSVM_MIXTURE_GROUP)
        cdef const float[:, ::1] parts = screen.parts
        self.ops, self.keep = ops_at(level), (a, o, centres, w, centre, u, parts)
        self.m.components, self.m.d, self.m.full, self.m.loss, self.m.hard = K, d, full, loss, hard
        self.m.mean, self.m.factor, self.m.offset, self.m.weights = &centres[0, 0], &a[0], &o[0], &w[0, 0]
        self.m.centre, self.m.directions = &centre[0], &u[0, 0, 0]
        self.m.screen = <const lsvm_mixture_screen *>&parts[0, 0]

    def decide(self, const float[:, ::1] X):
        """(n,) float64 in [-1, 1] of rows X (n, d): sum_j r_j (exp(-loss(f_j)) - exp(-loss(-f_j))), r_j the share of
        exp(log_j) in their sum. What a row gets depends on that row alone.
        """
        cdef int64_t n = X.shape[0]
        if X.shape[1] != self.m.d:
            raise ValueError("X must have as many columns as the components")
        cdef double[::1] out = np.empty(n)
        cdef double[::1] scratch = aligned((lsvm_mixture_scratch(self.m.components, self.m.d),), np.float64)
        if n:
            with nogil:
                lsvm_mixture_decide(self.ops, &self.m, &X[0, 0], n, &scratch[0], &out[0])
        return np.asarray(out)


def packed(factor, group):
    """The triangles (K, d, d) in the order of mixture.h."""
    d = factor.shape[2]
    parts = []
    for first in range(0, d, group):
        rows = np.tril(factor)[:, first:first + group, :min(first + group, d)]
        wide = np.zeros((len(factor), rows.shape[2], group))
        wide[:, :, :rows.shape[1]] = rows.transpose(0, 2, 1)
        parts.append(wide.reshape(len(factor), -1))
    return np.concatenate(parts, axis=1).ravel()


def interleaved(directions, group):
    """Directions (K, sides, d), a group of them feature by feature: (groups, d, group)."""
    return np.ascontiguousarray(directions.reshape(-1, group, directions.shape[2]).transpose(0, 2, 1))
