/* ridge.h - leave-one-out values of kernel ridge regression, and how their loss changes with the kernel.
 *
 * With A = (K + ridge I)^-1, targets y and a = A y, the value of row i by the rows without it is
 * f_i = y_i - a_i / A_ii (Cawley and Talbot 2004). The loss is the squared hinge of all rows and outputs,
 *
 *     sum_i w_i sum_k h_ik^2,    h_ik = max(0, 1 - y_ik f_ik) = max(0, y_ik a_ik / A_ii),
 *
 * and its derivative by K is, with u_ik = 2 w_i h_ik y_ik / A_ii and s_i = sum_k u_ik a_ik / A_ii >= 0,
 *
 *     G = A diag(s) A - (A u a' + a u' A) / 2.
 *
 * Matrices are row-major float32; n x n ones have `ld` floats from row to row and are symmetric. Products are those of
 * BLAS and LAPACK, which the caller hands in and keeps on one thread; sums that are returned are float64. The caller
 * owns all arrays. Nothing here allocates.
 */
#ifndef LSVM_RIDGE_H
#define LSVM_RIDGE_H

#include <stdint.h>

#include "lapack.h"
#include "status.h"

struct lsvm_ridge {
    int n, outputs, ld;
    float ridge;
    const float *kernel; /* n x n */
    const float *y;      /* n x outputs: -1 or +1; or values, of which loss, u and slope say nothing */
    const double *w;     /* n, from 0 */
    float *inverse;      /* n x n: A */
    float *slope;        /* n x n: G times the kernel, entry by entry, 0 on the diagonal: K_ii does not change */
    float *scaled;       /* n x n, scratch */
    float *a, *u, *au;   /* n x outputs: a, u, and A u */
    double *sums;        /* n: of the rows of `slope` */
    double loss;
    double ridge_slope; /* the derivative of the loss by the ridge */
};

/* The Cholesky factor of a kernel matrix (n x n) with the ridge on its diagonal, into a triangle of `out`, which has the
 * same `ld`: the lower one for "U", the upper one for "L", as LAPACK sees them in its columns. LSVM_OK, or LSVM_SINGULAR
 * where the matrix is not positive definite in float32. */
int lsvm_ridge_factor(const struct lsvm_lapack *lapack, char *triangle, const float *kernel, int n, int ld, float ridge,
                      float *out);

/* Finds f (as y - a / A_ii, from `a` and `inverse`), loss and u. LSVM_OK, or LSVM_SINGULAR where K + ridge I is not
 * positive definite in float32. */
int lsvm_ridge_values(const struct lsvm_lapack *lapack, struct lsvm_ridge *r);

/* Finds slope, sums and ridge_slope from what `lsvm_ridge_values` found. */
void lsvm_ridge_slope(const struct lsvm_lapack *lapack, struct lsvm_ridge *r);

/* Values (k x outputs) of k rows by the m others, into `out`: a Cholesky factor of the others will do. Overwrites
 * `inverse` and `a`. LSVM_OK, or LSVM_SINGULAR where K + ridge I of the others is not positive definite in float32. */
int lsvm_ridge_left_out(const struct lsvm_lapack *lapack, struct lsvm_ridge *r, const int64_t *rows, int k,
                        const int64_t *others, int m, float *out);

#endif
