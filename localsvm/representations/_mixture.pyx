"""Densities and linear functions of a mixture's components, over csrc/mixture.c."""

import numpy as np

from libc.stdint cimport int64_t

from localsvm._core cimport lsvm_ops, ops_at

from localsvm.kernels._kernels import aligned


cdef extern from "mixture.h":
    enum: LSVM_MIXTURE_GROUP
    enum: LSVM_MIXTURE_ROWS
    cdef struct lsvm_mixture:
        int64_t components, d
        int full
        const double *mean
        const double *factor
        const double *offset
        const double *weights
    int64_t lsvm_mixture_stride(int64_t d, int full) nogil
    void lsvm_mixture_values(const lsvm_ops *, const lsvm_mixture *, const float *, int64_t, double *, double *,
                             double *) nogil


cdef class Components:
    """K components: log_j = offset_j - 1/2 |A_j (x - mean_j)|^2 and f_j = w_j . x + b_j of rows x.

    Parameters
    ----------
    offset, mean, weights : (K,), (K, d), (K, d + 1) float64
        The bias is the last of the weights.
    factor : (K, d, d) or (K, d) float64
        Lower triangles, or the diagonals of diagonal matrices.
    level : int or None
        SIMD level; None for the one in use.
    """
    cdef lsvm_mixture m
    cdef const lsvm_ops *ops
    cdef object keep

    def __init__(self, offset, mean, factor, weights, level=None):
        cdef int64_t K = mean.shape[0], d = mean.shape[1]
        cdef bint full = factor.ndim == 3
        cdef double[::1] a = np.zeros(max(1, K * lsvm_mixture_stride(d, full)))
        cdef const double[::1] o = np.ascontiguousarray(offset, np.float64)
        cdef const double[:, ::1] centre = np.ascontiguousarray(mean, np.float64)
        cdef const double[:, ::1] w = np.ascontiguousarray(weights, np.float64)
        expected = [K, d, d] if full else [K, d]
        if list(factor.shape) != expected or o.shape[0] != K or w.shape[0] != K or w.shape[1] != d + 1:
            raise ValueError("shapes of the components do not fit each other")
        if K < 1 or d < 1:
            raise ValueError("there must be a component and a feature")
        np.asarray(a)[:] = packed(np.asarray(factor, np.float64), LSVM_MIXTURE_GROUP) if full else np.ravel(factor)
        self.ops, self.keep = ops_at(level), (a, o, centre, w)
        self.m.components, self.m.d, self.m.full = K, d, full
        self.m.mean, self.m.factor, self.m.offset, self.m.weights = &centre[0, 0], &a[0], &o[0], &w[0, 0]

    def values(self, const float[:, ::1] X):
        """(logs, f), both (n, K) float64, of rows X (n, d). What a row gets depends on that row alone."""
        cdef int64_t n = X.shape[0]
        if X.shape[1] != self.m.d:
            raise ValueError("X must have as many columns as the components")
        cdef double[:, ::1] logs = np.empty((n, self.m.components))
        cdef double[:, ::1] f = np.empty((n, self.m.components))
        cdef double[:, ::1] scratch = aligned((2 * self.m.d, LSVM_MIXTURE_ROWS), np.float64)
        if n:
            with nogil:
                lsvm_mixture_values(self.ops, &self.m, &X[0, 0], n, &scratch[0, 0], &logs[0, 0], &f[0, 0])
        return np.asarray(logs), np.asarray(f)


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
