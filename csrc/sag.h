/* sag.h - the stochastic average gradient (Schmidt, Le Roux, Bach, Mathematical Programming 162, 2017) on the primal of
 * linear.h, with the squared hinge: P(w) = 1/2 |w|^2 + sum_i c_i max(0, 1 - y_i f_i)^2.
 *
 * coef_i is minus the derivative of row i's loss by f_i where the row was last visited, v = sum_i coef_i m_i phi_i, and
 * w - v stands for the gradient. A step on row i brings coef_i up to date and goes to (1 - eta) w + eta v. That would
 * touch all weights, so w is kept as S u + (1 - S) v: a step multiplies S by 1 - eta, and changes u and v only where the
 * row has entries.
 *
 * All is float64 but the rows. The caller owns all arrays; nothing here allocates or fails.
 */
#ifndef LSVM_SAG_H
#define LSVM_SAG_H

#include "linear.h"

struct lsvm_sag {
    double *w;    /* lsvm_linear_size; the weights before and after a pass, u within */
    double *v;    /* lsvm_linear_size */
    double *coef; /* rows */
    double eta;   /* > 0, at most 1 / (rows taking part), so that S stays far from 0 in a pass over as many */
};

/* One step on each row of `order` (n indices into p's rows), in that order. y: +1 or -1; cost: c_i. */
void lsvm_sag_pass(const struct lsvm_ops *ops, const struct lsvm_linear *p, const double *y, const double *cost,
                   const int64_t *order, int64_t n, struct lsvm_sag *s);

#endif
