"""Values of locally linear functions with a map for each feature, over csrc/local_maps.c."""
import numpy as np

from libc.stdint cimport int64_t

from localsvm._core cimport LSVM_ALIGN, LSVM_PAD, lsvm_ops, lsvm_rows, ops_at

from localsvm.kernels import PRODUCTS
from localsvm.kernels._kernels import Panels, aligned


cdef extern from "local_maps.h":
    cdef struct lsvm_local_maps:
        int kind
        int64_t panels, d
        const float *anchors
        const float *weights
        const float *gamma
    void lsvm_local_values(const lsvm_ops *ops, const lsvm_rows *a, const lsvm_local_maps *maps, float *out, int64_t ldo) nogil

MAPS = ("exponential", "gaussian", "linear", "square", "plain")
cdef double LOG2_E = 1.4426950408889634


cdef class LocalMaps:
    """Functions sum_j h(|x_j - c_j|) (x_j - c_j) w_j of rows x, packed for one SIMD level.

    Parameters
    ----------
    kind : str
        The map h, one of MAPS: exp(-g r), exp(-g r^2), max(0, 1 - g r), max(0, 1 - g r^2), 1.
    gammas : (functions,) float32
        g of each.
    anchors, weights : (functions, d) float32, C-order
        c and w of each.
    level : int or None
        SIMD level; None for the one in use.

    Attributes
    ----------
    size : int
        The number of functions with padding.
    """
    cdef const lsvm_ops *ops
    cdef lsvm_local_maps maps
    cdef object kept
    cdef readonly int64_t size

    def __init__(self, kind, const float[::1] gammas, const float[:, ::1] anchors, const float[:, ::1] weights, level=None):
        cdef int64_t n = anchors.shape[0], d = anchors.shape[1]
        cdef float[::1] c, w, g
        if gammas.shape[0] != n or weights.shape[0] != n or weights.shape[1] != d:
            raise ValueError("gammas, anchors and weights must be of as many functions, and of as many features")
        self.ops = ops_at(level)
        packed = Panels(anchors, PRODUCTS, level)
        self.size = packed.size
        g = aligned((max(1, self.size),), np.float32)
        self.kept = (packed.packed, Panels(weights, PRODUCTS, level).packed, np.asarray(g))
        self.kept[2][:] = 0
        self.kept[2][:n] = np.multiply(gammas, LOG2_E if kind in ("exponential", "gaussian") else 1.0)
        c, w = self.kept[:2]
        self.maps = lsvm_local_maps(MAPS.index(kind), self.size // packed.width, d, &c[0], &w[0], &g[0])

    def values(self, const float[:, ::1] X, float[:, ::1] out) -> None:
        """out[i, m]: the value of function m for row i, float32; 0 in the padding.

        out : aligned, with at least as many rows as X and at least `size` columns, a multiple of LSVM_PAD.
        """
        cdef lsvm_rows rows
        if X.shape[1] != self.maps.d or out.shape[0] < X.shape[0] or out.shape[1] < self.size or out.shape[1] % LSVM_PAD:
            raise ValueError("shapes of X and out do not fit the functions")
        if X.shape[0] == 0 or self.size == 0:
            return
        if <size_t>&out[0, 0] % LSVM_ALIGN:
            raise ValueError("out must be aligned")
        rows = lsvm_rows(X.shape[0], X.shape[1], NULL, X.shape[1], NULL, NULL)
        if X.shape[1]:
            rows.values = &X[0, 0]
        with nogil:
            lsvm_local_values(self.ops, &rows, &self.maps, &out[0, 0], out.shape[1])
