/* holdout.h - kernel ridge regression of the first t of n rows, the values it gives to the others, and how a loss of these
 * changes with the kernel.
 *
 * With K the kernel of the t rows, H that of the others with these, and targets y of the t rows,
 *
 *     a = (K + ridge I)^-1 y,    f = H a.
 *
 * Of a loss with the derivative u by f, the derivative by H is u a', and that by K is -v a', where
 * v = (K + ridge I)^-1 H' u: it is `left` a' by both, one above the other, with -v above u.
 *
 * Matrices are row-major float32, with `ld` floats from row to row. The caller owns all arrays. Nothing here allocates.
 */
#ifndef LSVM_HOLDOUT_H
#define LSVM_HOLDOUT_H

#include <stdint.h>

#include "lapack.h"
#include "status.h"

struct lsvm_holdout {
    int n, t, ld;
    float ridge;
    float *kernel;      /* n x t: K, and H below it */
    const float *y;     /* t */
    float *factor;      /* t x t */
    float *a;           /* t */
    float *values;      /* n - t: f */
    float *left;        /* n */
    double ridge_slope; /* the derivative of the loss by the ridge */
};

/* Finds a and values. LSVM_OK, or LSVM_SINGULAR where K + ridge I is not positive definite in float32. */
int lsvm_holdout_values(const struct lsvm_lapack *lapack, struct lsvm_holdout *h);

/* Finds left and ridge_slope from what `lsvm_holdout_values` found, and u (n - t). Writes 0 on the diagonal of K, which is
 * 1 wherever the rows are. */
void lsvm_holdout_slope(const struct lsvm_lapack *lapack, struct lsvm_holdout *h, const float *u);

#endif
