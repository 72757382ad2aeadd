/* mixture.h - a mixture of Gaussians with a linear function in each component: what rows are to both.
 *
 * For row x and component j of K
 *
 *     log_j = offset_j - 1/2 |A_j (x - mean_j)|^2,    f_j = w_j . x + b_j,
 *
 * A_j lower triangular, or diagonal. Rows are float32, all else float64. Rows are worked on side by side, one a lane, so
 * that what a row gets depends on it alone.
 */
#ifndef LSVM_MIXTURE_H
#define LSVM_MIXTURE_H

#include <stdint.h>

#include "simd.h"

enum {
    LSVM_MIXTURE_GROUP = 4, /* rows of a triangle that are multiplied at once */
    LSVM_MIXTURE_ROWS = 16  /* rows x in a block, at most */
};

struct lsvm_mixture {
    int64_t components, d;
    int full;
    const double *mean; /* K x d */
    /* K times lsvm_mixture_stride. Diagonal: d factors. Full: the triangle's rows in groups of four, and of a group its
     * columns one after another, four numbers each, up to the last row's diagonal; what is beyond a row's own is 0. */
    const double *factor;
    const double *offset;  /* K */
    const double *weights; /* K x (d + 1), the bias last */
};

static inline int64_t lsvm_mixture_stride(int64_t d, int full)
{
    int64_t stride = 0;
    for (int64_t r = 0; full && r < d; r += LSVM_MIXTURE_GROUP)
        stride += LSVM_MIXTURE_GROUP * (r + LSVM_MIXTURE_GROUP < d ? r + LSVM_MIXTURE_GROUP : d);
    return full ? stride : d;
}

/* logs and values (n x K each) of rows x (n x d, dense). scratch: 2 * LSVM_MIXTURE_ROWS * d doubles, LSVM_ALIGN
 * aligned. */
void lsvm_mixture_values(const struct lsvm_ops *ops, const struct lsvm_mixture *m, const float *x, int64_t n,
                         double *scratch, double *logs, double *values);

#endif
