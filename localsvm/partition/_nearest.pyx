# cython: language_level=3
"""Passes over rows that grow a tree of centres and route rows down it, over csrc/nearest.c.

Arguments are checked here, the GIL is released while C works, and its error codes are raised as exceptions.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from localsvm._core cimport address, end_call, lsvm_ops, lsvm_rows, ops_at, take_rows


cdef extern from "nearest.h" nogil:
    cdef struct lsvm_nearest_children:
        const double *vectors
        const double *thresholds
        int64_t n
        int manhattan
    cdef struct lsvm_nearest_steps:
        int64_t halves
        int64_t nearest
        int64_t least
    cdef struct lsvm_nearest_tree:
        const double *vectors
        const double *thresholds
        const int32_t *first_child
        const int32_t *n_children
        const int32_t *cell
        int64_t n_nodes
        int manhattan
    int lsvm_nearest_project(const lsvm_ops *, const lsvm_rows *, const int64_t *, int64_t, const double *, double *)
    int lsvm_nearest_apart(const lsvm_ops *, const lsvm_rows *, const int64_t *, int64_t, const double *, double *)
    int lsvm_nearest_squares(const lsvm_ops *, const lsvm_rows *, const int64_t *, int64_t, double *)
    int lsvm_nearest_total(const lsvm_ops *, const lsvm_rows *, const int64_t *, int64_t, double *)
    int lsvm_nearest_pair(
        const lsvm_ops *, const lsvm_rows *, const int64_t *, int64_t, const lsvm_nearest_steps *, double *, double *,
        double *
    )
    int64_t lsvm_nearest_pair_work(int64_t, int64_t)
    int lsvm_nearest_choose(
        const lsvm_ops *, const lsvm_rows *, const int64_t *, int64_t, const lsvm_nearest_children *, int32_t *
    )
    int lsvm_nearest_group(int64_t *, const int32_t *, int64_t, int64_t, int64_t *, int64_t *)
    int lsvm_nearest_route(const lsvm_ops *, const lsvm_rows *, int64_t, int64_t, const lsvm_nearest_tree *, int32_t *)
    int lsvm_nearest_hash(const lsvm_ops *, const lsvm_rows *, int64_t, int64_t, uint64_t, uint64_t *)
    int lsvm_nearest_same(const lsvm_rows *, const int64_t *, const int64_t *, int64_t, uint8_t *)


# values that one call reads: a few hundredths of a second, after which Python looks for Ctrl-C
cdef int64_t VALUES_PER_CALL = 1 << 24


def _checked(object array, object dtype, str name):
    """The array itself; TypeError unless it has this dtype and is C-contiguous. Copies are left to the caller."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype or not array.flags.c_contiguous:
        raise TypeError(f"{name} must be a C-contiguous {np.dtype(dtype).name} array")
    return array


cdef class Matrix:
    """Rows of float32, dense or CSR, checked once so that the methods can trust them. X must not change later.

    Attributes
    ----------
    X : Examples
        The matrix as given.
    width : int
        Stored values per row, on average.
    """

    cdef lsvm_rows m
    cdef const lsvm_ops *ops
    cdef readonly object X
    cdef readonly int64_t width
    cdef object keep
    cdef int64_t block

    def __init__(self, X):
        self.keep = take_rows(X, &self.m)
        self.ops = ops_at(None)
        self.X = X
        self.width = self.m.d if len(self.keep) == 1 else X.nnz // max(1, self.m.n)
        self.block = max(1, VALUES_PER_CALL // (self.width + 16))

    @property
    def shape(self):
        return self.m.n, self.m.d

    def _range(self, int64_t begin, end):
        """The number of rows begin .. end - 1; IndexError if they do not exist."""
        cdef int64_t last = self.m.n if end is None else end
        if not 0 <= begin <= last <= self.m.n:
            raise IndexError(f"there are no rows {begin} to {last}")
        return last - begin

    def _direction(self, direction):
        if _checked(direction, np.float64, "direction").shape != (self.m.d,):
            raise ValueError("a direction must have one value per feature")
        return direction

    def project(self, rows, direction):
        """Inner products (n,) float64 of rows (n,) int64 with a direction (d,) float64."""
        cdef int64_t n = len(_checked(rows, np.int64, "rows")), at = 0, size
        out = np.empty(n)
        cdef const int64_t *row = <const int64_t *>address(rows)
        cdef const double *u = <const double *>address(self._direction(direction))
        cdef double *result = <double *>address(out)
        cdef int code
        while at < n:
            size = min(self.block, n - at)
            with nogil:
                code = lsvm_nearest_project(self.ops, &self.m, row + at, size, u, result + at)
            end_call(code)
            at += size
        return out

    def apart(self, rows, pair):
        """How much farther rows (n,) int64 are from the first of two points (2, d) float64 than from the second, in the
        Manhattan distance and but for a constant: (n,) float64, see csrc/nearest.h."""
        cdef int64_t n = len(_checked(rows, np.int64, "rows")), at = 0, size
        if _checked(pair, np.float64, "pair").shape != (2, self.m.d):
            raise ValueError("a pair must be two points with one value per feature")
        out = np.empty(n)
        cdef const int64_t *row = <const int64_t *>address(rows)
        cdef const double *points = <const double *>address(pair)
        cdef double *result = <double *>address(out)
        cdef int code
        while at < n:
            size = min(self.block, n - at)
            with nogil:
                code = lsvm_nearest_apart(self.ops, &self.m, row + at, size, points, result + at)
            end_call(code)
            at += size
        return out

    def squares(self, rows):
        """Squared norms (n,) float64 of rows (n,) int64."""
        cdef int64_t n = len(_checked(rows, np.int64, "rows")), at = 0, size
        out = np.empty(n)
        cdef const int64_t *row = <const int64_t *>address(rows)
        cdef double *result = <double *>address(out)
        cdef int code
        while at < n:
            size = min(self.block, n - at)
            with nogil:
                code = lsvm_nearest_squares(self.ops, &self.m, row + at, size, result + at)
            end_call(code)
            at += size
        return out

    def total(self, rows):
        """The sum (d,) float64 of rows (n,) int64, added in this order."""
        cdef int64_t n = len(_checked(rows, np.int64, "rows")), at = 0, size
        out = np.zeros(self.m.d)
        cdef const int64_t *row = <const int64_t *>address(rows)
        cdef double *result = <double *>address(out)
        cdef int code
        while at < n:
            size = min(self.block, n - at)
            with nogil:
                code = lsvm_nearest_total(self.ops, &self.m, row + at, size, result)
            end_call(code)
            at += size
        return out

    def pair(self, rows, int64_t halves, int64_t nearest, int64_t least):
        """Two centres of sampled rows, by Lloyd's algorithm from two rows that are far apart.

        Parameters
        ----------
        rows : (n,) int64
        halves, nearest : int
            Steps between equal halves of the rows, and then at most so many between the rows nearest to each centre.
        least : int
            Fewest rows on a side, 1 .. n / 2.

        Returns
        -------
        moved, far : (2, d) float64
            The centres, and the two rows from which they started. See csrc/nearest.h.
        """
        cdef int64_t n = len(_checked(rows, np.int64, "rows"))
        if not 1 <= least <= n // 2 or halves < 0 or nearest < 0:
            raise ValueError("a side needs at least one row, and not more than half of them")
        cdef lsvm_nearest_steps steps
        steps.halves, steps.nearest, steps.least = halves, nearest, least
        moved, far = np.empty((2, self.m.d)), np.empty((2, self.m.d))
        work = np.empty(lsvm_nearest_pair_work(n, self.m.d))
        cdef const int64_t *row = <const int64_t *>address(rows)
        cdef double *result = <double *>address(moved)
        cdef double *start = <double *>address(far)
        cdef double *space = <double *>address(work)
        cdef int code
        with nogil:
            code = lsvm_nearest_pair(self.ops, &self.m, row, n, &steps, start, result, space)
        end_call(code)
        return moved, far

    def choose(self, rows, vectors, thresholds, bint manhattan=False):
        """The child (n,) int32 of each row: the largest <x, vectors[c]> - thresholds[c], where child 0 scores 0.

        Ties go to the lower child. rows (n,) int64, vectors (k, d) and thresholds (k,) float64. With `manhattan` the
        vectors are centres, and `apart` of the first and the c-th stands for the product.
        """
        cdef int64_t n = len(_checked(rows, np.int64, "rows")), at = 0, size
        cdef lsvm_nearest_children children
        children.n = len(_checked(thresholds, np.float64, "thresholds"))
        if _checked(vectors, np.float64, "vectors").shape != (children.n, self.m.d):
            raise ValueError("vectors must have one row per threshold and one column per feature")
        children.vectors, children.manhattan = <const double *>address(vectors), manhattan
        children.thresholds = <const double *>address(thresholds)
        out = np.empty(n, dtype=np.int32)
        cdef const int64_t *row = <const int64_t *>address(rows)
        cdef int32_t *result = <int32_t *>address(out)
        cdef int64_t step = max(1, self.block // max(1, children.n))
        cdef int code
        while at < n:
            size = min(step, n - at)
            with nogil:
                code = lsvm_nearest_choose(self.ops, &self.m, row + at, size, &children, result + at)
            end_call(code)
            at += size
        return out

    def route(
        self, vectors, thresholds, first_child, n_children, cell, int64_t begin=0, end=None, bint manhattan=False
    ):
        """The cells (end - begin,) int32 of rows begin .. end - 1, by default all, down the tree from node 0.

        The arrays are those of a CentreTree, with its vectors (nodes, d) float64; see `choose`.
        """
        cdef int64_t n = self._range(begin, end), at = 0, size, step = max(1, self.block // 16)
        cdef lsvm_nearest_tree tree
        tree.n_nodes = len(_checked(thresholds, np.float64, "thresholds"))
        if tree.n_nodes == 0 or _checked(vectors, np.float64, "vectors").shape != (
            tree.n_nodes, self.m.d
        ):
            raise ValueError(f"the tree does not fit rows of {self.m.d} features")
        for name, array in (("first_child", first_child), ("n_children", n_children), ("cell", cell)):
            if len(_checked(array, np.int32, name)) != tree.n_nodes:
                raise ValueError(f"{name} must have one value per node")
        tree.vectors, tree.manhattan = <const double *>address(vectors), manhattan
        tree.thresholds = <const double *>address(thresholds)
        tree.first_child = <const int32_t *>address(first_child)
        tree.n_children = <const int32_t *>address(n_children)
        tree.cell = <const int32_t *>address(cell)
        out = np.empty(n, dtype=np.int32)
        cdef int32_t *result = <int32_t *>address(out)
        cdef int code
        while at < n:
            size = min(step, n - at)
            with nogil:
                code = lsvm_nearest_route(self.ops, &self.m, begin + at, size, &tree, result + at)
            end_call(code)
            at += size
        return out

    def hashes(self, uint64_t seed, int64_t begin=0, end=None):
        """64-bit hashes (end - begin,) uint64 of rows begin .. end - 1, by default all; equal for equal values."""
        cdef int64_t n = self._range(begin, end), at = 0, size
        out = np.empty(n, dtype=np.uint64)
        cdef uint64_t *result = <uint64_t *>address(out)
        cdef int code
        while at < n:
            size = min(self.block, n - at)
            with nogil:
                code = lsvm_nearest_hash(self.ops, &self.m, begin + at, size, seed, result + at)
            end_call(code)
            at += size
        return out

    def same(self, a, b):
        """Whether rows a[i] and b[i] have equal values, (n,) bool, for row numbers a and b (n,) int64."""
        cdef int64_t n = len(_checked(a, np.int64, "a")), at = 0, size
        if len(_checked(b, np.int64, "b")) != n:
            raise ValueError("a and b must have the same length")
        out = np.empty(n, dtype=np.uint8)
        cdef const int64_t *left = <const int64_t *>address(a)
        cdef const int64_t *right = <const int64_t *>address(b)
        cdef uint8_t *result = <uint8_t *>address(out)
        cdef int code
        while at < n:
            size = min(self.block, n - at)
            with nogil:
                code = lsvm_nearest_same(&self.m, left + at, right + at, size, result + at)
            end_call(code)
            at += size
        return out.view(np.bool_)


def group(rows, child, int64_t n_children):
    """Sort rows (n,) int64, in place and stably, by child (n,) int32; returns the bounds (n_children + 1,) int64."""
    cdef int64_t n = len(_checked(rows, np.int64, "rows"))
    if len(_checked(child, np.int32, "child")) != n or n_children < 1:
        raise ValueError("child must have one value per row, of at least one child")
    if not rows.flags.writeable:
        raise ValueError("rows must be writeable")
    scratch = np.empty(n, dtype=np.int64)
    bounds = np.empty(n_children + 1, dtype=np.int64)
    cdef int64_t *row = <int64_t *>address(rows)
    cdef const int32_t *label = <const int32_t *>address(child)
    cdef int64_t *space = <int64_t *>address(scratch)
    cdef int64_t *bound = <int64_t *>address(bounds)
    cdef int code
    with nogil:
        code = lsvm_nearest_group(row, label, n, n_children, space, bound)
    end_call(code)
    return bounds
