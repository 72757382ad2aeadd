"""The kernel dual of a loss, over csrc/smo.c; and the epochs of LaSVM, csrc/lasvm.c."""
from dataclasses import dataclass

import numpy as np

from libc.stdint cimport int64_t

from localsvm._core cimport LSVM_ALIGN, LSVM_PAD, address, lsvm_ops, lsvm_poll, ops_at, poll, raise_for

from localsvm.kernels._kernels import RowsOnDemand


cdef extern from "kernels.h":
    cdef struct lsvm_kernel_rows:
        pass

cdef extern from "smo.h":
    cdef struct lsvm_coef_terms:
        const double *e
        const double *plus
        const double *minus
        double total
    cdef struct lsvm_smo:
        int64_t n, ld
        const void *k
        int is_double, unit_diagonal, offset
        const double *y
        int64_t max_iterations
        lsvm_poll poll
        void *context
        const lsvm_coef_terms *terms
        const lsvm_kernel_rows *rows
        double limit
    cdef struct lsvm_report:
        double objective, gap, violation, bias
        int64_t iterations
        int converged
    void lsvm_smo_multiply(const lsvm_ops *ops, const lsvm_smo *problem, const double *c, double *out) nogil
    int lsvm_smo_solve(const lsvm_ops *ops, const lsvm_smo *problem, const double *lo, const double *hi,
                       double tolerance, double *b, double *f, lsvm_report *report) nogil
    cdef struct lsvm_dual:
        double low, high, e, plus, minus
        int sided
    cdef struct lsvm_before:
        double cost
        const double *b
        const double *f
    cdef struct lsvm_path:
        const double *weight
        const lsvm_dual *dual
        const double *unit
        const lsvm_before *before
        const double *costs
        int64_t n_costs
    int lsvm_smo_path(const lsvm_ops *ops, const lsvm_smo *problem, const lsvm_path *path, double tolerance, double *b,
                      double *f, lsvm_report *reports, int64_t *tried) nogil

cdef extern from "lasvm.h":
    cdef struct lsvm_epoch:
        const int64_t *order
        int64_t n
        const double *lo
        const double *hi
        double tolerance
    int lsvm_lasvm_epoch(const lsvm_smo *problem, const lsvm_epoch *epoch, double *b, int64_t *steps) nogil

MAX_ITERATIONS = 10_000_000
# of a problem of fewer than 500 rows: up to C = 100 none of 128 drawn ones, of 40 to 500 rows, took more than 1 400 a row
STEPS_A_ROW = 20_000


@dataclass
class Terms:
    """A term e |b| + 1/2 plus max(b, 0)^2 + 1/2 minus min(b, 0)^2 of each coefficient; see csrc/smo.h.

    Attributes
    ----------
    e, plus, minus : (n,) float64, from 0.
    total : float
        The sum of the costs, the unit of the tolerance.
    """

    e: np.ndarray
    plus: np.ndarray
    minus: np.ndarray
    total: float


@dataclass
class DualReport:
    """What a solve reached.

    Attributes
    ----------
    objective : float
        The dual objective.
    gap : float
        The duality gap, in the units of the objective, computed in float64.
    violation : float
        With an offset, the largest violation of the KKT conditions by a pair of coefficients; otherwise 0.
    bias : float
        The offset; 0 without one.
    iterations : int
        Number of pairs of coefficients that were optimised.
    converged : bool
        Whether the solver reached its tolerance.
    """

    objective: float
    gap: float
    violation: float
    bias: float
    iterations: int
    converged: bool


cdef object as_report(const lsvm_report *r):
    return DualReport(r.objective, r.gap, r.violation, r.bias, r.iterations, bool(r.converged))


cdef class KernelDual:
    """The dual problem max_b y'b - 1/2 b'Kb, lo <= b <= hi, and sum b = 0 with an offset.

    Parameters
    ----------
    K : (n, ld) float32 or float64, C-order and aligned; or RowsOnDemand, which has a unit diagonal
        n and ld are multiples of LSVM_PAD; the padding must be finite.
    y : (n,) float64
        Labels -1 and +1, or values; 0 in the padding.
    offset : bool
        With the constraint sum b = 0, which stands for an offset of the decision function.
    unit_diagonal : bool
        Promises K_ii = 1 for all i.
    max_iterations : int, 0 for MAX_ITERATIONS, or fewer where there are few rows
        Pairs of coefficients that one solve may optimise.
    limit : float
        Above 0, without an offset, tolerances are relative: the gap to reach is so many times the primal objective, in
        which the losses of larger residuals count as that of `limit`. Where it is less than that of residuals of 1/200
        of the limit, to both sides of each row, this counts. 0 for the units of `solve`.
    dual : Dual or None
        Of the loss along paths (solvers/boxes.py), without an offset; None for the hinge.
    """
    cdef lsvm_smo p
    cdef const lsvm_ops *ops
    cdef object K, rows, dual
    cdef readonly object y
    cdef int64_t n

    def __init__(self, K, y, bint offset=False, bint unit_diagonal=False, int64_t max_iterations=0, double limit=0.0,
                 dual=None):
        cdef const double[::1] targets = y
        self.rows = K if isinstance(K, RowsOnDemand) else None
        if self.rows is not None:
            if not unit_diagonal:
                raise ValueError("rows on demand have a unit diagonal")
            K = self.rows.array
        if K.dtype not in (np.float32, np.float64) or not K.flags.c_contiguous or <size_t>address(K) % LSVM_ALIGN:
            raise ValueError("K must be an aligned C-order float32 or float64 array")
        if K.shape[0] % LSVM_PAD or K.shape[1] % LSVM_PAD or targets.shape[0] != K.shape[0] or K.shape[1] < K.shape[0]:
            raise ValueError("K must be padded, and y as long as K has rows")
        if dual is not None and offset:
            raise ValueError("a loss other than the hinge goes without an offset")
        self.K, self.y, self.n, self.dual = K, y, K.shape[0], dual
        self.ops = ops_at(None)
        self.p.n = K.shape[0]
        self.p.ld = K.shape[1]
        self.p.k = <const void *>address(K)
        if self.rows is not None:
            self.p.rows = <const lsvm_kernel_rows *><size_t>self.rows.address
        self.p.is_double = K.dtype == np.float64
        self.p.unit_diagonal = unit_diagonal
        self.p.offset = offset
        self.p.y = &targets[0]
        self.p.max_iterations = max_iterations or min(MAX_ITERATIONS, STEPS_A_ROW * self.n)
        self.p.terms = NULL
        self.p.limit = limit
        self.p.poll = poll

    def multiply(self, const double[::1] c) -> np.ndarray:
        """K c, (n,) float64. Columns whose coefficient is 0 are not read."""
        cdef double[::1] out = np.empty(self.n)
        if c.shape[0] != self.n:
            raise ValueError("c must have one entry a row")
        with nogil:
            lsvm_smo_multiply(self.ops, &self.p, &c[0], &out[0])
        return np.asarray(out)

    def solve(self, const double[::1] lo, const double[::1] hi, double tolerance, start=None, terms=None):
        """(b, f, DualReport): coefficients b (n,), f = Kb (n,) without the bias, and a report certified in float64.

        Parameters
        ----------
        lo, hi : (n,) float64
            Bounds of the coefficients; with terms lo <= 0 <= hi, and infinite where a term is quadratic.
        tolerance : float
            Without an offset, for the duality gap divided by the sum of hi - lo, which is the sum of the costs (of
            terms, their `total`), unless there is a limit. With an offset, for the largest violation, as in LIBSVM.
        start : (n,) or None
            Feasible coefficients to start from; None for zeros.
        terms : Terms or None
            Of the objective, without an offset; None for none.
        """
        cdef double[::1] b = np.zeros(self.n) if start is None else np.array(start, dtype=np.float64)
        cdef double[::1] f = np.empty(self.n)
        cdef const double[::1] e, plus, minus
        cdef lsvm_smo problem = self.p
        cdef lsvm_coef_terms own
        cdef lsvm_report report
        cdef int code
        if lo.shape[0] != self.n or hi.shape[0] != self.n or b.shape[0] != self.n:
            raise ValueError("lo, hi and start must have one entry a row")
        if terms is not None:
            e, plus, minus = terms.e, terms.plus, terms.minus
            if e.shape[0] != self.n or plus.shape[0] != self.n or minus.shape[0] != self.n or self.p.offset:
                raise ValueError("terms must have one entry a row, and go without an offset")
            own.e, own.plus, own.minus, own.total = &e[0], &plus[0], &minus[0], terms.total
            problem.terms = &own
        with nogil:
            code = lsvm_smo_solve(self.ops, &problem, &lo[0], &hi[0], tolerance, &b[0], &f[0], &report)
        raise_for(code)
        return np.asarray(b), np.asarray(f), as_report(&report)

    def online_epoch(self, const double[::1] lo, const double[::1] hi, const int64_t[::1] order, double tolerance,
                     double[::1] b) -> int:
        """Visit the rows of `order` once, as LaSVM does (csrc/lasvm.h), with an offset; the number of steps on pairs.

        Parameters
        ----------
        lo, hi : (n,) float64
            Bounds of the coefficients, lo < hi on the rows of `order`.
        tolerance : float
            The largest violation of a pair that is let be.
        b : (n,) float64
            Feasible coefficients, which are changed.
        """
        cdef lsvm_epoch epoch
        cdef int64_t steps = 0
        cdef int code
        if self.rows is not None:
            raise ValueError("K must have all its rows")
        if lo.shape[0] != self.n or hi.shape[0] != self.n or b.shape[0] != self.n:
            raise ValueError("lo, hi and b must have one entry a row")
        if not order.shape[0]:
            return 0
        if not 0 <= np.min(order) <= np.max(order) < self.n:
            raise ValueError("the order names rows that do not exist")
        epoch.order, epoch.n, epoch.lo, epoch.hi, epoch.tolerance = &order[0], order.shape[0], &lo[0], &hi[0], tolerance
        with nogil:
            code = lsvm_lasvm_epoch(&self.p, &epoch, &b[0], &steps)
        raise_for(code)
        return steps

    def path(self, const double[::1] weight, unit, const double[::1] costs, double tolerance, before=None):
        """Solve along a regularisation path: ascending costs, each solution the start of the next.

        Gaps and `converged` are those of the loop, in the precision of K: use `solve` to certify a solution that is
        kept. With a limit, a cost for which max_iterations do not suffice ends the path: its report says so, and larger
        costs have none.

        Parameters
        ----------
        weight : (n,) float64
            Costs of the rows at cost 1; 0 for rows held out.
        unit : (n,) float64 or None
            K times the coefficients from which the path starts, at cost 1: all at the bound on the side of y, and 0
            where it is infinite.
        costs : (m,) float64, ascending, 1 <= m <= 64; the first one may be below that of `before`.
        tolerance : float
            As in `solve`.
        before : (cost, b, f) or None
            A solution of a path, from which this one continues; `unit` is then not read.

        Returns
        -------
        b, f : (m, n) float64, or fewer rows where the path ended before
            Coefficients, and Kb without the bias.
        reports : list of DualReport
        """
        cdef int64_t m = costs.shape[0]
        cdef double[:, ::1] b = np.empty((m, self.n))
        cdef double[:, ::1] f = np.empty((m, self.n))
        cdef const double[::1] first_f = unit if before is None else before[2]
        cdef const double[::1] first_b = first_f if before is None else before[1]
        cdef lsvm_path path
        cdef lsvm_before known
        cdef lsvm_dual numbers
        cdef lsvm_report[64] reports
        cdef int64_t tried = 0
        cdef int code
        if weight.shape[0] != self.n or first_f.shape[0] != self.n or first_b.shape[0] != self.n or not 1 <= m <= 64:
            raise ValueError("weight and unit or b and f need one entry a row, costs 1 to 64 entries")
        path = lsvm_path(&weight[0], NULL, &first_f[0], NULL, &costs[0], m)
        if before is not None:
            known = lsvm_before(before[0], &first_b[0], &first_f[0])
            path.before = &known
        if self.dual is not None:
            dual = self.dual
            numbers = lsvm_dual(dual.low, dual.high, dual.e, dual.plus, dual.minus, dual.sided)
            path.dual = &numbers
        with nogil:
            code = lsvm_smo_path(self.ops, &self.p, &path, tolerance, &b[0, 0], &f[0, 0], reports, &tried)
        raise_for(code)
        return np.asarray(b)[:tried], np.asarray(f)[:tried], [as_report(&reports[i]) for i in range(tried)]
