#include "holdout.h"

#include "ops.h"
#include "ridge.h"

static char PLAIN[] = "N", TRANSPOSED[] = "T";
static float zero = 0.0f, one = 1.0f;

int lsvm_holdout_values(const struct lsvm_ops *ops, const struct lsvm_lapack *lapack, struct lsvm_holdout *h)
{
    const int others = h->n - h->t;
    const int status = ops->cholesky(h->kernel, h->ridge, h->factor, h->t, h->ld);
    if (status != LSVM_OK)
        return status;
    lsvm_ridge_transpose(h->y, h->t, h->outputs, h->a, h->t);
    lsvm_ridge_solve(lapack, h->t, h->outputs, h->factor, h->ld, h->a, h->t);
    lsvm_ridge_values(lapack, h->kernel + (int64_t)h->t * h->ld, others, h->t, h->ld, h->a, h->outputs, h->values);
    return LSVM_OK;
}

/* `left`, and the derivative by the ridge. */
static void find_left(const struct lsvm_lapack *lapack, struct lsvm_holdout *h, const float *u)
{
    const int others = h->n - h->t;
    lsvm_ridge_transpose(u, others, h->outputs, h->left + h->t, h->n);
    lsvm_ridge_sums(lapack, h->kernel + (int64_t)h->t * h->ld, others, h->t, h->ld, h->left + h->t, h->outputs, h->n,
                    h->left);
    lsvm_ridge_solve(lapack, h->t, h->outputs, h->factor, h->ld, h->left, h->n);
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
    const int several = h->outputs > 1; /* of one output a row of left A' is A', times a number */
    for (int i = 0; i < h->n; i += LSVM_HOLDOUT_BLOCK) {
        int rows = h->n - i < LSVM_HOLDOUT_BLOCK ? h->n - i : LSVM_HOLDOUT_BLOCK;
        if (several)
            lapack->gemm(PLAIN, TRANSPOSED, &h->t, &rows, &h->outputs, &one, h->a, &h->t, h->left + i, &h->n, &zero,
                         h->scratch, &h->ld);
        for (int k = 0; k < rows; k++) {
            float *row = h->kernel + (int64_t)(i + k) * h->ld;
            if (i + k < h->t)
                row[i + k] = 0.0f;
            const float *by_kernel = several ? h->scratch + (int64_t)k * h->ld : h->a;
            h->rows[i + k] = ops->holdout_row(row, by_kernel, several ? one : h->left[i + k], h->t, h->columns);
        }
    }
}
