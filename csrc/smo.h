/* smo.h - the kernel dual of a loss, two coordinates at a time: of the hinge, or of any that lsvm_coef_terms describes.
 *
 * In signed coefficients b_i = y_i alpha_i the problem is
 *
 *     max_b  sum_i y_i b_i - 1/2 b'Kb    subject to  lo_i <= b_i <= hi_i   [and sum_i b_i = 0 with an offset],
 *
 * with [lo, hi] = [0, C_i] where y_i > 0 and [-C_i, 0] where y_i < 0. A row with lo = hi = 0 takes no part, and its
 * entry of the gradient still yields its decision value: that is how held-out rows are scored. The gradient is g = y -
 * Kb; the duality gap is sum_i max(up_i g_i, dn_i g_i) with up = hi - b, dn = lo - b, and with g - bias for g with an
 * offset.
 *
 * The caller owns all arrays; they are LSVM_ALIGN aligned and n is a multiple of LSVM_PAD (pad with lo = hi = 0 and y =
 * 0; the padding of the kernel matrix must be finite). K is float32 or float64. Objectives and gaps are in units of the
 * costs C_i, decision values and violations in those of y. The solvers allocate their working arrays and free them
 * again; they return a code of status.h.
 */
#ifndef LSVM_SMO_H
#define LSVM_SMO_H

#include "kernels.h"
#include "simd.h"
#include "status.h"

/* A term of each coefficient, for losses whose dual has one (n each; all from 0):
 *
 *     max_b  sum_i y_i b_i - 1/2 b'Kb - sum_i (e_i |b_i| + 1/2 plus_i max(b_i, 0)^2 + 1/2 minus_i min(b_i, 0)^2)
 *
 * over lo_i <= b_i <= hi_i with lo_i <= 0 <= hi_i, which may be infinite where plus_i and minus_i are above 0. With
 * C_i the cost of row i, the loss is the convex conjugate of the term over the box, divided by C_i: see
 * localsvm/targets/losses.py. `total` is the sum of the costs, the unit of the tolerance. Without an offset only. */
struct lsvm_coef_terms {
    const double *e, *plus, *minus;
    double total;
};

/* C_i loss of row i at the gradient g = y_i - (Kb)_i: the largest a g - term of a over the box. */
static inline double lsvm_coef_loss(const struct lsvm_coef_terms *terms, int64_t i, double lo, double hi, double g)
{
    const double e = terms->e[i], over = g > e ? g - e : g < -e ? g + e : 0;
    const double d = over > 0 ? terms->plus[i] : terms->minus[i], most = over > 0 ? hi : lo;
    double a = over == 0 ? 0 : d * (most < 0 ? -most : most) > (over < 0 ? -over : over) ? over / d : most;
    return a * over - 0.5 * d * a * a;
}

/* Part of row i in the duality gap: C_i loss - (b_i g - term) >= 0. */
static inline double lsvm_coef_gap(const struct lsvm_coef_terms *terms, int64_t i, double lo, double hi, double b,
                                   double g)
{
    const double e = terms->e[i], own = b > 0 ? terms->plus[i] : terms->minus[i];
    return lsvm_coef_loss(terms, i, lo, hi, g) - b * g + e * (b < 0 ? -b : b) + 0.5 * own * b * b;
}

struct lsvm_smo {
    int64_t n;         /* rows, padding included */
    int64_t ld;        /* elements from one row of K to the next */
    const void *k;     /* n x n, symmetric positive semidefinite */
    int is_double;     /* elements of K, and the arithmetic of the gradient: float64 if nonzero, else float32 */
    int unit_diagonal; /* K_ii = 1 for all i: a faster loop */
    int offset;        /* equality constraint and bias */
    const double *y;   /* n, targets: +1 and -1, or values; 0 in the padding */
    int64_t max_iterations;
    lsvm_poll poll; /* may be NULL; asked every few thousand iterations */
    void *context;
    const struct lsvm_coef_terms *terms; /* NULL for none */
    /* The rows of k, where they are computed when they are first read: k is float32 then, and its diagonal 1. NULL where
     * all rows are there. */
    const struct lsvm_kernel_rows *rows;
    double limit; /* above 0: the tolerance is relative, to the objective with losses of residuals up to this, or of
                     residuals of 1/200 of it where that is more */
};

/* Result of a solve; `gap` and `violation` are evaluated in float64, after lsvm_smo_solve from a fresh Kb. */
struct lsvm_report {
    double objective; /* dual objective */
    double gap;       /* duality gap, in units of the objective */
    double violation; /* largest KKT violation of a pair (offset only) */
    double bias;
    int64_t iterations;
    int converged;
};

/* Working arrays of one solve, all n long; made by lsvm_smo_state_new, freed by lsvm_smo_state_free. */
struct lsvm_smo_state {
    double *b, *lo, *hi;
    void *g, *up, *dn, *diagonal; /* elements as K's */
    double *curvature;            /* K_ii, and 4 n elements as K's for the loop; with terms alone */
    void *terms;
    int64_t iterations;
    int64_t stop_at; /* iterations at which the loop returns */
    double gap;      /* as the loop last saw it, in K's precision */
    int converged;   /* the loop's tolerance was met */
    void *block;
};

/* From the gradient of a state until its gap is at most `tolerance`, or stop_at iterations are reached; a code. */
typedef int (*lsvm_smo_loop)(const struct lsvm_smo *problem, struct lsvm_smo_state *state, double tolerance);

/* Allocate a state; LSVM_OK or LSVM_NO_MEMORY (then *state owns nothing). */
int lsvm_smo_state_new(const struct lsvm_smo *problem, struct lsvm_smo_state *state);
void lsvm_smo_state_free(struct lsvm_smo_state *state);

/* out = K c in float64; rows with c_i = 0 are not read. */
void lsvm_smo_multiply(const struct lsvm_ops *ops, const struct lsvm_smo *problem, const double *c, double *out);

/* Solve from b (feasible; overwritten by the solution) to `tolerance`: without offset gap <= tolerance * sum_i C_i
 * (`total` with terms; with a limit: the limited objective), with offset max violating pair <= tolerance. The gap is
 * certified in float64 and the loop resumed where rounding had misled it. f (n) receives Kb, without the bias. LSVM_OK
 * (see report->converged), LSVM_NO_MEMORY or LSVM_INTERRUPTED. */
int lsvm_smo_solve(const struct lsvm_ops *ops, const struct lsvm_smo *problem, const double *lo, const double *hi,
                   double tolerance, double *b, double *f, struct lsvm_report *report);

/* The dual of a loss of values for a row of cost 1: bounds, and the numbers of its term. For a row of cost C_i bounds
 * are C_i times, plus and minus 1 / C_i times these. Without a term all three are 0. */
struct lsvm_dual {
    double low, high; /* low <= 0 <= high, which may be infinite */
    double e, plus, minus;
    int sided; /* classes: the bound on the other side than y_i is 0 */
};

/* Where a path goes on from: the solution b and f = Kb for `cost`. */
struct lsvm_before {
    double cost;
    const double *b, *f;
};

/* A regularisation path: rows of cost C weight_i for ascending C. It begins with all coefficients at their bounds,
 * those on the side of y_i, where these are finite; `unit` is K times them at C = 1. With `before` (may be NULL) it
 * goes on from there, and `unit` is not read. */
struct lsvm_path {
    const double *weight;         /* n, 0 for rows held out */
    const struct lsvm_dual *dual; /* NULL for the hinge, y_i = -1 or 1 */
    const double *unit;           /* n */
    const struct lsvm_before *before;
    const double *costs;
    int64_t n_costs;
};

/* Solve along a path, each cost from the last one's solution: coefficients at a bound grow with C, free ones stay, as
 * far as the boxes let them where C is below that of `before`. b and f (costs x n) receive coefficients and Kb; reports
 * (costs) come uncertified: gaps as the loop saw them. `tried` receives the number of costs that have all this: with a
 * limit the first one ends the path for which max_iterations do not suffice. The terms of the problem are not read. */
int lsvm_smo_path(const struct lsvm_ops *ops, const struct lsvm_smo *problem, const struct lsvm_path *path,
                  double tolerance, double *b, double *f, struct lsvm_report *reports, int64_t *tried);

#endif
