"""Stochastic training and scores of multiclass latent locally linear SVMs, over csrc/ml3.c."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

from localsvm._core cimport end_call, lsvm_ops, lsvm_rows, ops_at, take_rows


cdef extern from "ml3.h":
    enum: LSVM_ML3_LANES
    cdef struct lsvm_ml3_model:
        int64_t classes, models, features, width
        double q
        float *weights
        double scale
    cdef struct lsvm_ml3_training:
        const int32_t *codes
        const double *weight
        double radius, steps, square, p, sum
        double lambda_ "lambda"
        uint64_t random
        const float *before
        float *total
        float *late
    int lsvm_ml3_steps(const lsvm_ops *, lsvm_ml3_model *, lsvm_ml3_training *, const lsvm_rows *, const int64_t *,
                       int64_t) nogil
    void lsvm_ml3_fold_scale(const lsvm_ops *, lsvm_ml3_model *, lsvm_ml3_training *) nogil
    int lsvm_ml3_scores(const lsvm_ops *, const lsvm_ml3_model *, const lsvm_rows *, int64_t, int64_t, double *) nogil

# products that one call computes: a few tenths of a second, after which Python looks for Ctrl-C
cdef int64_t PRODUCTS_PER_CALL = 1 << 30


cdef class CheckedRows:
    """Rows of float32, dense in C-order or CSR with ascending indices, checked once. X must not change later."""
    cdef lsvm_rows m
    cdef object keep

    def __init__(self, X):
        self.keep = take_rows(X, &self.m)
        if len(self.keep) > 1 and not X.has_sorted_indices:
            raise ValueError("the indices of X must ascend within a row")
        if self.m.d >= 2**31 - 1:
            raise ValueError("X has too many columns")


cdef class ML3Model:
    """Weights (classes, models, features + 1) float32, the bias last. In memory, all models of a feature lie together.

    Parameters
    ----------
    classes, models, features : int
        models: linear models of each class.
    q : float
        Exponent of the score's norm, at least 1, or infinity.
    """
    cdef lsvm_ml3_model m
    cdef const lsvm_ops *ops
    cdef float[::1] weights

    def __init__(self, int64_t classes, int64_t models, int64_t features, double q):
        if classes < 1 or models < 1 or features < 0 or not q >= 1:
            raise ValueError("classes and models must be positive, q at least 1")
        self.m.classes, self.m.models, self.m.features, self.m.q = classes, models, features, q
        self.m.width = (classes * models + LSVM_ML3_LANES - 1) // LSVM_ML3_LANES * LSVM_ML3_LANES
        self.m.scale = 1
        self.ops = ops_at(None)
        self.weights = self.lines()
        self.m.weights = &self.weights[0]

    def lines(self) -> np.ndarray:
        """Zeros in the layout of the weights, a flat array."""
        return np.zeros((self.m.features + 1) * self.m.width + LSVM_ML3_LANES, np.float32)

    def _columns(self, lines) -> np.ndarray:
        """View (features + 1, classes * models) of an array made by `lines`."""
        whole = np.asarray(lines)[: (self.m.features + 1) * self.m.width].reshape(-1, self.m.width)
        return whole[:, : self.m.classes * self.m.models]

    def shaped(self, lines) -> np.ndarray:
        """A copy of an array made by `lines`, as (classes, models, features + 1)."""
        return np.ascontiguousarray(self._columns(lines).T).reshape(self.m.classes, self.m.models, -1)

    def put(self, W) -> None:
        """Set the weights to W (classes, models, features + 1)."""
        self._columns(self.weights)[:] = W.reshape(self.m.classes * self.m.models, -1).T
        self.m.scale = 1

    def scores(self, X) -> np.ndarray:
        """Scores (n, classes) float64 of the rows of X."""
        cdef CheckedRows rows = CheckedRows(X)
        cdef int64_t n = rows.m.n, begin = 0, size, block
        cdef double[:, ::1] out = np.empty((n, self.m.classes))
        cdef int code
        if rows.m.d != self.m.features:
            raise ValueError("X must have as many columns as the model has features")
        block = max(1, PRODUCTS_PER_CALL // (self.m.width * (self.m.features + 1)))
        while begin < n:
            size = min(block, n - begin)
            with nogil:
                code = lsvm_ml3_scores(self.ops, &self.m, &rows.m, begin, size, &out[begin, 0])
            end_call(code)
            begin += size
        return np.asarray(out)


cdef class ML3Training:
    """Epochs of Pegasos, which change the weights of a model. At the first they must be zero.

    Parameters
    ----------
    model : ML3Model
    X : Examples, (n, d)
    codes : (n,) int32
        The class of each row.
    weight : (n,) float64
        Factors >= 0 of the losses.
    p : float
        Exponent of the norm that bounds the random combinations of the initial epoch.
    lambda_, radius : float
        As in csrc/ml3.h: |W| is at most radius after every step.
    seed : int
        Of the random combinations.
    """
    cdef ML3Model model
    cdef CheckedRows rows
    cdef lsvm_ml3_training t
    cdef const int32_t[::1] codes
    cdef const double[::1] weight

    def __init__(self, ML3Model model, X, codes, weight, double p, double lambda_, double radius, uint64_t seed):
        self.model, self.rows, self.codes, self.weight = model, CheckedRows(X), codes, weight
        cdef int64_t n = self.rows.m.n
        if self.rows.m.d != model.m.features or self.codes.shape[0] != n or self.weight.shape[0] != n or n < 1:
            raise ValueError("codes and weight need one entry a row, X as many columns as the model has features")
        if np.min(codes) < 0 or np.max(codes) >= model.m.classes:
            raise ValueError("codes must be numbers of classes")
        self.t.codes, self.t.weight = &self.codes[0], &self.weight[0]
        self.t.p, self.t.lambda_, self.t.radius, self.t.random = p, lambda_, radius, seed

    def epoch(self, const int64_t[::1] order, double steps, bint initial=False, bint average=False):
        """Take one step on each row, in this order.

        Parameters
        ----------
        order : (steps,) int64
            Row numbers.
        steps : float
            Steps that count as done before: the first step size is 1 / (lambda (steps + 1)).
        initial : bool
            Use random combinations, instead of the best ones at the weights before the epoch.
        average : bool
            Return the mean of the weights over all steps.

        Returns
        -------
        (classes, models, features + 1) float32, or None without `average`
        """
        cdef int64_t n = order.shape[0], begin = 0, size, block
        cdef const float[::1] before
        cdef float[::1] total, late
        cdef int code
        self.t.steps, self.t.sum = steps, 0
        self.t.before, self.t.total, self.t.late = NULL, NULL, NULL
        if not initial:
            before = self._by_class()
            self.t.before = &before[0]
        if average:
            total, late = self.model.lines(), self.model.lines()
            self.t.total, self.t.late = &total[0], &late[0]
        block = max(1, PRODUCTS_PER_CALL // (self.model.m.width * (self.model.m.features + 1)))
        while begin < n:
            size = min(block, n - begin)
            with nogil:
                code = lsvm_ml3_steps(self.model.ops, &self.model.m, &self.t, &self.rows.m, &order[begin], size)
            end_call(code)
            begin += size
        lsvm_ml3_fold_scale(self.model.ops, &self.model.m, &self.t)
        return self.model.shaped(np.asarray(total) / np.float32(n)) if average else None

    def _by_class(self) -> np.ndarray:
        """The weights as (classes, features + 1, models), flat, followed by the zeros that C may read beyond them."""
        W = np.ascontiguousarray(self.model.shaped(self.model.weights).transpose(0, 2, 1))
        return np.concatenate([W.ravel(), np.zeros(2 * LSVM_ML3_LANES, np.float32)])
