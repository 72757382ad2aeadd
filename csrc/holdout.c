#include "holdout.h"

#include <string.h>

#include "ridge.h"

/* The upper triangle of a row-major matrix is the lower one of a column-major one, which LAPACK factors in a fifth less
 * time. */
static char UPPER[] = "L", PLAIN[] = "N", TRANSPOSED[] = "T";
static float zero = 0.0f, one = 1.0f;
static int single = 1;

/* Solves with the factor, in place. */
static void solve(const struct lsvm_lapack *lapack, struct lsvm_holdout *h, float *x)
{
    int info = 0;
    lapack->potrs(UPPER, &h->t, &single, h->factor, &h->ld, x, &h->t, &info);
}

int lsvm_holdout_values(const struct lsvm_lapack *lapack, struct lsvm_holdout *h)
{
    int others = h->n - h->t;
    const int status = lsvm_ridge_factor(lapack, UPPER, h->kernel, h->t, h->ld, h->ridge, h->factor);
    if (status != LSVM_OK)
        return status;
    memcpy(h->a, h->y, (size_t)h->t * sizeof(float));
    solve(lapack, h, h->a);
    /* rows are columns of BLAS */
    lapack->gemm(TRANSPOSED, PLAIN, &single, &others, &h->t, &one, h->a, &h->t, h->kernel + (int64_t)h->t * h->ld,
                 &h->ld, &zero, h->values, &single);
    return LSVM_OK;
}

void lsvm_holdout_slope(const struct lsvm_lapack *lapack, struct lsvm_holdout *h, const float *u)
{
    int others = h->n - h->t;
    memcpy(h->left + h->t, u, (size_t)others * sizeof(float));
    lapack->gemm(PLAIN, TRANSPOSED, &h->t, &single, &others, &one, h->kernel + (int64_t)h->t * h->ld, &h->ld,
                 h->left + h->t, &single, &zero, h->left, &h->t);
    solve(lapack, h, h->left);
    h->ridge_slope = 0.0;
    for (int i = 0; i < h->t; i++) {
        h->left[i] = -h->left[i];
        h->ridge_slope += (double)h->left[i] * (double)h->a[i];
        h->kernel[(int64_t)i * h->ld + i] = 0.0f;
    }
}
