#include "ridge.h"

#include <string.h>

/* The lower triangle of a row-major matrix is the upper one of a column-major one. The other one is factored in a fifth
 * less time. */
static char LOWER[] = "U", UPPER[] = "L", TRANSPOSED[] = "T", PLAIN[] = "N";
enum { FEW = 3 }; /* outputs, up to which each by itself takes less time: BLAS copies a matrix for several */
static int next = 1;
static float one = 1.0f, zero = 0.0f;

int lsvm_ridge_factor(const struct lsvm_lapack *lapack, char *triangle, const float *kernel, int n, int ld, float ridge,
                      float *out)
{
    int info = 0;
    for (int i = 0; i < n; i++) {
        const int64_t row = (int64_t)i * ld;
        memcpy(out + row, kernel + row, (size_t)n * sizeof(float));
        out[row + i] += ridge;
    }
    lapack->potrf(triangle, &n, out, &ld, &info);
    return info == 0 ? LSVM_OK : LSVM_SINGULAR;
}

void lsvm_ridge_transpose(const float *from, int m, int k, float *to, int ld)
{
    for (int i = 0; i < m; i++)
        for (int j = 0; j < k; j++)
            to[(int64_t)j * ld + i] = from[(int64_t)i * k + j];
}

void lsvm_ridge_solve(const struct lsvm_lapack *lapack, char *triangle, int n, int outputs, float *factor, int ld,
                      float *b, int ldb)
{
    int info = 0;
    if (outputs > FEW) {
        lapack->potrs(triangle, &n, &outputs, factor, &ld, b, &ldb, &info);
        return;
    }
    /* the matrix is U'U or LL', by LAPACK's names of triangles: the left factor is undone first */
    const int upper = triangle[0] == 'U';
    for (int c = 0; c < outputs; c++) {
        float *of_output = b + (int64_t)c * ldb;
        lapack->trsv(triangle, upper ? TRANSPOSED : PLAIN, PLAIN, &n, factor, &ld, of_output, &next);
        lapack->trsv(triangle, upper ? PLAIN : TRANSPOSED, PLAIN, &n, factor, &ld, of_output, &next);
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

int lsvm_ridge_each_left_out(const struct lsvm_lapack *lapack, struct lsvm_ridge *r)
{
    int info = 0;
    const int status = lsvm_ridge_factor(lapack, LOWER, r->kernel, r->n, r->ld, r->ridge, r->inverse);
    if (status != LSVM_OK)
        return status;
    lsvm_ridge_transpose(r->y, r->n, r->outputs, r->a, r->n);
    lsvm_ridge_solve(lapack, LOWER, r->n, r->outputs, r->inverse, r->ld, r->a, r->n);
    lapack->potri(LOWER, &r->n, r->inverse, &r->ld, &info);
    return info == 0 ? LSVM_OK : LSVM_SINGULAR;
}

int lsvm_ridge_left_out(const struct lsvm_lapack *lapack, struct lsvm_ridge *r, const int64_t *rows, int k,
                        const int64_t *others, int m, float *out)
{
    int info = 0;
    float *coef = r->a; /* outputs x m */
    for (int i = 0; i < m; i++) {
        const float *from = r->kernel + others[i] * r->ld;
        float *to = r->inverse + (int64_t)i * r->ld;
        for (int j = i; j < m; j++)
            to[j] = from[others[j]];
        to[i] += r->ridge;
        for (int c = 0; c < r->outputs; c++)
            coef[(int64_t)c * m + i] = r->y[others[i] * r->outputs + c];
    }
    lapack->potrf(UPPER, &m, r->inverse, &r->ld, &info);
    if (info != 0)
        return LSVM_SINGULAR;
    lsvm_ridge_solve(lapack, UPPER, m, r->outputs, r->inverse, r->ld, coef, m);
    float *left = r->inverse + (int64_t)m * r->ld; /* behind the factor there is room for the kernel of the k rows */
    for (int i = 0; i < k; i++) {
        const float *from = r->kernel + rows[i] * r->ld;
        for (int j = 0; j < m; j++)
            left[(int64_t)i * r->ld + j] = from[others[j]];
    }
    lsvm_ridge_values(lapack, left, k, m, r->ld, coef, r->outputs, out);
    return LSVM_OK;
}
