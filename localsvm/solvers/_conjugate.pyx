"""The parts of a pass of conjugate gradients between two products with the kernel, over csrc/conjugate.c."""

import numpy as np

from libc.stdint cimport int64_t

from localsvm._core cimport LSVM_ALIGN, address, lsvm_ops, ops_at

from localsvm.kernels._kernels import aligned, padded


cdef extern from "conjugate.h":
    cdef struct lsvm_conjugate:
        int64_t m, n, landmarks
        const float *y
        const float *ridge
        const float *mask
        const float *factor
        const float *triangles
        const float *inverses
        float *a
        float *f
        float *rho
        float *direction
        float *z
        float *share
        double *size
        double *curvature
        double *excess
        double *loss
    void lsvm_conjugate_look(const lsvm_ops *, lsvm_conjugate *) nogil
    void lsvm_conjugate_turn(const lsvm_ops *, lsvm_conjugate *, int) nogil
    void lsvm_conjugate_step(const lsvm_ops *, lsvm_conjugate *, const float *) nogil


cdef class Passes:
    """Conjugate gradients of m systems (K + diag(ridge)) a = y, each on the rows of its mask, pass by pass.

    Parameters
    ----------
    y, ridge, mask : (m, n) float32
        As in solvers/least_squares.py.
    a, f : (m, n) float32
        Coefficients to begin from, and their products with K.
    factor : (landmarks, size) float32
        G of csrc/conjugate.h, aligned; both are multiples of the padding.
    triangles : (m, k, k) float32
        Lower triangles of the preconditioner, of the first k landmarks; the rows of the others are 0 in G.
    level : int or None
        SIMD level; None for the one in use.

    Attributes
    ----------
    a, f, direction : (m, size) float32, of the systems that are kept: 0 outside the rows, but for f.
    excess, loss, curvature : (m,) float64; see csrc/conjugate.h.
    """
    cdef lsvm_conjugate p
    cdef const lsvm_ops *ops
    cdef object rows, of_landmarks, numbers, triangles, factor

    def __init__(self, y, ridge, mask, a, f, const float[:, ::1] factor, triangles, level=None):
        cdef int64_t m = y.shape[0], n = y.shape[1], size = padded(n), k = triangles.shape[1]
        cdef int64_t landmarks = factor.shape[0]
        if factor.shape[1] != size or landmarks != padded(landmarks) or k > landmarks:
            raise ValueError("the factor must have padded rows and columns")
        if m and <size_t>&factor[0, 0] % LSVM_ALIGN:
            raise ValueError("the factor must be aligned")
        if triangles.shape != (m, k, k) or any(each.shape != (m, n) for each in (ridge, mask, a, f)):
            raise ValueError("there must be n rows and a triangle of each system")
        self.ops, self.factor = ops_at(level), factor
        self.rows, self.of_landmarks = aligned((8, m, size), np.float32), aligned((2, m, landmarks), np.float32)
        self.rows[:], self.rows[1, :, n:] = 0.0, 1.0
        for place, given in zip(self.rows, (y, ridge, mask, a, f)):
            place[:, :n] = given
        self.triangles, at = aligned((m, landmarks, landmarks), np.float32), np.arange(k)
        self.triangles[:], self.of_landmarks[0] = 0.0, 1.0
        self.triangles[:, :k, :k], self.of_landmarks[0, :, :k] = triangles, 1.0 / triangles[:, at, at]
        self.triangles[:, at, at] = 0.0
        self.numbers = np.zeros((4, m))
        self._point(m, size, landmarks)
        self.look()

    cdef _point(self, int64_t m, int64_t size, int64_t landmarks):
        cdef float *rows = <float *>address(self.rows)
        cdef float *of_landmarks = <float *>address(self.of_landmarks)
        cdef double *numbers = <double *>address(self.numbers)
        cdef int64_t plane = m * size
        self.p.m, self.p.n, self.p.landmarks = m, size, landmarks
        self.p.y, self.p.ridge, self.p.mask = rows, rows + plane, rows + 2 * plane
        self.p.a, self.p.f, self.p.rho = rows + 3 * plane, rows + 4 * plane, rows + 5 * plane
        self.p.direction, self.p.z = rows + 6 * plane, rows + 7 * plane
        self.p.factor = <const float *>address(np.asarray(self.factor))
        self.p.triangles = <const float *>address(self.triangles)
        self.p.inverses, self.p.share = of_landmarks, of_landmarks + m * landmarks
        self.p.size, self.p.curvature = numbers, numbers + m
        self.p.excess, self.p.loss = numbers + 2 * m, numbers + 3 * m

    @property
    def a(self) -> np.ndarray:
        return self.rows[3, : self.p.m]

    @property
    def f(self) -> np.ndarray:
        return self.rows[4, : self.p.m]

    @property
    def direction(self) -> np.ndarray:
        return self.rows[6, : self.p.m]

    @property
    def curvature(self) -> np.ndarray:
        return self.numbers[1, : self.p.m]

    @property
    def excess(self) -> np.ndarray:
        return self.numbers[2, : self.p.m]

    @property
    def loss(self) -> np.ndarray:
        return self.numbers[3, : self.p.m]

    def keep(self, some) -> None:
        """Go on with some of the systems alone; indices, ascending."""
        cdef int64_t m = len(some)
        for each in (*self.rows, *self.of_landmarks, self.triangles, *self.numbers):
            each[:m] = each[some]
        self.p.m = m

    def look(self, f=None) -> None:
        """Find excess and loss anew, with the products (m, size) of the coefficients if they are given."""
        if f is not None:
            self.rows[4, : self.p.m] = f
        with nogil:
            lsvm_conjugate_look(self.ops, &self.p)

    def turn(self, bint anew) -> None:
        """Find the next direction; with `anew` the one before does not count."""
        with nogil:
            lsvm_conjugate_turn(self.ops, &self.p, anew)

    def step(self, const float[:, ::1] image) -> None:
        """Go along the direction, given its product (m, size) with K, aligned."""
        if image.shape[0] != self.p.m or image.shape[1] != self.p.n:
            raise ValueError("the product must have the shape of the direction")
        if self.p.m and <size_t>&image[0, 0] % LSVM_ALIGN:
            raise ValueError("the product must be aligned")
        if self.p.m:
            with nogil:
                lsvm_conjugate_step(self.ops, &self.p, &image[0, 0])
