/* holdout.h - kernel ridge regression of the first t of n rows, the values it gives to the others, and how a loss of these
 * changes with the kernel.
 *
 * With K the kernel of the t rows, H that of the others with these, and targets y of the t rows,
 *
 *     a = (K + ridge I)^-1 y,    f = H a.
 *
 * Of a loss with the derivative u by f, the derivative by H is u a', and that by K is -(v a' + a v') / 2, where
 * v = (K + ridge I)^-1 H' u.
 *
 * Matrices are row-major float32, those with a column for each of the t rows have `ld` floats from row to row. The caller
 * owns all arrays. Nothing here allocates.
 */
#ifndef LSVM_HOLDOUT_H
#define LSVM_HOLDOUT_H

#include <stdint.h>

#include "lapack.h"
#include "status.h"

struct lsvm_holdout {
    int n, t, outputs, ld;
    float ridge;
    const float *kernel; /* n x t: K, and H below it */
    const float *y;      /* t x outputs */
    float *factor;       /* t x t */
    float *a, *v;        /* outputs x t: a row an output */
    float *values;       /* (n - t) x outputs: f */
    float *slope;        /* n x t: derivatives by K and H times these, entry by entry, and 0 on the diagonal of K, which
                            does not change; that by H is halved, as the other half is that by its transpose */
    double *sums;        /* n: of all that a row has in `slope`, and in the transpose of what is below K */
    double ridge_slope;  /* the derivative of the loss by the ridge */
};

/* Finds a and values. LSVM_OK, or LSVM_SINGULAR where K + ridge I is not positive definite in float32. */
int lsvm_holdout_values(const struct lsvm_lapack *lapack, struct lsvm_holdout *h);

/* Finds slope, sums and ridge_slope from what `lsvm_holdout_values` found, and u ((n - t) x outputs). */
void lsvm_holdout_slope(const struct lsvm_lapack *lapack, struct lsvm_holdout *h, const float *u);

#endif
