/* mixture.h - the decision function of a mixture of Gaussians with a linear SVM in each component.
 *
 * For row x and component j of K
 *
 *     log_j = offset_j - 1/2 |A_j (x - mean_j)|^2,    f_j = w_j . x + b_j,    A_j lower triangular, or diagonal,
 *     value = sum_j exp(log_j) side(f_j) / sum_j exp(log_j),    side(f) = exp(-loss(f)) - exp(-loss(-f)),
 *
 * the loss hinge, max(0, 1 - f), or its square; for a model of values side(f) is f. With `hard` the value is side(f_j)
 * of the largest log_j.
 *
 * Most components lie so far from a row that exp(log_j) is nothing beside the largest. They are found in float32, along
 * LSVM_MIXTURE_SIDES directions u of each, which are chosen so that the other components lie far apart there:
 * |u . (x - mean_j)| is at most |A_j (x - mean_j)| where the u are orthonormal to A_j^-1. So
 *
 *     log_j <= offset_j - 1/2 sum_u (u . (x - mean_j))^2,
 *
 * and more by what float32 may be off: see lsvm_mixture_screen. The component with the largest bound is computed first, in
 * float64, and then those whose bound is not LSVM_MIXTURE_NOTHING below it. Rows for which the bounds say nothing (values
 * around 1e15) have all components computed.
 *
 * Rows are float32. They are worked on side by side, one a lane: what a row gets depends on it alone.
 */
#ifndef LSVM_MIXTURE_H
#define LSVM_MIXTURE_H

#include <stdint.h>

#include "simd.h"

enum {
    LSVM_MIXTURE_GROUP = 4,   /* rows of a triangle, or directions, that are multiplied at once */
    LSVM_MIXTURE_SIDES = 2,   /* directions of a component */
    LSVM_MIXTURE_ROWS = 16,   /* rows x that a component is computed for at once, at most */
    LSVM_MIXTURE_BLOCK = 512, /* rows x whose components are known before the next are looked at */
    LSVM_MIXTURE_NOTHING = 25 /* exp(-25) is 1e-11: what a component adds that is further below the largest */
};

enum lsvm_mixture_loss { LSVM_MIXTURE_HINGE, LSVM_MIXTURE_SQUARED_HINGE, LSVM_MIXTURE_VALUES };

/* What bounds log_j: offset + slope (|x - centre|^2) - 31/64 sum_u (u . (x - centre) - side)^2.
 *
 * With g = (d + 4) 2^-24 the products are off by e <= g (|u| |x - centre| + |side|), and (t - e)^2 is at least
 * 63/64 t^2 - 63 e^2. So slope is 128 g^2 times the sum of |u|^2, and `offset` is offset_j plus 128 g^2 times the sum of
 * side^2, rounded up; the other 1/64 is for the rounding of this formula itself. */
struct lsvm_mixture_screen {
    float side[LSVM_MIXTURE_SIDES];
    float offset, slope;
};

struct lsvm_mixture {
    int64_t components, d;
    int full, loss, hard; /* loss: one of lsvm_mixture_loss */
    const double *mean;   /* K x d */
    /* K times lsvm_mixture_stride. Diagonal: d factors. Full: the triangle's rows in groups of four, and of a group its
     * columns one after another, four numbers each, up to the last row's diagonal; what is beyond a row's own is 0. */
    const double *factor;
    const double *offset;  /* K */
    const double *weights; /* K x (d + 1), the bias last */
    const float *centre;   /* d: any point among the rows */
    /* The directions of two components at a time, feature by feature, four numbers each; 0 for a missing last one. */
    const float *directions;
    const struct lsvm_mixture_screen *screen; /* K */
};

static inline int64_t lsvm_mixture_stride(int64_t d, int full)
{
    int64_t stride = 0;
    for (int64_t r = 0; full && r < d; r += LSVM_MIXTURE_GROUP)
        stride += LSVM_MIXTURE_GROUP * (r + LSVM_MIXTURE_GROUP < d ? r + LSVM_MIXTURE_GROUP : d);
    return full ? stride : d;
}

/* Doubles of scratch that lsvm_mixture_decide needs, for K components of d features. */
int64_t lsvm_mixture_scratch(int64_t components, int64_t d);

/* out[i]: the value, between -1 and 1, of each row of x (n x d, dense). scratch: LSVM_ALIGN aligned. */
void lsvm_mixture_decide(const struct lsvm_ops *ops, const struct lsvm_mixture *m, const float *x, int64_t n,
                         double *scratch, double *out);

#endif
