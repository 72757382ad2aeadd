/* holdout.h - kernel ridge regression of the first t of n rows, the values it gives to the others, and how a loss of these
 * changes with the kernel.
 *
 * With K the kernel of the t rows, H that of the others with these, and targets Y of the t rows, a column an output,
 *
 *     A = (K + ridge I)^-1 Y,    F = H A.
 *
 * Of a loss with the derivative U by F, the derivative by H is U A', and that by K is -V A', where
 * V = (K + ridge I)^-1 H' U: it is `left` A' by both, one above the other, with -V above U.
 *
 * Matrices are row-major float32. Those of t columns but A' have `ld` floats from row to row, the others as many as they
 * have columns. The caller owns all arrays. Nothing here allocates.
 */
#ifndef LSVM_HOLDOUT_H
#define LSVM_HOLDOUT_H

#include <stdint.h>

#include "lapack.h"
#include "simd.h"
#include "status.h"

enum { LSVM_HOLDOUT_BLOCK = 32 }; /* rows of slopes at once */

struct lsvm_holdout {
    int n, t, outputs, ld;
    float ridge;
    float *kernel;      /* n x t: K, and H below it */
    const float *y;     /* t x outputs */
    float *factor;      /* t x t */
    float *a;           /* outputs x t: A' */
    float *values;      /* (n - t) x outputs: F */
    float *left;        /* outputs x n */
    float *scratch;     /* LSVM_HOLDOUT_BLOCK x t, for several outputs */
    double *rows;       /* n: sums of the slopes' rows */
    double *columns;    /* t: and of their columns */
    double ridge_slope; /* the derivative of the loss by the ridge */
};

/* Finds a and values. LSVM_OK, or LSVM_SINGULAR where K + ridge I is not positive definite in float32. */
int lsvm_holdout_values(const struct lsvm_ops *ops, const struct lsvm_lapack *lapack, struct lsvm_holdout *h);

/* Finds the slopes, rows, columns and ridge_slope from what `lsvm_holdout_values` found, and u ((n - t) x outputs). The
 * slopes take the place of the kernel: they are the derivative by it times itself, entry by entry, which is that by its
 * logarithm. On the diagonal of K they are 0, as it is 1 wherever the rows are. */
void lsvm_holdout_slopes(const struct lsvm_ops *ops, const struct lsvm_lapack *lapack, struct lsvm_holdout *h,
                         const float *u);

#endif
