/* sdca.h - dual coordinate ascent for the task-coupled linear SVM of linear.h.
 *
 *     max_a  sum_i a_i - 1/2 |sum_i a_i y_i m_i phi_i|^2  [- sum_i a_i^2 / 4 c_i],   0 <= a_i <= c_i  [a_i unbounded],
 *
 * the brackets being those of the squared hinge. One coordinate at a time in random order, rows at a bound left out
 * while their gradient keeps them there (Hsieh et al., ICML 2008), until the duality gap, evaluated over all rows, is
 * at most `tolerance` times the primal objective.
 *
 * All is float64 but the rows. The caller owns the arrays of lsvm_sdca, alpha and w; the solver allocates and frees the
 * rest.
 */
#ifndef LSVM_SDCA_H
#define LSVM_SDCA_H

#include "linear.h"
#include "status.h"

/* All that a step on one coordinate reads and writes besides the row and the weights. */
struct lsvm_coordinate {
    double alpha, upper;
    double inverse; /* of the curvature */
    double ridge;   /* 1 / 2c with the squared hinge, else 0 */
    double y;
};

/* One pass over the active coordinates. */
struct lsvm_sdca_pass {
    struct lsvm_coordinate *coordinates;
    double *w;
    int64_t *active; /* in and out: those left out are gone */
    int64_t n_active;
    double above, below; /* projected gradients of the pass before: what leaves a coordinate out */
    double largest, smallest;
};

struct lsvm_sdca {
    const double *y;    /* n: +1, -1, or 0 where a row takes no part */
    const double *cost; /* n, >= 0 */
    int squared;
    double tolerance;
    int64_t max_passes; /* in units of n steps */
    uint64_t seed;
    lsvm_poll poll; /* may be NULL; asked after every pass */
    void *context;
};

struct lsvm_sdca_report {
    double primal, dual;
    int64_t steps;
    int converged;
};

/* From alpha (clipped to its box; overwritten by the solution) to the tolerance; w receives the weights. LSVM_OK (see
 * report->converged), LSVM_NO_MEMORY (then alpha is as it was) or LSVM_INTERRUPTED (then alpha is as far as it
 * came). */
int lsvm_sdca_solve(const struct lsvm_ops *ops, const struct lsvm_linear *p, const struct lsvm_sdca *s, double *alpha,
                    double *w, struct lsvm_sdca_report *report);

#endif
