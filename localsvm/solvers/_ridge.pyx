"""Kernel ridge regression for metrics: values of rows by others, and how their loss changes with the kernel.

Over csrc/ridge.c, where each row is left out by itself, and csrc/holdout.c, where half of the rows are.
"""

import numpy as np

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.stdint cimport int64_t

from localsvm._core cimport address, end_call

from scipy.linalg import cython_blas, cython_lapack

from localsvm.kernels import SQUARES, Kernel
from localsvm.kernels._kernels import Panels, aligned, padded


cdef extern from "lapack.h":
    cdef struct lsvm_lapack:
        void *gemm
        void *syrk
        void *syr2k
        void *potrf
        void *potri
        void *potrs

cdef extern from "ridge.h":
    cdef struct lsvm_ridge:
        int n, outputs, ld
        float ridge
        const float *kernel
        const float *y
        const double *w
        float *inverse
        float *slope
        float *scaled
        float *a
        float *u
        float *au
        double *sums
        double loss, ridge_slope
    int lsvm_ridge_values(const lsvm_lapack *, lsvm_ridge *) nogil
    void lsvm_ridge_slope(const lsvm_lapack *, lsvm_ridge *) nogil
    int lsvm_ridge_left_out(const lsvm_lapack *, lsvm_ridge *, const int64_t *, int, const int64_t *, int,
                            float *) nogil

cdef extern from "holdout.h":
    cdef struct lsvm_holdout:
        int n, t, ld
        float ridge
        float *kernel
        const float *y
        float *factor
        float *a
        float *values
        float *left
        double ridge_slope
    int lsvm_holdout_values(const lsvm_lapack *, lsvm_holdout *) nogil
    void lsvm_holdout_slope(const lsvm_lapack *, lsvm_holdout *, const float *) nogil

cdef lsvm_lapack LAPACK


cdef void *routine(module, str name) except NULL:
    """A routine of scipy's, found when this is imported: so the build does not need scipy."""
    capsule = module.__pyx_capi__[name]
    return PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))


LAPACK.gemm = routine(cython_blas, "sgemm")
LAPACK.syrk = routine(cython_blas, "ssyrk")
LAPACK.syr2k = routine(cython_blas, "ssyr2k")
LAPACK.potrf = routine(cython_lapack, "spotrf")
LAPACK.potri = routine(cython_lapack, "spotri")
LAPACK.potrs = routine(cython_lapack, "spotrs")


cdef class RidgeLoss:
    """The leave-one-out loss of up to `most` rows and so many outputs, by the kernel exp(-|z_i - z_j|^2); see csrc/ridge.h.

    With the base SUMS instead of SQUARES the kernel is exp(-sum_k |z_ik - z_jk|). The loss is that of classes. Its arrays
    serve call after call, of one thread at a time: to make them anew would take half of the time of a call.

    Attributes
    ----------
    loss, ridge_slope : float, of the last call.
    """
    cdef lsvm_ridge m
    cdef int most
    cdef object rows, kernel, arrays, base
    cdef object _slope, _sums, _a, _u, _inverse, _y

    def __init__(self, int most, int outputs, base=SQUARES):
        if most < 1 or outputs < 1:
            raise ValueError("the rows and outputs must be positive")
        size, self.base, self.most = padded(most), base, most
        self.m.n, self.m.outputs, self.m.ld = most, outputs, size
        self.kernel, self._inverse, self._slope, scaled = (aligned((most, size), np.float32) for _ in range(4))
        self._a, self._u, au = (np.zeros((most, outputs), np.float32) for _ in range(3))
        self._sums = np.zeros(most)
        self.arrays = (scaled, au)
        self.m.kernel = <const float *>address(self.kernel)
        self.m.inverse = <float *>address(self._inverse)
        self.m.slope = <float *>address(self._slope)
        self.m.scaled = <float *>address(scaled)
        self.m.a = <float *>address(self._a)
        self.m.u = <float *>address(self._u)
        self.m.au = <float *>address(au)
        self.m.sums = <double *>address(self._sums)

    @property
    def loss(self) -> float:
        return self.m.loss

    @property
    def ridge_slope(self) -> float:
        return self.m.ridge_slope

    def values(self, Z, Y, w, float ridge) -> np.ndarray:
        """(n, outputs) float32 leave-one-out values; sets `loss`. Arguments and errors as in `gradient`."""
        self._call(Z, Y, w, ridge)
        return Y - self._a[: self.m.n] / np.diagonal(self._inverse)[: self.m.n, None]

    def left_out(self, groups) -> list:
        """(k, outputs) float32 values of each group of k rows of the last call, by the rows that are not of the group.

        groups : (k,) int64 each, the rows in any order. Errors as in `gradient`.
        """
        cdef int status
        cdef float[:, ::1] out
        cdef int64_t[::1] rows, others
        found = []
        for group in groups:
            rows = np.array(group, np.int64)
            others = np.delete(np.arange(self.m.n, dtype=np.int64), group)
            out = np.zeros((len(rows), self.m.outputs), np.float32)
            if len(rows) and len(others):
                with nogil:
                    status = lsvm_ridge_left_out(&LAPACK, &self.m, &rows[0], <int>rows.shape[0], &others[0],
                                                 <int>others.shape[0], &out[0, 0])
                end_call(status)
            found.append(np.asarray(out))
        return found

    def gradient(self, Z, Y, w, float ridge) -> tuple:
        """W (n, n) float32 with W_ij = dloss/dK_ij K_ij and 0 on the diagonal, as K_ii is 1 wherever the rows are; a
        view that the next call overwrites. And (n,) float64 W 1. Sets `loss` and `ridge_slope`.

        Parameters
        ----------
        Z : (n, d) float32 rows.
        Y : (n, outputs) float32, -1 or +1. Values, too, may be left out, but have no gradient.
        w : (n,) float64 from 0, the share of each row in the loss.
        ridge : positive.

        Raises ArithmeticError where K + ridge I is not positive definite in float32.
        """
        self._call(Z, Y, w, ridge)
        with nogil:
            lsvm_ridge_slope(&LAPACK, &self.m)
        return self._slope[: self.m.n, : self.m.n], self._sums[: self.m.n]

    cdef _call(self, Z, Y, w, float ridge):
        cdef int status
        if w.shape != (Z.shape[0],):
            raise ValueError("w must have n rows")
        self.fill(Z, Y, ridge)
        w = np.ascontiguousarray(w, np.float64)
        self.m.w = <const double *>address(w)
        with nogil:
            status = lsvm_ridge_values(&LAPACK, &self.m)
        end_call(status)

    def fill(self, Z, Y, float ridge) -> None:
        """Take the kernel matrix, Y and the ridge, which is all that `left_out` needs; arguments as in `gradient`."""
        if not 0 < Z.shape[0] <= self.most or Y.shape != (Z.shape[0], self.m.outputs):
            raise ValueError("Z and Y must have n rows, at most as many as there is room for, Y one column an output")
        self.m.n = Z.shape[0]
        self._y = np.ascontiguousarray(Y, np.float32)
        self.m.y, self.m.ridge = <const float *>address(self._y), ridge
        fill(Z, self.m.n, self.base, self.kernel)


cdef class HeldOut:
    """Kernel ridge regression of the first t of n rows, which gives values to the others, by the kernel of `RidgeLoss`.

    Its arrays serve call after call, of one thread at a time; see csrc/holdout.h.

    Attributes
    ----------
    ridge_slope : float, the derivative of the loss by the ridge, of the last call of `slope`.
    """
    cdef lsvm_holdout h
    cdef object kernel, base, factor
    cdef object _a, _values, _left, _y

    def __init__(self, int n, int t, base=SQUARES):
        if not 0 < t < n:
            raise ValueError("some rows must be held out, and others not")
        size, self.base = padded(t), base
        self.h.n, self.h.t, self.h.ld = n, t, size
        self.kernel, self.factor = aligned((n, size), np.float32), aligned((t, size), np.float32)
        self._a, self._values, self._left = (np.zeros(m, np.float32) for m in (t, n - t, n))
        self.h.kernel, self.h.factor = <float *>address(self.kernel), <float *>address(self.factor)
        self.h.a, self.h.values = <float *>address(self._a), <float *>address(self._values)
        self.h.left = <float *>address(self._left)

    @property
    def ridge_slope(self) -> float:
        return self.h.ridge_slope

    def values(self, Z, y, float ridge) -> np.ndarray:
        """Values (n - t,) float32 of the rows behind the first t; a view that the next call overwrites.

        Parameters
        ----------
        Z : (n, d) float32 rows.
        y : (t,) float32.
        ridge : positive.

        Raises ArithmeticError where K + ridge I is not positive definite in float32.
        """
        cdef int status
        if Z.shape[0] != self.h.n or y.shape != (self.h.t,):
            raise ValueError("Z must have n rows, and y the first t")
        self._y = np.ascontiguousarray(y, np.float32)
        self.h.y, self.h.ridge = <const float *>address(self._y), ridge
        fill(Z, self.h.t, self.base, self.kernel)
        with nogil:
            status = lsvm_holdout_values(&LAPACK, &self.h)
        end_call(status)
        return self._values

    def slope(self, const float[::1] by_value) -> tuple:
        """The derivative of a loss by the kernel of the rows with the first t, `left right'`, and that kernel.

        They are (n,), (n, t) and (t,) float32: left, kernel, right. The kernel of a row with itself does not change, and
        is 0 here. All are views that the next call overwrites.

        by_value : (n - t,) the derivative by the values of the last call.
        """
        if by_value.shape[0] != self.h.n - self.h.t:
            raise ValueError("there must be a derivative for each value")
        with nogil:
            lsvm_holdout_slope(&LAPACK, &self.h, &by_value[0])
        return self._left, self.kernel[:, : self.h.t], self._a


cdef fill(Z, int64_t t, base, kernel):
    """Write the kernel of rows Z with the first t of them."""
    Z = np.ascontiguousarray(Z, np.float32)
    panels = Panels(Z[:t], base)
    panels.kernel_matrix(Kernel("gaussian" if base == SQUARES else "manhattan"), Z, kernel, panels.norms_of(Z))
