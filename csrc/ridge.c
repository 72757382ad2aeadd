#include "ridge.h"

#include <math.h>
#include <string.h>

enum { TILE = 32 };

/* The lower triangle of a row-major matrix is the upper one of a column-major one. */
static char LOWER[] = "U", PLAIN[] = "N";
static float zero = 0.0f, one = 1.0f, minus_half = -0.5f;

/* Copies the lower triangle to the upper one, tile by tile, so that both stay in the cache. */
static void mirror(float *a, int n, int ld)
{
    for (int i0 = 0; i0 < n; i0 += TILE)
        for (int j0 = 0; j0 <= i0; j0 += TILE)
            for (int i = i0; i < n && i < i0 + TILE; i++)
                for (int j = j0; j < i && j < j0 + TILE; j++)
                    a[(int64_t)j * ld + i] = a[(int64_t)i * ld + j];
}

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

static int invert(const struct lsvm_lapack *lapack, struct lsvm_ridge *r)
{
    int info = 0;
    const int status = lsvm_ridge_factor(lapack, LOWER, r->kernel, r->n, r->ld, r->ridge, r->inverse);
    if (status != LSVM_OK)
        return status;
    lapack->potri(LOWER, &r->n, r->inverse, &r->ld, &info);
    if (info != 0)
        return LSVM_SINGULAR;
    mirror(r->inverse, r->n, r->ld);
    return LSVM_OK;
}

/* out (n x outputs) = A times a matrix of that shape. Its columns are rows of BLAS. */
static void times_inverse(const struct lsvm_lapack *lapack, struct lsvm_ridge *r, const float *in, float *out)
{
    lapack->gemm(PLAIN, PLAIN, &r->outputs, &r->n, &r->n, &one, (float *)in, &r->outputs, r->inverse, &r->ld, &zero,
                 out, &r->outputs);
}

int lsvm_ridge_values(const struct lsvm_lapack *lapack, struct lsvm_ridge *r)
{
    const int status = invert(lapack, r);
    if (status != LSVM_OK)
        return status;
    times_inverse(lapack, r, r->y, r->a);
    r->loss = 0.0;
    for (int i = 0; i < r->n; i++) {
        const float inverse = 1.0f / r->inverse[(int64_t)i * r->ld + i];
        for (int64_t k = (int64_t)i * r->outputs; k < (int64_t)(i + 1) * r->outputs; k++) {
            const double h = fmax(0.0, (double)(r->y[k] * r->a[k] * inverse));
            r->loss += r->w[i] * h * h;
            r->u[k] = (float)(2.0 * r->w[i] * h) * r->y[k] * inverse;
        }
    }
    return LSVM_OK;
}

int lsvm_ridge_left_out(const struct lsvm_lapack *lapack, struct lsvm_ridge *r, const int64_t *rows, int k,
                        const int64_t *others, int m, float *out)
{
    int info = 0;
    float *coef = r->a; /* outputs x m, as LAPACK has it: a column an output */
    for (int i = 0; i < m; i++) {
        const float *from = r->kernel + others[i] * r->ld;
        float *to = r->inverse + (int64_t)i * r->ld;
        for (int j = 0; j <= i; j++)
            to[j] = from[others[j]];
        to[i] += r->ridge;
        for (int c = 0; c < r->outputs; c++)
            coef[(int64_t)c * m + i] = r->y[others[i] * r->outputs + c];
    }
    lapack->potrf(LOWER, &m, r->inverse, &r->ld, &info);
    if (info != 0)
        return LSVM_SINGULAR;
    lapack->potrs(LOWER, &m, &r->outputs, r->inverse, &r->ld, coef, &m, &info);
    for (int i = 0; i < k; i++) {
        const float *row = r->kernel + rows[i] * r->ld;
        for (int c = 0; c < r->outputs; c++) {
            double sum = 0.0;
            for (int j = 0; j < m; j++)
                sum += (double)row[others[j]] * (double)coef[(int64_t)c * m + j];
            out[(int64_t)i * r->outputs + c] = (float)sum;
        }
    }
    return LSVM_OK;
}

/* Rows of A times sqrt(s_i), where s_i, which is never negative, is not 0, into `scaled`; how many there are. */
static int scale_rows(struct lsvm_ridge *r)
{
    int filled = 0;
    for (int i = 0; i < r->n; i++) {
        const float *row = r->inverse + (int64_t)i * r->ld;
        float s = 0.0f;
        for (int64_t k = (int64_t)i * r->outputs; k < (int64_t)(i + 1) * r->outputs; k++)
            s += r->u[k] * r->a[k] / row[i];
        if (!(s > 0.0f))
            continue;
        float *to = r->scaled + (int64_t)filled++ * r->ld;
        s = sqrtf(s);
        for (int j = 0; j < r->n; j++)
            to[j] = s * row[j];
    }
    return filled;
}

void lsvm_ridge_slope(const struct lsvm_lapack *lapack, struct lsvm_ridge *r)
{
    int filled = scale_rows(r);
    times_inverse(lapack, r, r->u, r->au);
    lapack->syrk(LOWER, PLAIN, &r->n, &filled, &one, r->scaled, &r->ld, &zero, r->slope, &r->ld);
    /* the rows of au and a are columns of BLAS, hence its transposed form */
    lapack->syr2k(LOWER, "T", &r->n, &r->outputs, &minus_half, r->au, &r->outputs, r->a, &r->outputs, &one, r->slope,
                  &r->ld);
    r->ridge_slope = 0.0;
    for (int i = 0; i < r->n; i++) {
        float *row = r->slope + (int64_t)i * r->ld;
        const float *kernel = r->kernel + (int64_t)i * r->ld;
        r->ridge_slope += (double)row[i];
        for (int j = 0; j < i; j++)
            row[j] *= kernel[j];
        row[i] = 0.0f;
    }
    mirror(r->slope, r->n, r->ld);
    for (int i = 0; i < r->n; i++) {
        const float *row = r->slope + (int64_t)i * r->ld;
        float part[8] = {0};
        double sum = 0.0;
        int j = 0;
        for (; j + 8 <= r->n; j += 8)
            for (int l = 0; l < 8; l++)
                part[l] += row[j + l];
        for (; j < r->n; j++)
            sum += (double)row[j];
        for (int l = 0; l < 8; l++)
            sum += (double)part[l];
        r->sums[i] = sum;
    }
}
