"""The task-coupled linear SVM over csrc/linear.c and csrc/sdca.c."""
from dataclasses import dataclass

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

from localsvm._core cimport lsvm_ops, lsvm_poll, lsvm_rows, ops_at, poll, raise_for


cdef extern from "linear.h":
    cdef struct lsvm_linear:
        lsvm_rows rows
        int64_t tasks
        const int32_t *task
        const int64_t *task_ptr
        const double *share
        double bias
        int shared_bias
    cdef struct lsvm_margins:
        int64_t n
        const double *y
        const double *cost
        double width
    cdef struct lsvm_terms:
        double *coef
        double *curvature
        double smooth, loss, dual
    cdef struct lsvm_hessian:
        double *blocks
        double *border
        double *scratch
        double corner
    int64_t lsvm_linear_size(const lsvm_linear *p) nogil
    int64_t lsvm_hessian_side(const lsvm_linear *p) nogil
    double lsvm_linear_norm(const lsvm_linear *p, int64_t i) nogil
    void lsvm_linear_values(const lsvm_ops *ops, const lsvm_linear *p, int64_t first, int64_t last, const double *w,
                            double *out) nogil
    void lsvm_linear_add(const lsvm_ops *ops, const lsvm_linear *p, const double *coef, double *w) nogil
    void lsvm_linear_curve(const lsvm_ops *ops, const lsvm_linear *p, const double *curvature, const double *v,
                           double *out) nogil
    void lsvm_linear_hessian(const lsvm_ops *ops, const lsvm_linear *p, const double *curvature, lsvm_hessian *out) nogil
    void lsvm_loss_terms(const lsvm_margins *m, const double *f, lsvm_terms *out) nogil
    void lsvm_loss_slope(const lsvm_margins *m, const double *f, const double *df, double t, double *first,
                         double *second) nogil

cdef extern from "sdca.h":
    cdef struct lsvm_sdca:
        const double *y
        const double *cost
        int squared
        double tolerance
        int64_t max_passes
        uint64_t seed
        lsvm_poll poll
        void *context
    cdef struct lsvm_sdca_report:
        double primal, dual
        int64_t steps
        int converged
    int lsvm_sdca_solve(const lsvm_ops *ops, const lsvm_linear *p, const lsvm_sdca *s, double *alpha, double *w,
                        lsvm_sdca_report *report) nogil


cdef extern from "sgd.h":
    cdef struct lsvm_sgd:
        double *v
        double *late
        double scale, weight, rows, t0
        int64_t steps, iterates
    void lsvm_sgd_pass(const lsvm_ops *ops, const lsvm_linear *p, const double *y, const double *cost,
                       const int64_t *order, int64_t n, lsvm_sgd *s) nogil


@dataclass(frozen=True)
class LinearReport:
    """What a solve reached: both objectives, how many steps (rows, or Newton steps) it took, whether to the tolerance."""

    primal: float
    dual: float
    steps: int
    converged: bool


@dataclass(frozen=True)
class Terms:
    """What margins say; see lsvm_terms in csrc/linear.h."""

    coef: np.ndarray
    curvature: np.ndarray
    smooth: float
    loss: float
    dual: float


@dataclass(frozen=True)
class Hessian:
    """Second derivatives by the weights: blocks (tasks, side, side), upper triangles without the identity; border
    (tasks, side) of a task's weights and the shared bias; corner: of the shared bias.
    """

    blocks: np.ndarray
    border: np.ndarray
    corner: float


cdef class Margins:
    """Targets, costs and the width of a smoothed hinge (0: squared hinge), for losses of decision values."""
    cdef lsvm_margins m
    cdef object kept

    def __init__(self, const double[::1] y, const double[::1] cost, double width):
        if cost.shape[0] != y.shape[0] or not y.shape[0]:
            raise ValueError("one target and one cost a row are needed")
        self.kept = (y, cost)
        self.m.n, self.m.y, self.m.cost, self.m.width = y.shape[0], &y[0], &cost[0], width

    def terms(self, const double[::1] f) -> Terms:
        """Losses and derivatives at the decision values f (n,)."""
        cdef double[::1] coef = np.empty(self.m.n), curvature = np.empty(self.m.n)
        cdef lsvm_terms t
        if f.shape[0] != self.m.n:
            raise ValueError("one decision value a row is needed")
        t.coef, t.curvature = &coef[0], &curvature[0]
        with nogil:
            lsvm_loss_terms(&self.m, &f[0], &t)
        return Terms(np.asarray(coef), np.asarray(curvature), t.smooth, t.loss, t.dual)

    def slope(self, const double[::1] f, const double[::1] df, double t) -> tuple[float, float]:
        """First and second derivative of the loss at t along f + t df."""
        cdef double first, second
        if f.shape[0] != self.m.n or df.shape[0] != self.m.n:
            raise ValueError("one decision value a row is needed")
        with nogil:
            lsvm_loss_slope(&self.m, &f[0], &df[0], t, &first, &second)
        return first, second


cdef class LinearRows:
    """Rows, the tasks they belong to, and the bias: all of the problem but targets and costs.

    Parameters: X (n, d) float32, C-order rows (any distance apart) or a csr_array with int32 indices and int64 row
    pointers; tasks: how many; task: None (all rows in task 0), (n,) int32 (each row in one task), or a csr_array
    (n, tasks) float64 of shares; bias: the constant appended to every row, 0 for none, shared by the tasks or one each.
    """
    cdef lsvm_linear p
    cdef const lsvm_ops *ops
    cdef object kept
    cdef readonly int64_t n, size, side, tasks
    cdef readonly object X, task
    cdef readonly double bias
    cdef readonly bint shared_bias

    def __init__(self, X, int64_t tasks=1, task=None, double bias=1.0, bint shared_bias=True):
        cdef const float[:, :] dense
        cdef const float[::1] data
        cdef const int32_t[::1] indices, of_row
        cdef const int64_t[::1] indptr, task_ptr
        cdef const double[::1] share
        self.kept = [X]
        self.ops = ops_at(None)
        self.p.rows.n, self.p.rows.d = X.shape
        if isinstance(X, np.ndarray):
            dense = X
            if X.shape[1] > 1 and X.strides[1] != 4:
                raise ValueError("the rows of X must be contiguous")
            if X.size:
                self.p.rows.values = &dense[0, 0]
            else:
                self.kept.append(np.zeros(1, np.float32))
                data = self.kept[-1]
                self.p.rows.values = &data[0]
            self.p.rows.ld = X.strides[0] // 4
        else:
            data, indices, indptr = X.data, X.indices, X.indptr
            self.p.rows.values = &data[0] if data.shape[0] else NULL
            self.p.rows.indices = &indices[0] if indices.shape[0] else NULL
            self.p.rows.indptr = &indptr[0]
        self.p.tasks = tasks
        if task is None:
            if tasks != 1:
                raise ValueError("several tasks need to know their rows")
        elif isinstance(task, np.ndarray):
            of_row = task
            if of_row.shape[0] != self.p.rows.n or (len(task) and not 0 <= task.min() <= task.max() < tasks):
                raise ValueError("task must name one of the tasks for each row")
            self.kept.append(task)
            self.p.task = &of_row[0] if len(task) else NULL
        else:
            if task.shape != (self.p.rows.n, tasks):
                raise ValueError("the shares must have a line a row and a column a task")
            arrays = [np.ascontiguousarray(task.indices, np.int32), np.ascontiguousarray(task.indptr, np.int64),
                      np.ascontiguousarray(task.data, np.float64)]
            arrays = [a if len(a) else np.zeros(1, a.dtype) for a in arrays]
            self.kept += arrays
            of_row, task_ptr, share = arrays
            self.p.task, self.p.task_ptr, self.p.share = &of_row[0], &task_ptr[0], &share[0]
        self.p.bias = bias
        self.p.shared_bias = shared_bias
        self.X, self.task, self.tasks, self.bias, self.shared_bias = X, task, tasks, bias, shared_bias
        self.n = self.p.rows.n
        self.size = lsvm_linear_size(&self.p)
        self.side = lsvm_hessian_side(&self.p)

    cdef int check(self, const double[::1] rows, const double[::1] weights) except -1:
        if rows is not None and rows.shape[0] != self.n:
            raise ValueError("one value a row is needed")
        if weights is not None and weights.shape[0] != self.size:
            raise ValueError("the weights have another size")
        return 0

    def values(self, const double[::1] w, int64_t first=0, last=None) -> np.ndarray:
        """(last - first,) decision values of the rows first .. last - 1."""
        cdef int64_t end = self.n if last is None else last
        cdef double[::1] out
        self.check(None, w)
        if not 0 <= first <= end <= self.n:
            raise ValueError("these rows do not exist")
        out = np.empty(end - first)
        if end > first:
            with nogil:
                lsvm_linear_values(self.ops, &self.p, first, end, &w[0], &out[0])
        return np.asarray(out)

    def norms(self) -> np.ndarray:
        """(n,) squared norms of m_i phi_i, the bias included."""
        cdef double[::1] out = np.empty(self.n)
        cdef int64_t i
        with nogil:
            for i in range(self.n):
                out[i] = lsvm_linear_norm(&self.p, i)
        return np.asarray(out)

    def add(self, const double[::1] coef) -> np.ndarray:
        """(size,) sum_i coef_i m_i phi_i."""
        cdef double[::1] w = np.zeros(self.size)
        self.check(coef, None)
        if self.n:
            with nogil:
                lsvm_linear_add(self.ops, &self.p, &coef[0], &w[0])
        return np.asarray(w)

    def curve(self, const double[::1] curvature, const double[::1] v) -> np.ndarray:
        """(size,) sum_i curvature_i (m_i phi_i . v) m_i phi_i."""
        cdef double[::1] out = np.empty(self.size)
        self.check(curvature, v)
        with nogil:
            lsvm_linear_curve(self.ops, &self.p, &curvature[0], &v[0], &out[0])
        return np.asarray(out)

    def hessian(self, const double[::1] curvature, onto=None) -> Hessian:
        """Second derivatives, for rows of one task each; on top of those of `onto`, whose arrays are taken over."""
        cdef lsvm_hessian h
        cdef double[::1] border, scratch, blocks
        self.check(curvature, None)
        if self.p.task_ptr != NULL:
            raise ValueError("the Hessian in blocks is that of rows of one task each")
        tasks, side = self.p.tasks, self.side
        if onto is None:
            onto = Hessian(np.zeros((tasks, side, side)), np.zeros((tasks, side)), 0.0)
        blocks, border, scratch = onto.blocks.reshape(-1), onto.border.reshape(-1), np.empty(4 * side)
        if blocks.shape[0] != tasks * side * side or border.shape[0] != tasks * side:
            raise ValueError("the Hessian is that of other rows")
        h.blocks, h.border, h.scratch, h.corner = &blocks[0], &border[0], &scratch[0], onto.corner
        with nogil:
            lsvm_linear_hessian(self.ops, &self.p, &curvature[0], &h)
        return Hessian(onto.blocks, onto.border, h.corner)

    def sdca(self, const double[::1] y, const double[::1] cost, bint squared, double tolerance, *, start=None,
             uint64_t seed=0, int64_t max_passes=10000):
        """(w, alpha, LinearReport): dual coordinate ascent until the gap is tolerance times the primal objective.

        y (n,) float64 +-1, or 0 where a row takes no part; cost (n,) float64 >= 0; start (n,) from which to begin;
        seed of the order of steps; max_passes: n times as many steps at most.
        """
        cdef double[::1] alpha = np.zeros(self.n)
        cdef double[::1] w = np.zeros(self.size)
        cdef lsvm_sdca s
        cdef lsvm_sdca_report report
        cdef int code
        self.check(y, None)
        self.check(cost, None)
        if start is not None:
            self.check(start, None)
            np.asarray(alpha)[:] = start
        if not self.n:
            raise ValueError("there are no rows")
        s.y, s.cost = &y[0], &cost[0]
        s.squared, s.tolerance, s.max_passes, s.seed = squared, tolerance, max_passes, seed
        s.poll, s.context = poll, NULL
        with nogil:
            code = lsvm_sdca_solve(self.ops, &self.p, &s, &alpha[0], &w[0], &report)
        raise_for(code)
        found = LinearReport(report.primal, report.dual, report.steps, bool(report.converged))
        return np.asarray(w), np.asarray(alpha), found


cdef class Descent:
    """Stochastic subgradient steps on the hinge's primal over rows that come block by block; see csrc/sgd.h.

    Parameters: size: of the weights (LinearRows.size of any block); rows: of the whole problem; t0 > 0: where the steps
    1 / (t0 + t) begin.
    """
    cdef lsvm_sgd s
    cdef object v, late

    def __init__(self, int64_t size, double rows, double t0):
        cdef double[::1] v = np.zeros(size), late = np.zeros(size)
        if not t0 > 0:
            raise ValueError("t0 must be positive")
        self.v, self.late = np.asarray(v), np.asarray(late)
        self.s.v, self.s.late = &v[0], &late[0]
        self.s.scale, self.s.weight, self.s.rows, self.s.t0 = 1.0, 0.0, rows, t0
        self.s.steps = self.s.iterates = 0

    def run(self, LinearRows rows, const double[::1] y, const double[::1] cost, const int64_t[::1] order) -> None:
        """A step on each row of `order` (n,); y and cost as for LinearRows.sdca."""
        rows.check(y, None)
        rows.check(cost, self.v)
        if not order.shape[0]:
            return
        if not 0 <= np.min(order) <= np.max(order) < rows.n:
            raise ValueError("the order names rows that do not exist")
        with nogil:
            lsvm_sgd_pass(rows.ops, &rows.p, &y[0], &cost[0], &order[0], order.shape[0], &self.s)

    def forget(self) -> None:
        """Begin the average anew."""
        self.late[:] = 0.0
        self.s.weight, self.s.iterates = 0.0, 0

    @property
    def steps(self) -> int:
        """Steps taken."""
        return self.s.steps

    def average(self) -> np.ndarray:
        """(size,) the mean of the iterates since the last `forget`."""
        return (self.s.weight * self.v - self.late) / max(1, self.s.iterates)
