#include "ridge.h"

#include "ops.h"

/* The upper triangle of a row-major matrix is the lower one of a column-major one. */
static char UPPER[] = "L", TRANSPOSED[] = "T", PLAIN[] = "N";
enum { FEW = 3 }; /* outputs, up to which each by itself takes less time: BLAS copies a matrix for several */
static int next = 1;
static float one = 1.0f, zero = 0.0f;

void lsvm_ridge_transpose(const float *from, int m, int k, float *to, int ld)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < k; j++)
            to[(int64_t)j * ld + i] = from[(int64_t)i * k + j];
}

void lsvm_ridge_solve(const struct lsvm_lapack *lapack, int n, int outputs, float *factor, int ld, float *b, int ldb)
{
    int info = 0;
    if (outputs > FEW) {
        lapack->potrs(UPPER, &n, &outputs, factor, &ld, b, &ldb, &info);
        return;
    }
    for (int c = 0; c < outputs; c++) {
        float *of_output = b + (int64_t)c * ldb;
        lapack->trsv(UPPER, PLAIN, PLAIN, &n, factor, &ld, of_output, &next);
        lapack->trsv(UPPER, TRANSPOSED, PLAIN, &n, factor, &ld, of_output, &next);
    }
}

void lsvm_ridge_values(const struct lsvm_lapack *lapack, float *kernel, int k, int m, int ld, float *a, int outputs,
                       float *values)
{
    if (outputs > FEW) /* rows are columns of BLAS */
        lapack->gemm(TRANSPOSED, PLAIN, &outputs, &k, &m, &one, a, &m, kernel, &ld, &zero, values, &outputs);
    else
        for (int c = 0; c < outputs; c++)
            lapack->gemv(TRANSPOSED, &m, &k, &one, kernel, &ld, a + (int64_t)c * m, &next, &zero, values + c, &outputs);
}

void lsvm_ridge_sums(const struct lsvm_lapack *lapack, float *kernel, int k, int m, int ld, float *u, int outputs,
                     int ldu, float *sums)
{
    if (outputs > FEW)
        lapack->gemm(PLAIN, PLAIN, &m, &outputs, &k, &one, kernel, &ld, u, &ldu, &zero, sums, &ldu);
    else
        for (int c = 0; c < outputs; c++) {
            const int64_t row = (int64_t)c * ldu;
            lapack->gemv(PLAIN, &m, &k, &one, kernel, &ld, u + row, &next, &zero, sums + row, &next);
        }
}

int lsvm_ridge_each_left_out(const struct lsvm_ops *ops, const struct lsvm_lapack *lapack, struct lsvm_ridge *r)
{
    int info = 0;
    const int status = ops->cholesky(r->kernel, r->ridge, r->inverse, r->n, r->ld);
    if (status != LSVM_OK)
        return status;
    lsvm_ridge_transpose(r->y, r->n, r->outputs, r->a, r->n);
    lsvm_ridge_solve(lapack, r->n, r->outputs, r->inverse, r->ld, r->a, r->n);
    lapack->potri(UPPER, &r->n, r->inverse, &r->ld, &info);
    return info == 0 ? LSVM_OK : LSVM_SINGULAR;
}

int lsvm_ridge_left_out(const struct lsvm_ops *ops, const struct lsvm_lapack *lapack, struct lsvm_ridge *r,
                        const int64_t *rows, int k, const int64_t *others, int m, float *out)
{
    float *coef = r->a; /* outputs x m */
    for (int i = 0; i < m; i++) {
        const float *from = r->kernel + others[i] * r->ld;
        float *to = r->inverse + (int64_t)i * r->ld;
        for (int j = i; j < m; j++)
            to[j] = from[others[j]];
        for (int c = 0; c < r->outputs; c++)
            coef[(int64_t)c * m + i] = r->y[others[i] * r->outputs + c];
    }
    const int status = ops->cholesky(r->inverse, r->ridge, r->inverse, m, r->ld);
    if (status != LSVM_OK)
        return status;
    lsvm_ridge_solve(lapack, m, r->outputs, r->inverse, r->ld, coef, m);
    float *left = r->inverse + (int64_t)m * r->ld; /* behind the factor there is room for the kernel of the k rows */
    for (int i = 0; i < k; i++) {
        const float *from = r->kernel + rows[i] * r->ld;
        for (int j = 0; j < m; j++)
            left[(int64_t)i * r->ld + j] = from[others[j]];
    }
    lsvm_ridge_values(lapack, left, k, m, r->ld, coef, r->outputs, out);
    return LSVM_OK;
}
