/* ridge.h - values that kernel ridge regression gives to rows by others.
 *
 * With A = (K + ridge I)^-1, targets y and a = A y, the value of row i by the rows without it is
 * y_i - a_i / A_ii (Cawley and Talbot 2004).
 *
 * Matrices are row-major float32; n x n ones have `ld` floats from row to row and are symmetric: the upper triangle is
 * the lower one of BLAS and LAPACK. Their Cholesky factors U, U'U = K + ridge I, are those of `cholesky` in ops.h; it
 * writes the upper triangle of `u` and may write anything below it, and `u` may be `k`. Both are LSVM_ALIGN aligned, and
 * `ld` is a multiple of LSVM_PAD. It returns LSVM_SINGULAR where K + ridge I is not positive definite in float32. Other
 * products are those of BLAS and LAPACK, which the caller hands in and keeps on one thread. The caller owns all arrays.
 * Nothing here allocates.
 */
#ifndef LSVM_RIDGE_H
#define LSVM_RIDGE_H

#include <stdint.h>

#include "lapack.h"
#include "simd.h"
#include "status.h"

struct lsvm_ridge {
    int n, outputs, ld;
    float ridge;
    const float *kernel; /* n x n */
    const float *y;      /* n x outputs */
    float *inverse;      /* n x n: A */
    float *a;            /* outputs x n: a column an output, as LAPACK has it */
};

/* Copies a matrix (m x k) into the columns of another, as LAPACK has them, whose rows have `ld` floats. */
void lsvm_ridge_transpose(const float *from, int m, int k, float *to, int ld);

/* Solves with a factor that `cholesky` made: b (outputs x n, its rows have `ldb` floats) becomes what the matrix with the
 * ridge makes b of. */
void lsvm_ridge_solve(const struct lsvm_lapack *lapack, int n, int outputs, float *factor, int ld, float *b, int ldb);

/* Values (k x outputs) that coefficients a (outputs x m) give to k rows by their kernel (k x m) with the m rows. */
void lsvm_ridge_values(const struct lsvm_lapack *lapack, float *kernel, int k, int m, int ld, float *a, int outputs,
                       float *values);

/* The same transposed: sums (outputs x m) of the rows of such a kernel by weights u (outputs x k). The rows of both have
 * `ldu` floats. */
void lsvm_ridge_sums(const struct lsvm_lapack *lapack, float *kernel, int k, int m, int ld, float *u, int outputs,
                     int ldu, float *sums);

/* Finds `a`, and of `inverse` the upper triangle. LSVM_OK, or LSVM_SINGULAR where K + ridge I is not positive definite
 * in float32. */
int lsvm_ridge_each_left_out(const struct lsvm_ops *ops, const struct lsvm_lapack *lapack, struct lsvm_ridge *r);

/* Values (k x outputs) of k rows by the m others, k + m = n, into `out`: a Cholesky factor of the others will do.
 * Overwrites `inverse` and `a`. LSVM_OK, or LSVM_SINGULAR where K + ridge I of the others is not positive definite in
 * float32. */
int lsvm_ridge_left_out(const struct lsvm_ops *ops, const struct lsvm_lapack *lapack, struct lsvm_ridge *r,
                        const int64_t *rows, int k, const int64_t *others, int m, float *out);

#endif
