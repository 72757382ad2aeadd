"""Products, distances, kernels and kernel expansions, over csrc/kernels.c."""
from math import prod

import numpy as np

from libc.stdint cimport int64_t, uintptr_t

from localsvm._core cimport LSVM_ALIGN, LSVM_PAD, address, lsvm_ops, lsvm_rows, ops_at

from localsvm._core import LEVELS, simd_level
from localsvm.kernels import BASES, SQUARES, SUMS


cdef extern from "kernels.h":
    cdef struct lsvm_kernel:
        int kind
        int degree
        float gamma
        float coef0
    cdef struct lsvm_points:
        lsvm_rows rows
        const float *norm
    cdef struct lsvm_panels:
        const float *packed
        const float *norm
        int64_t panels, d
    cdef struct lsvm_kernel_rows:
        lsvm_points a
        lsvm_panels b
        lsvm_kernel kernel
        float *k
        int64_t ld
        unsigned char *there
    cdef struct lsvm_expansion:
        lsvm_panels b
        int64_t groups
        const lsvm_kernel *kernels
        const int64_t *group_ptr
        const int64_t *used_ptr
        const int *used
        const double *coef
    int64_t lsvm_panel_width(const lsvm_ops *ops) nogil
    void lsvm_pack(const lsvm_ops *ops, const float *x, int64_t n, int64_t d, int64_t ld, float *out) nogil
    void lsvm_norms(const lsvm_ops *ops, const lsvm_rows *a, float *out) nogil
    void lsvm_products(const lsvm_ops *ops, const lsvm_points *a, const lsvm_panels *b, float *out, int64_t ldo, int base) nogil
    void lsvm_transform(const lsvm_ops *ops, const lsvm_kernel *kernel, const float *in_, float *out, int64_t n) nogil
    void lsvm_kernel_matrix(const lsvm_ops *ops, const lsvm_points *a, const lsvm_panels *b, const lsvm_kernel *kernel,
                            float *out, int64_t ldo) nogil
    void lsvm_accumulate(const lsvm_ops *ops, const lsvm_points *a, const lsvm_panels *b, const lsvm_kernel *kernel,
                         const double *coef, double *out) nogil
    void lsvm_weighted_sums(const lsvm_ops *ops, const float *w, int64_t ld, const float *x, int64_t m,
                            const float *columns, int64_t n, int64_t d, double *out) nogil
    void lsvm_symmetric_products(const lsvm_ops *ops, const float *k, int64_t n, int64_t first, int64_t last,
                                 const float *x, int64_t m, float *out) nogil
    int64_t lsvm_expansion_scratch(const lsvm_ops *ops, const lsvm_expansion *e) nogil
    void lsvm_expansions(const lsvm_ops *ops, const lsvm_points *a, const lsvm_expansion *e, float *scratch, double *out) nogil

PAD = LSVM_PAD
KINDS = ("gaussian", "laplacian", "polynomial", "linear", "manhattan")


def aligned(shape, dtype) -> np.ndarray:
    """An uninitialised C-order array that starts at a multiple of LSVM_ALIGN bytes."""
    size = prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(size + LSVM_ALIGN, np.uint8)
    start = LSVM_ALIGN - <uintptr_t>address(raw) % LSVM_ALIGN
    return raw[start:start + size].view(dtype).reshape(shape)


def padded(n: int) -> int:
    """n, rounded up to a multiple of LSVM_PAD."""
    return (n + LSVM_PAD - 1) // LSVM_PAD * LSVM_PAD


cdef lsvm_points points_of(const float[:, ::1] X, const float[::1] norm):
    """X as C takes it, with norms unless `norm` is None."""
    cdef lsvm_points a
    a.rows = lsvm_rows(X.shape[0], X.shape[1], NULL, X.shape[1], NULL, NULL)
    a.norm = NULL
    if X.shape[0] and X.shape[1]:
        a.rows.values = &X[0, 0]
    if X.shape[0] and norm is not None:
        a.norm = &norm[0]
    return a


cdef lsvm_kernel make_kernel(object kernel):
    cdef lsvm_kernel k
    k.kind = KINDS.index(kernel.kind)
    k.gamma = kernel.gamma
    k.coef0 = kernel.coef0
    k.degree = kernel.degree
    return k


cdef class Panels:
    """Rows b_j, packed for fast products with other rows, and their norms. The layout fits one SIMD level.

    Parameters
    ----------
    X : (n, d) float32, C-order
    base : str
        What is made of two rows: PRODUCTS, SQUARES or SUMS (`localsvm.kernels`).
    level : int or None
        SIMD level; None for the one in use.

    Attributes
    ----------
    n, size, width : int
        The number of rows, without and with padding, and of those in a panel.
    norms : (size,) float32
        What the rows add to distances by themselves: squared norms, 0 in the padding; for SUMS all 0.
    """
    cdef const lsvm_ops *ops
    cdef lsvm_panels b
    cdef int base
    cdef readonly object packed, norms
    cdef readonly int64_t n, size, width

    def __init__(self, const float[:, ::1] X, base, level=None):
        cdef int64_t d = X.shape[1]
        cdef float[::1] packed_view, norm_view
        cdef lsvm_points a
        self.ops = ops_at(level)
        self.base = BASES.index(base)
        self.width = lsvm_panel_width(self.ops)
        self.n = X.shape[0]
        self.size = (self.n + self.width - 1) // self.width * self.width
        self.packed = aligned((max(1, self.size * d),), np.float32)
        self.norms = aligned((self.size,), np.float32)
        self.norms[:] = 0
        packed_view, norm_view = self.packed, self.norms
        self.b = lsvm_panels(&packed_view[0], NULL, self.size // self.width, d)
        if self.n:
            if self.base:
                self.b.norm = &norm_view[0]
            a = points_of(X, None)
            lsvm_pack(self.ops, a.rows.values, self.n, d, d, &packed_view[0])
            if base == SQUARES:
                lsvm_norms(self.ops, &a.rows, &norm_view[0])

    def norms_of(self, const float[:, ::1] X) -> np.ndarray:
        """Norms (rows,) float32 of other rows: squared ones, rounded as the products are, or 0 for SUMS."""
        cdef float[::1] norm = np.zeros(X.shape[0], np.float32)
        cdef lsvm_points a = points_of(X, None)
        if X.shape[0] and self.base == BASES.index(SQUARES):
            with nogil:
                lsvm_norms(self.ops, &a.rows, &norm[0])
        return np.asarray(norm)

    def products(self, const float[:, ::1] X, float[:, ::1] out, const float[::1] norms=None) -> None:
        """out[i, j] = x_i . b_j, |x_i - b_j|^2 or sum_k |x_ik - b_jk|, by the base of the panels.

        norms : of X, by `norms_of`; None for PRODUCTS.
        out : aligned, with at least as many rows as X and at least `size` columns, a multiple of LSVM_PAD.
        """
        cdef lsvm_points a
        if (norms is not None) != (self.base > 0):
            raise ValueError("norms, one a row, go with distances")
        if X.shape[1] != self.b.d or out.shape[0] < X.shape[0] or out.shape[1] < self.size or out.shape[1] % LSVM_PAD:
            raise ValueError("shapes of X and out do not fit the panels")
        if X.shape[0] == 0 or self.n == 0:
            return
        if <size_t>&out[0, 0] % LSVM_ALIGN:
            raise ValueError("out must be aligned")
        a = points_of(X, norms)
        with nogil:
            lsvm_products(self.ops, &a, &self.b, &out[0, 0], out.shape[1], self.base)

    def kernel_matrix(self, kernel, const float[:, ::1] X, float[:, ::1] out, const float[::1] norms) -> None:
        """out[i, j] = kernel(x_i, b_j), with the values that `products` and then `transform` give.

        norms: of X, by `norms_of`, for kernels of distances; None for others. out: as in `products`.
        """
        cdef lsvm_kernel k = make_kernel(kernel)
        cdef lsvm_points a
        if X.shape[1] != self.b.d or out.shape[0] < X.shape[0] or out.shape[1] < self.size or out.shape[1] % LSVM_PAD:
            raise ValueError("shapes of X and out do not fit the panels")
        if kernel.uses_distances != (norms is not None) or (norms is not None and norms.shape[0] != X.shape[0]):
            raise ValueError("norms, one a row, go with kernels of distances")
        if X.shape[0] == 0 or self.n == 0:
            return
        if <size_t>&out[0, 0] % LSVM_ALIGN:
            raise ValueError("out must be aligned")
        a = points_of(X, norms)
        with nogil:
            lsvm_kernel_matrix(self.ops, &a, &self.b, &k, &out[0, 0], out.shape[1])

    def accumulate(self, kernel, const float[:, ::1] X, const float[::1] norms, const double[::1] coef,
                   double[::1] out) -> None:
        """out[i] += sum_j coef[j] kernel(x_i, b_j), summed in float64. Each out[i] depends on its own row alone.

        norms: as in `kernel_matrix`. coef: (size,), aligned, 0 in the padding.
        """
        cdef lsvm_kernel k = make_kernel(kernel)
        cdef lsvm_points a
        if X.shape[1] != self.b.d or out.shape[0] != X.shape[0] or coef.shape[0] != self.size:
            raise ValueError("shapes of X, coef and out do not fit the panels")
        if kernel.uses_distances != (norms is not None) or (norms is not None and norms.shape[0] != X.shape[0]):
            raise ValueError("norms, one a row, go with kernels of distances")
        if X.shape[0] == 0 or self.n == 0:
            return
        if <size_t>&coef[0] % LSVM_ALIGN:
            raise ValueError("coef must be aligned")
        a = points_of(X, norms)
        with nogil:
            lsvm_accumulate(self.ops, &a, &self.b, &k, &coef[0], &out[0])


cdef class RowsOnDemand:
    """The kernel matrix of rows with themselves, for a kernel of distances, whose rows are computed as they are needed.

    A solver in C reads them by `address`, and computes what it reads first (csrc/kernels.h). For one thread at a time.

    Parameters
    ----------
    X : (n, d) float32, C-order.
    kernel : Kernel
    out : (size, size) float32, aligned; n padded. The matrix, which is written over.

    Attributes
    ----------
    array : `out`, of which some rows are there.
    """
    cdef lsvm_kernel_rows rows
    cdef Panels panels
    cdef object X, norms, there, kernel
    cdef readonly object array

    def __init__(self, const float[:, ::1] X, kernel, float[:, ::1] out):
        cdef float[::1] norms
        cdef unsigned char[::1] there
        if not kernel.uses_distances or X.shape[0] == 0 or X.shape[1] == 0:
            raise ValueError("the kernel must be one of distances, and there must be rows and features")
        self.X, self.kernel, self.panels = np.asarray(X), kernel, Panels(X, kernel.base)
        self.norms, self.array = self.panels.norms[: X.shape[0]], np.asarray(out)
        if out.shape[0] != padded(X.shape[0]) or out.shape[1] != out.shape[0] or <size_t>&out[0, 0] % LSVM_ALIGN:
            raise ValueError("out must be aligned, and as large as the rows are many")
        self.array[:, self.panels.size:] = 0
        self.there = np.zeros(out.shape[0], np.uint8)
        self.there[X.shape[0]:] = 1
        norms, there = self.norms, self.there
        self.rows.a, self.rows.b = points_of(X, norms), self.panels.b
        self.rows.kernel, self.rows.k, self.rows.ld = make_kernel(kernel), &out[0, 0], out.shape[1]
        self.rows.there = &there[0]

    @property
    def address(self) -> int:
        """That of the struct lsvm_kernel_rows, which this object owns."""
        return <size_t>&self.rows

    @property
    def computed(self) -> int:
        """How many rows are there."""
        return int(self.there[: self.panels.n].sum())

    def whole(self) -> np.ndarray:
        """The matrix with all its rows; the padding is finite."""
        if not self.there.all():
            self.panels.kernel_matrix(self.kernel, self.X, self.array, self.norms)
            self.there[:] = 1
        self.array[self.panels.n:] = 0
        return self.array


def transform(kernel, const float[:, ::1] source, float[:, ::1] out) -> None:
    """Turn what the kernel is a function of (`Kernel.base`) into its values, elementwise.

    source, out : (rows, columns), with rows * columns a multiple of LSVM_PAD.
    """
    cdef lsvm_kernel k = make_kernel(kernel)
    cdef const lsvm_ops *ops = ops_at(None)
    cdef int64_t n = source.shape[0] * source.shape[1]
    if out.shape[0] != source.shape[0] or out.shape[1] != source.shape[1] or n % LSVM_PAD:
        raise ValueError("out and source must have one shape, a multiple of the padding")
    if n:
        with nogil:
            lsvm_transform(ops, &k, &source[0, 0], &out[0, 0], n)


def weighted_sums(const float[:, :] W, const float[:, ::1] X) -> np.ndarray:
    """Sums over i and j of W[i, j] |X[i, k] - X[j, k]| for each feature k: (d,) float64.

    W (n, t) float32, for the first t rows of X (n, d) float32; its rows are contiguous.
    """
    cdef int64_t n = X.shape[0], t = W.shape[1], d = X.shape[1]
    if W.shape[0] != n or t > n or (t > 1 and W.strides[1] != sizeof(float)):
        raise ValueError("W must have a row for each row of X, and a column for each of the first ones")
    cdef const float[:, ::1] columns = np.ascontiguousarray(np.asarray(X)[:t].T)
    cdef double[::1] out = np.zeros(d)
    cdef const lsvm_ops *ops = ops_at(None)
    if t and d:
        with nogil:
            lsvm_weighted_sums(ops, &W[0, 0], W.strides[0] // sizeof(float), &X[0, 0], n, &columns[0, 0], t, d,
                               &out[0])
    return np.asarray(out)


def symmetric_products(const float[:, ::1] K, const float[:, ::1] X, int64_t first, int64_t last,
                       float[:, ::1] out, level=None) -> None:
    """Add to `out` (m, n) what the rows first .. last - 1 of the upper triangle of K give to X K, for X (m, n).

    All rows of a symmetric K (n, n) float32 together give the product, and half of K is read. n, first and last are
    multiples of LSVM_PAD, the arrays as `aligned` makes them.
    """
    cdef int64_t n = K.shape[0], m = X.shape[0]
    cdef const lsvm_ops *ops = ops_at(level)
    if K.shape[1] != n or X.shape[1] != n or out.shape[0] != m or out.shape[1] != n:
        raise ValueError("K must be square, and X and out have a column for each of its rows")
    if not 0 <= first <= last <= n or first % LSVM_PAD or last % LSVM_PAD or n % LSVM_PAD:
        raise ValueError("the rows must lie within K, by multiples of the padding")
    if m and n and (<size_t>&K[0, 0] % LSVM_ALIGN or <size_t>&X[0, 0] % LSVM_ALIGN or <size_t>&out[0, 0] % LSVM_ALIGN):
        raise ValueError("K, X and out must be aligned")
    if m and n:
        with nogil:
            lsvm_symmetric_products(ops, &K[0, 0], n, first, last, &X[0, 0], m, &out[0, 0])


cdef class Expansion:
    """Decision functions f_m(x) = sum_j coef_mj k_m(x, b_j) of several models over common rows b_j.

    Parameters
    ----------
    B : (s, d) float32
    kernels : sequence of Kernel
        One for each model, all of one base.
    ptr, index, coef : (models + 1,), (entries,), (entries,)
        Coefficients as sparse rows: model m has coef[i] at row index[i] of B, for i from ptr[m] to ptr[m + 1] - 1.
    level : int or None
        SIMD level; None for the one in use.
    """
    cdef Panels panels
    cdef object coef, used, used_ptr, group_ptr, order, kernel_bytes
    cdef int64_t models, groups

    def __init__(self, B, kernels, ptr, index, coef, level=None):
        self.panels = Panels(B, kernels[0].base if kernels else BASES[0], level)
        self.models = len(kernels)
        distinct = sorted(set(kernels))
        group_of = np.asarray([distinct.index(k) for k in kernels], np.int64)
        self.order = np.argsort(group_of, kind="stable")
        self.groups = len(distinct)
        self.group_ptr = np.searchsorted(group_of[self.order], np.arange(self.groups + 1)).astype(np.int64)
        cdef lsvm_kernel group
        packed = b""
        for g in distinct:
            group = make_kernel(g)
            packed += (<char *>&group)[:sizeof(lsvm_kernel)]
        self.kernel_bytes = packed
        self._keep_used_panels(np.asarray(ptr), np.asarray(index), coef)

    def _keep_used_panels(self, ptr, index, coef):
        """Store the coefficients panel by panel, without unused panels, models in the order of their kernels."""
        width = self.panels.width
        panels = max(1, self.panels.size // width)
        place = np.empty(self.models, np.int64)
        place[self.order] = np.arange(self.models)
        keys = np.repeat(place, np.diff(ptr)) * panels + index // width
        used, at = np.unique(keys, return_inverse=True)
        self.used = np.append(used % panels, 0).astype(np.int32)
        self.used_ptr = np.searchsorted(used, np.arange(self.models + 1) * panels).astype(np.int64)
        self.coef = aligned((len(used) + 1, width), np.float64)
        self.coef[:] = 0
        self.coef[at, index % width] = coef

    def __call__(self, const float[:, ::1] X, outside=None) -> np.ndarray:
        """Decision values (n, models) float64 of the rows of X, models in the order given.

        outside (n,) float32: if X leaves out features in which all b_j are zero, what these features add to distances.
        """
        cdef lsvm_expansion e
        cdef lsvm_points a
        cdef const int64_t[::1] group_ptr = self.group_ptr
        cdef const int64_t[::1] used_ptr = self.used_ptr
        cdef const int[::1] used = self.used
        cdef const double[:, ::1] coef = self.coef
        cdef const char *kernel_bytes = self.kernel_bytes
        cdef double[:, ::1] out = np.zeros((X.shape[0], self.models))
        cdef float[::1] scratch, norm
        if X.shape[1] != self.panels.b.d:
            raise ValueError("X has another number of features than the expansion")
        if X.shape[0] and self.panels.n and self.models:
            if self.panels.base:
                norms = self.panels.norms_of(X)
                norm = norms if outside is None else norms + outside
            else:
                norm = None
            e = lsvm_expansion(self.panels.b, self.groups, <const lsvm_kernel *>kernel_bytes, &group_ptr[0],
                               &used_ptr[0], &used[0], &coef[0, 0])
            a = points_of(X, norm)
            scratch = aligned((lsvm_expansion_scratch(self.panels.ops, &e),), np.float32)
            with nogil:
                lsvm_expansions(self.panels.ops, &a, &e, &scratch[0], &out[0, 0])
        answer = np.empty((X.shape[0], self.models))
        answer[:, self.order] = out
        return answer
