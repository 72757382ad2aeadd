#include "holdout.h"

#include <string.h>

#include "ridge.h"

static char LOWER[] = "U", PLAIN[] = "N", TRANSPOSED[] = "T";
static float zero = 0.0f, one = 1.0f;

int lsvm_holdout_values(const struct lsvm_lapack *lapack, struct lsvm_holdout *h)
{
    int info = 0, others = h->n - h->t;
    const int status = lsvm_ridge_factor(lapack, h->kernel, h->t, h->ld, h->ridge, h->factor);
    if (status != LSVM_OK)
        return status;
    for (int i = 0; i < h->t; i++)
        for (int c = 0; c < h->outputs; c++)
            h->a[(int64_t)c * h->t + i] = h->y[(int64_t)i * h->outputs + c];
    lapack->potrs(LOWER, &h->t, &h->outputs, h->factor, &h->ld, h->a, &h->t, &info);
    /* rows are columns of BLAS, which writes to none of these */
    float *below = (float *)h->kernel + (int64_t)h->t * h->ld;
    lapack->gemm(TRANSPOSED, PLAIN, &h->outputs, &others, &h->t, &one, h->a, &h->t, below, &h->ld, &zero, h->values,
                 &h->outputs);
    return LSVM_OK;
}

/* Adds to row i of the slope `share` times the coefficients of an output. */
static void add(struct lsvm_holdout *h, int i, float share, const float *coef)
{
    float *row = h->slope + (int64_t)i * h->ld;
    for (int j = 0; j < h->t; j++)
        row[j] += share * coef[j];
}

void lsvm_holdout_slope(const struct lsvm_lapack *lapack, struct lsvm_holdout *h, const float *u)
{
    int info = 0, others = h->n - h->t;
    float *below = (float *)h->kernel + (int64_t)h->t * h->ld;
    lapack->gemm(PLAIN, TRANSPOSED, &h->t, &h->outputs, &others, &one, below, &h->ld, (float *)u, &h->outputs, &zero,
                 h->v, &h->t);
    lapack->potrs(LOWER, &h->t, &h->outputs, h->factor, &h->ld, h->v, &h->t, &info);
    memset(h->sums, 0, (size_t)h->n * sizeof(double));
    h->ridge_slope = 0.0;
    for (int64_t k = 0; k < (int64_t)h->outputs * h->t; k++)
        h->ridge_slope -= (double)h->v[k] * (double)h->a[k];
    for (int i = 0; i < h->n; i++) {
        float *row = h->slope + (int64_t)i * h->ld;
        const float *kernel = h->kernel + (int64_t)i * h->ld;
        memset(row, 0, (size_t)h->t * sizeof(float));
        for (int c = 0; c < h->outputs; c++) {
            const float *a = h->a + (int64_t)c * h->t, *v = h->v + (int64_t)c * h->t;
            if (i < h->t) {
                add(h, i, -0.5f * v[i], a);
                add(h, i, -0.5f * a[i], v);
            } else
                add(h, i, 0.5f * u[(int64_t)(i - h->t) * h->outputs + c], a);
        }
        for (int j = 0; j < h->t; j++)
            row[j] *= kernel[j];
        if (i < h->t)
            row[i] = 0.0f;
        double sum = 0.0;
        for (int j = 0; j < h->t; j++) {
            h->sums[j] += (double)row[j];
            sum += (double)row[j];
        }
        if (i >= h->t)
            h->sums[i] = sum;
    }
}
