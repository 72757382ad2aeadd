"""Kernel ridge regression for metrics: values of rows by others, and how a loss of these changes with the kernel.

Over csrc/ridge.c and csrc/holdout.c.
"""

import numpy as np

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.stdint cimport int64_t

from localsvm._core cimport address, end_call, lsvm_ops, ops_at

from scipy.linalg import cython_blas, cython_lapack

from localsvm.kernels import Kernel
from localsvm.kernels._kernels import Panels, aligned, padded


cdef extern from "lapack.h":
    cdef struct lsvm_lapack:
        void *gemm
        void *gemv
        void *trsv
        void *potri
        void *potrs

cdef extern from "ridge.h":
    cdef struct lsvm_ridge:
        int n, outputs, ld
        float ridge
        const float *kernel
        const float *y
        float *inverse
        float *a
    int lsvm_ridge_each_left_out(const lsvm_ops *, const lsvm_lapack *, lsvm_ridge *) nogil
    int lsvm_ridge_left_out(const lsvm_ops *, const lsvm_lapack *, lsvm_ridge *, const int64_t *, int,
                            const int64_t *, int, float *) nogil

cdef extern from "holdout.h":
    enum: LSVM_HOLDOUT_BLOCK
    cdef struct lsvm_holdout:
        int n, t, outputs, ld
        float ridge
        float *kernel
        const float *y
        float *factor
        float *a
        float *values
        float *left
        float *scratch
        double *rows
        double *columns
        double ridge_slope
    int lsvm_holdout_values(const lsvm_ops *, const lsvm_lapack *, lsvm_holdout *) nogil
    void lsvm_holdout_slopes(const lsvm_ops *, const lsvm_lapack *, lsvm_holdout *, const float *) nogil

cdef lsvm_lapack LAPACK

LEAST_TWICE = 0.02  # twice the distance of two rows, at least, in slopes of exp(-r): they have no end where it falls to 0


cdef void *routine(module, str name) except NULL:
    """A routine of scipy's, found when this is imported: so the build does not need scipy."""
    capsule = module.__pyx_capi__[name]
    return PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))


LAPACK.gemm = routine(cython_blas, "sgemm")
LAPACK.gemv = routine(cython_blas, "sgemv")
LAPACK.trsv = routine(cython_blas, "strsv")
LAPACK.potri = routine(cython_lapack, "spotri")
LAPACK.potrs = routine(cython_lapack, "spotrs")


cdef class LeftOut:
    """Kernel ridge regression of up to `most` rows that gives values to some of them by the others; see csrc/ridge.h.

    The kernel is one of distances, with the gamma 1. The arrays serve call after call, of one thread at a time: to make
    them anew would take half of the time of a call.
    """
    cdef lsvm_ridge m
    cdef const lsvm_ops *ops
    cdef int most
    cdef object kernel, function
    cdef object _a, _inverse, _y

    def __init__(self, int most, int outputs, kind="gaussian"):
        if most < 1 or outputs < 1:
            raise ValueError("the rows and outputs must be positive")
        size, self.function, self.most, self.ops = padded(most), Kernel(kind), most, ops_at(None)
        self.m.n, self.m.outputs, self.m.ld = most, outputs, size
        self.kernel, self._inverse = (aligned((most, size), np.float32) for _ in range(2))
        self._a = np.zeros(most * outputs, np.float32)
        self.m.kernel = <const float *>address(self.kernel)
        self.m.inverse = <float *>address(self._inverse)
        self.m.a = <float *>address(self._a)

    def fill(self, Z, Y, float ridge) -> None:
        """Take the rows, before values are asked for.

        Parameters
        ----------
        Z : (n, d) float32 rows.
        Y : (n, outputs) float32 targets.
        ridge : positive.
        """
        if not 0 < Z.shape[0] <= self.most or Y.shape != (Z.shape[0], self.m.outputs):
            raise ValueError("Z and Y must have n rows, at most as many as there is room for, Y one column an output")
        self.m.n = Z.shape[0]
        self._y = np.ascontiguousarray(Y, np.float32)
        self.m.y, self.m.ridge = <const float *>address(self._y), ridge
        fill(Z, self.m.n, self.function, self.kernel)

    def each(self) -> np.ndarray:
        """(n, outputs) float32 values of each row by all others.

        Raises ArithmeticError where K + ridge I is not positive definite in float32.
        """
        cdef int status
        with nogil:
            status = lsvm_ridge_each_left_out(self.ops, &LAPACK, &self.m)
        end_call(status)
        a = self._a[: self.m.n * self.m.outputs].reshape(self.m.outputs, self.m.n)
        return self._y - a.T / np.diagonal(self._inverse)[: self.m.n, None]

    def left_out(self, groups) -> list:
        """(k, outputs) float32 values of each group of k rows by the rows that are not of the group.

        groups : (k,) int64 each, the rows in any order. Errors as in `each`.
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
                    status = lsvm_ridge_left_out(self.ops, &LAPACK, &self.m, &rows[0], <int>rows.shape[0],
                                                 &others[0], <int>others.shape[0], &out[0, 0])
                end_call(status)
            found.append(np.asarray(out))
        return found


cdef class HeldOut:
    """Kernel ridge regression of the first t of n rows, which gives values to the others, by the kernel of `LeftOut`.

    Its arrays serve call after call, of one thread at a time; see csrc/holdout.h.

    Attributes
    ----------
    ridge_slope : float, the derivative of the loss by the ridge, of the last call of `slopes`.
    """
    cdef lsvm_holdout h
    cdef const lsvm_ops *ops
    cdef object kernel, function, arrays
    cdef object _values, _rows, _columns, _y

    def __init__(self, int n, int t, int outputs=1, kind="gaussian"):
        if not 0 < t < n:
            raise ValueError("some rows must be held out, and others not")
        if outputs < 1:
            raise ValueError("the outputs must be positive")
        size, self.function, self.ops = padded(t), Kernel(kind), ops_at(None)
        self.h.n, self.h.t, self.h.outputs, self.h.ld = n, t, outputs, size
        self.kernel = aligned((n, size), np.float32)
        factor, scratch = (aligned((rows, size), np.float32) for rows in (t, LSVM_HOLDOUT_BLOCK))
        a, left = (np.zeros(rows * outputs, np.float32) for rows in (t, n))
        self._values, self._rows, self._columns = np.zeros((n - t, outputs), np.float32), np.zeros(n), np.zeros(t)
        self.h.kernel, self.h.factor = <float *>address(self.kernel), <float *>address(factor)
        self.h.scratch, self.h.a = <float *>address(scratch), <float *>address(a)
        self.h.left, self.h.values = <float *>address(left), <float *>address(self._values)
        self.h.rows, self.h.columns = <double *>address(self._rows), <double *>address(self._columns)
        self.arrays = factor, scratch, a, left

    @property
    def ridge_slope(self) -> float:
        return self.h.ridge_slope

    def values(self, Z, Y, float ridge) -> np.ndarray:
        """Values (n - t, outputs) float32 of the rows behind the first t; a view that the next call overwrites.

        Parameters
        ----------
        Z : (n, d) float32 rows.
        Y : (t, outputs) float32.
        ridge : positive.

        Raises ArithmeticError where K + ridge I is not positive definite in float32.
        """
        cdef int status
        if Z.shape[0] != self.h.n or Y.shape != (self.h.t, self.h.outputs):
            raise ValueError("Z must have n rows, and Y the first t, with one column an output")
        self._y = np.ascontiguousarray(Y, np.float32)
        self.h.y, self.h.ridge = <const float *>address(self._y), ridge
        fill(Z, self.h.t, self.function, self.kernel)
        with nogil:
            status = lsvm_holdout_values(self.ops, &LAPACK, &self.h)
        end_call(status)
        return self._values

    def slopes(self, const float[:, ::1] by_value) -> tuple:
        """The derivative of a loss by minus the base of the kernel of the rows with the first t, and its sums.

        They are (n, t) float32, and of its rows (n,) and columns (t,) float64. The kernel of a row with itself does not
        change: its derivative is 0. All are views that the next call overwrites; each call of `values` has one.

        by_value : (n - t, outputs) the derivative by the values of the last call.
        """
        if by_value.shape[0] != self.h.n - self.h.t or by_value.shape[1] != self.h.outputs:
            raise ValueError("there must be a derivative for each value")
        kernel = self.kernel[:, : self.h.t]
        rough = self.function.kind == "laplacian"
        if rough:  # exp(-r) changes with r^2 by itself over 2 r
            with np.errstate(divide="ignore"):
                twice = np.log(kernel)
            np.maximum(np.multiply(twice, -2.0, out=twice), LEAST_TWICE, out=twice)
        with nogil:
            lsvm_holdout_slopes(self.ops, &LAPACK, &self.h, &by_value[0, 0])
        if rough:
            kernel /= twice
            kernel.sum(axis=1, out=self._rows)
            kernel.sum(axis=0, out=self._columns)
        return kernel, self._rows, self._columns


cdef fill(Z, int64_t t, function, kernel):
    """Write the kernel of rows Z with the first t of them."""
    Z = np.ascontiguousarray(Z, np.float32)
    panels = Panels(Z[:t], function.base)
    panels.kernel_matrix(function, Z, kernel, panels.norms_of(Z))
