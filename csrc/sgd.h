/* sgd.h - stochastic subgradients of the primal of linear.h, with the hinge loss or one of values: for rows that come
 * block by block.
 *
 * P(w) = 1/2 |w|^2 + sum_i c_i loss(y_i, f_i) over n rows is 1-strongly convex. Step t on a random row i goes
 * along n c_i times its subgradient, eta_t = 1 / (t0 + t) (Shalev-Shwartz et al., ICML 2007, without their projection).
 * The average of the iterates is kept as they go, at the cost of the steps that change something.
 *
 * All is float64 but the rows. The caller owns all arrays; nothing here allocates or fails.
 */
#ifndef LSVM_SGD_H
#define LSVM_SGD_H

#include "linear.h"

/* w = scale * v; the sum of iterates since `weight` was zero is weight * v - late. */
struct lsvm_sgd {
    double *v, *late; /* lsvm_linear_size each; the caller's */
    double scale, weight;
    double rows;                         /* n of the whole problem */
    double t0;                           /* > 0 */
    int64_t steps;                       /* taken so far, over all blocks */
    int64_t iterates;                    /* in the sum */
    const struct lsvm_residuals *values; /* the loss of values, whose y and cost are not read; NULL for the hinge */
};

/* One step on each row of `order` (indices into p's rows), in that order. y: values, or +1, -1, 0 takes no part;
 * cost: c_i. */
void lsvm_sgd_pass(const struct lsvm_ops *ops, const struct lsvm_linear *p, const double *y, const double *cost,
                   const int64_t *order, int64_t n, struct lsvm_sgd *s);

#endif
