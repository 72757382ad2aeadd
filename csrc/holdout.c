#include "holdout.h"

#include "ops.h"
#include "ridge.h"

/* The upper triangle of a row-major matrix is the lower one of a column-major one, which LAPACK factors in a fifth less
 * time. */
static char UPPER[] = "L", PLAIN[] = "N", TRANSPOSED[] = "T";
static float zero = 0.0f, one = 1.0f;

int lsvm_holdout_values(const struct lsvm_lapack *lapack, struct lsvm_holdout *h)
{
    int others = h->n - h->t, info = 0;
    const int status = lsvm_ridge_factor(lapack, UPPER, h->kernel, h->t, h->ld, h->ridge, h->factor);
    if (status != LSVM_OK)
        return status;
    lsvm_ridge_transpose(h->y, h->t, h->outputs, h->a, h->t);
    lapack->potrs(UPPER, &h->t, &h->outputs, h->factor, &h->ld, h->a, &h->t, &info);
    /* rows are columns of BLAS */
    lapack->gemm(TRANSPOSED, PLAIN, &h->outputs, &others, &h->t, &one, h->a, &h->t, h->kernel + (int64_t)h->t * h->ld,
                 &h->ld, &zero, h->values, &h->outputs);
    return LSVM_OK;
}

/* `left`, and the derivative by the ridge. */
static void find_left(const struct lsvm_lapack *lapack, struct lsvm_holdout *h, const float *u)
{
    int others = h->n - h->t, info = 0;
    lsvm_ridge_transpose(u, others, h->outputs, h->left + h->t, h->n);
    lapack->gemm(PLAIN, PLAIN, &h->t, &h->outputs, &others, &one, h->kernel + (int64_t)h->t * h->ld, &h->ld,
                 h->left + h->t, &h->n, &zero, h->left, &h->n);
    lapack->potrs(UPPER, &h->t, &h->outputs, h->factor, &h->ld, h->left, &h->n, &info);
    h->ridge_slope = 0.0;
    for (int k = 0; k < h->outputs; k++) {
        float *left = h->left + (int64_t)k * h->n;
        const float *a = h->a + (int64_t)k * h->t;
        for (int i = 0; i < h->t; i++) {
            left[i] = -left[i];
            h->ridge_slope += (double)left[i] * (double)a[i];
        }
    }
}

void lsvm_holdout_slopes(const struct lsvm_ops *ops, const struct lsvm_lapack *lapack, struct lsvm_holdout *h,
                         const float *u)
{
    find_left(lapack, h, u);
    for (int j = 0; j < h->t; j++)
        h->columns[j] = 0.0;
    for (int i = 0; i < h->n; i += LSVM_HOLDOUT_BLOCK) {
        int rows = h->n - i < LSVM_HOLDOUT_BLOCK ? h->n - i : LSVM_HOLDOUT_BLOCK;
        lapack->gemm(PLAIN, TRANSPOSED, &h->t, &rows, &h->outputs, &one, h->a, &h->t, h->left + i, &h->n, &zero,
                     h->scratch, &h->ld);
        for (int k = 0; k < rows; k++) {
            float *row = h->kernel + (int64_t)(i + k) * h->ld;
            if (i + k < h->t)
                row[i + k] = 0.0f;
            h->rows[i + k] = ops->holdout_row(row, h->scratch + (int64_t)k * h->ld, h->t, h->columns);
        }
    }
}
