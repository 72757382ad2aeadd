"""The task-coupled linear SVM, over csrc/linear.c, csrc/sdca.c, csrc/sag.h and csrc/sgd.h.

Row i belongs to tasks with shares m_i, and m_i phi_i is what the weights of all tasks are multiplied with:
f_i = m_i phi_i . w. See csrc/linear.h.
"""
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
    cdef struct lsvm_residuals:
        int64_t n
        const double *y
        const double *cost
        double up, down, epsilon, width
        int bent
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
    void lsvm_residual_terms(const lsvm_residuals *r, const double *f, lsvm_terms *out) nogil
    void lsvm_residual_slope(const lsvm_residuals *r, const double *f, const double *df, double t, double *first,
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


cdef extern from "sag.h":
    cdef struct lsvm_sag:
        double *w
        double *v
        double *coef
        double eta
    void lsvm_sag_pass(const lsvm_ops *ops, const lsvm_linear *p, const double *y, const double *cost,
                       const int64_t *order, int64_t n, lsvm_sag *s) nogil


cdef extern from "sgd.h":
    cdef struct lsvm_sgd:
        double *v
        double *late
        double scale, weight, rows, t0
        int64_t steps, iterates
        const lsvm_residuals *values
    void lsvm_sgd_pass(const lsvm_ops *ops, const lsvm_linear *p, const double *y, const double *cost,
                       const int64_t *order, int64_t n, lsvm_sgd *s) nogil


@dataclass(frozen=True)
class LinearReport:
    """What a solve reached.

    Attributes
    ----------
    primal, dual : float
        Both objectives, in units of the costs; their difference is the duality gap.
    steps : int
        Steps on single rows, or Newton steps.
    converged : bool
        Whether the solver reached its tolerance.
    """

    primal: float
    dual: float
    steps: int
    converged: bool


@dataclass(frozen=True)
class Terms:
    """Losses and derivatives at some decision values f.

    Attributes
    ----------
    coef, curvature : (n,) float64
        First derivative of each row's loss by -f, and second derivative, both times the cost.
    smooth : float
        Sum of c_i times the loss, squared or smoothed.
    loss : float
        The same for the loss that was smoothed.
    dual : float
        The dual objective of the coefficients coef, without its term -1/2 |sum_i coef_i m_i phi_i|^2.
    """

    coef: np.ndarray
    curvature: np.ndarray
    smooth: float
    loss: float
    dual: float


@dataclass(frozen=True)
class Hessian:
    """Second derivatives of the losses by the weights.

    Attributes
    ----------
    blocks : (tasks, side, side) float64
        One block for each task, of which only the upper triangle is set; without the identity of 1/2 |w|^2.
    border : (tasks, side) float64
        By a task's weights and the shared bias.
    corner : float
        By the shared bias, twice.
    """

    blocks: np.ndarray
    border: np.ndarray
    corner: float


cdef class RowLosses:
    """The losses of rows, as functions of their decision values."""
    cdef int64_t n
    cdef object kept

    cdef int keep(self, const double[::1] y, const double[::1] cost) except -1:
        """Keep targets and costs, of which there is one a row."""
        if cost.shape[0] != y.shape[0] or not y.shape[0]:
            raise ValueError("one target and one cost a row are needed")
        self.n, self.kept = y.shape[0], (y, cost)
        return 0

    cdef void evaluate(self, const double *f, lsvm_terms *out) noexcept nogil:
        pass

    cdef void follow(self, const double *f, const double *df, double t, double *first, double *second) noexcept nogil:
        pass

    def terms(self, const double[::1] f) -> Terms:
        """Losses and derivatives at the decision values f (n,) float64."""
        cdef double[::1] coef = np.empty(self.n), curvature = np.empty(self.n)
        cdef lsvm_terms t
        if f.shape[0] != self.n:
            raise ValueError("one decision value a row is needed")
        t.coef, t.curvature = &coef[0], &curvature[0]
        with nogil:
            self.evaluate(&f[0], &t)
        return Terms(np.asarray(coef), np.asarray(curvature), t.smooth, t.loss, t.dual)

    def slope(self, const double[::1] f, const double[::1] df, double t) -> tuple[float, float]:
        """First and second derivative of the sum of losses by t, at the decision values f + t df."""
        cdef double first, second
        if f.shape[0] != self.n or df.shape[0] != self.n:
            raise ValueError("one decision value a row is needed")
        with nogil:
            self.follow(&f[0], &df[0], t, &first, &second)
        return first, second


cdef class Margins(RowLosses):
    """The losses of classes.

    Parameters
    ----------
    y : (n,) float64
        +-1, or 0 where a row takes no part.
    cost : (n,) float64
        The factors c_i >= 0.
    width : float
        Of the smoothed hinge, which is quadratic for 0 < 1 - y f < width; 0 for the squared hinge.
    """
    cdef lsvm_margins m

    def __init__(self, const double[::1] y, const double[::1] cost, double width):
        self.keep(y, cost)
        self.m.n, self.m.y, self.m.cost, self.m.width = y.shape[0], &y[0], &cost[0], width

    cdef void evaluate(self, const double *f, lsvm_terms *out) noexcept nogil:
        lsvm_loss_terms(&self.m, f, out)

    cdef void follow(self, const double *f, const double *df, double t, double *first, double *second) noexcept nogil:
        lsvm_loss_slope(&self.m, f, df, t, first, second)


cdef class Residuals(RowLosses):
    """The losses of values, of z = |y - f| - epsilon where it is above 0.

    Parameters
    ----------
    y : (n,) float64
    cost : (n,) float64
        The factors c_i >= 0; 0 where a row takes no part.
    up, down : float
        Factors of the loss where y > f, and elsewhere.
    epsilon : float
    width : float
        The loss is quadratic for 0 < z < width, and grows in proportion beyond; 0 for z^2.
    bent : bool
        Whether that is the loss itself, rather than a smoothed form of z.
    """
    cdef lsvm_residuals r

    def __init__(self, const double[::1] y, const double[::1] cost, double up, double down, double epsilon,
                 double width, bint bent):
        self.keep(y, cost)
        self.r.n, self.r.y, self.r.cost = y.shape[0], &y[0], &cost[0]
        self.r.up, self.r.down, self.r.epsilon, self.r.width, self.r.bent = up, down, epsilon, width, bent

    cdef void evaluate(self, const double *f, lsvm_terms *out) noexcept nogil:
        lsvm_residual_terms(&self.r, f, out)

    cdef void follow(self, const double *f, const double *df, double t, double *first, double *second) noexcept nogil:
        lsvm_residual_slope(&self.r, f, df, t, first, second)


cdef class LinearRows:
    """Rows, the tasks they belong to, and the bias: the problem without labels and costs.

    Parameters
    ----------
    X : (n, d) float32
        A matrix with contiguous rows, at any distance from each other, or a csr_array with int32 indices and int64 row
        pointers.
    tasks : int
        Number of tasks.
    task : None, (n,) int32, or csr_array (n, tasks) float64
        None: all rows are in task 0. An array: each row is in one task. A matrix: the shares of each row in the tasks.
    bias : float
        The constant that is appended to every row; 0 for none.
    shared_bias : bool
        One weight of the bias for all tasks, instead of one for each.

    Attributes
    ----------
    n, size, side : int
        Number of rows, of weights (all tasks and the shared bias), and of rows of a block of the Hessian.
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
                nothing = np.zeros(1, np.float32)
                self.kept.append(nothing)
                data = nothing
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
        """Check the length of values of the rows (n,) and of weights (size,)."""
        if rows is not None and rows.shape[0] != self.n:
            raise ValueError("one value a row is needed")
        if weights is not None and weights.shape[0] != self.size:
            raise ValueError("the weights have another size")
        return 0

    def values(self, const double[::1] w, int64_t first=0, last=None) -> np.ndarray:
        """Decision values (last - first,) float64 of rows first .. last - 1, by default all, for weights w (size,)."""
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
        """Squared norms (n,) float64 of m_i phi_i, the bias included."""
        cdef double[::1] out = np.empty(self.n)
        cdef int64_t i
        with nogil:
            for i in range(self.n):
                out[i] = lsvm_linear_norm(&self.p, i)
        return np.asarray(out)

    def add(self, const double[::1] coef) -> np.ndarray:
        """sum_i coef_i m_i phi_i, (size,) float64."""
        cdef double[::1] w = np.zeros(self.size)
        self.check(coef, None)
        if self.n:
            with nogil:
                lsvm_linear_add(self.ops, &self.p, &coef[0], &w[0])
        return np.asarray(w)

    def curve(self, const double[::1] curvature, const double[::1] v) -> np.ndarray:
        """sum_i curvature_i (m_i phi_i . v) m_i phi_i, (size,) float64: the Hessian of the losses times v."""
        cdef double[::1] out = np.empty(self.size)
        self.check(curvature, v)
        with nogil:
            lsvm_linear_curve(self.ops, &self.p, &curvature[0], &v[0], &out[0])
        return np.asarray(out)

    def hessian(self, const double[::1] curvature, onto=None) -> Hessian:
        """Second derivatives for rows of one task each, added to those of `onto`, whose arrays are changed."""
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
        """(w, alpha, LinearReport): dual coordinate ascent in random order (Hsieh et al., ICML 2008; see csrc/sdca.h).

        It stops when the duality gap is at most tolerance times the primal objective, or after n max_passes steps.

        Parameters
        ----------
        y, cost : (n,) float64
            +-1, or 0 where a row takes no part; and c_i >= 0.
        squared : bool
            The squared hinge instead of the hinge.
        start : (n,) float64 or None
            Coefficients to start from; None for zeros.
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

    def average_gradient(self, const double[::1] y, const double[::1] cost, const int64_t[::1] order, double eta,
                         double[::1] coef, double[::1] w) -> None:
        """Steps of the stochastic average gradient on the rows of `order`, in that order; see csrc/sag.h.

        Parameters
        ----------
        y, cost : as in `sdca`, y not 0 on the rows of `order`.
        order : (m,) int64, m not far beyond 1 / eta.
        eta : float
            Size of the steps.
        coef, w : (n,) and (size,) float64
            Minus the derivatives of the losses as they were last seen, and the weights. Both are changed.
        """
        cdef double[::1] v = self.add(coef)
        cdef lsvm_sag s
        self.check(y, None)
        self.check(cost, w)
        if not order.shape[0]:
            return
        if not 0 <= np.min(order) <= np.max(order) < self.n:
            raise ValueError("the order names rows that do not exist")
        s.w, s.v, s.coef, s.eta = &w[0], &v[0], &coef[0], eta
        with nogil:
            lsvm_sag_pass(self.ops, &self.p, &y[0], &cost[0], &order[0], order.shape[0], &s)


cdef class Descent:
    """Stochastic subgradient steps on the primal objective, for rows that come in blocks; see csrc/sgd.h.

    Parameters
    ----------
    size : int
        Number of weights: LinearRows.size of any block.
    rows : float
        Number of rows of the whole problem.
    t0 : float
        Positive: step t has the size 1 / (t0 + t).
    loss : Residuals or None
        The loss of values, of any rows: those of a run have their own targets and costs; None for the hinge.
    """
    cdef lsvm_sgd s
    cdef object v, late, loss

    def __init__(self, int64_t size, double rows, double t0, Residuals loss=None):
        cdef double[::1] v = np.zeros(size), late = np.zeros(size)
        if not t0 > 0:
            raise ValueError("t0 must be positive")
        self.v, self.late = np.asarray(v), np.asarray(late)
        self.s.v, self.s.late = &v[0], &late[0]
        self.s.scale, self.s.weight, self.s.rows, self.s.t0 = 1.0, 0.0, rows, t0
        self.s.steps = self.s.iterates = 0
        self.loss, self.s.values = loss, NULL if loss is None else &loss.r

    def run(self, LinearRows rows, const double[::1] y, const double[::1] cost, const int64_t[::1] order) -> None:
        """Take a step on each row of `order` (int64), in that order; y and cost as in LinearRows.sdca."""
        rows.check(y, None)
        rows.check(cost, self.v)
        if not order.shape[0]:
            return
        if not 0 <= np.min(order) <= np.max(order) < rows.n:
            raise ValueError("the order names rows that do not exist")
        with nogil:
            lsvm_sgd_pass(rows.ops, &rows.p, &y[0], &cost[0], &order[0], order.shape[0], &self.s)

    def forget(self) -> None:
        """Start a new average."""
        self.late[:] = 0.0
        self.s.weight, self.s.iterates = 0.0, 0

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return self.s.steps

    def average(self) -> np.ndarray:
        """The mean of the weights (size,) over all steps since the last `forget`."""
        return (self.s.weight * self.v - self.late) / max(1, self.s.iterates)
