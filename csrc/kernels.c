#include "kernels.h"

#include "ops.h"

int64_t lsvm_panel_width(const struct lsvm_ops *ops) { return ops->panel; }

void lsvm_pack(const struct lsvm_ops *ops, const float *x, int64_t n, int64_t d, int64_t ld, float *out)
{
    const int64_t width = ops->panel;
    for (int64_t first = 0; first < n; first += width) {
        float *panel = out + first * d;
        for (int64_t r = 0; r < width; r++)
            for (int64_t k = 0; k < d; k++)
                panel[k * width + r] = first + r < n ? x[(first + r) * ld + k] : 0.0f;
    }
}

void lsvm_norms(const struct lsvm_ops *ops, const struct lsvm_rows *a, float *out) { ops->norms(a, out); }

void lsvm_products(const struct lsvm_ops *ops, const struct lsvm_points *a, const struct lsvm_panels *b, float *out,
                   int64_t ldo, int base)
{
    ops->products(a, b, out, ldo, base);
}

void lsvm_transform(const struct lsvm_ops *ops, const struct lsvm_kernel *kernel, const float *in, float *out,
                    int64_t n)
{
    ops->transform(kernel, in, out, n);
}

void lsvm_kernel_matrix(const struct lsvm_ops *ops, const struct lsvm_points *a, const struct lsvm_panels *b,
                        const struct lsvm_kernel *kernel, float *out, int64_t ldo)
{
    ops->matrix(a, b, kernel, out, ldo);
}

int64_t lsvm_expansion_scratch(const struct lsvm_ops *ops, const struct lsvm_expansion *e)
{
    return 2 * LSVM_TILE_ROWS * e->b.panels * ops->panel;
}

void lsvm_expansions(const struct lsvm_ops *ops, const struct lsvm_points *a, const struct lsvm_expansion *e,
                     float *scratch, double *out)
{
    ops->expansions(a, e, scratch, out);
}

void lsvm_weighted_sums(const struct lsvm_ops *ops, const float *w, int64_t ld, const float *x, int64_t m,
                        const float *columns, int64_t n, int64_t d, double *out)
{
    ops->weighted_sums(w, ld, x, m, columns, n, d, out);
}

void lsvm_accumulate(const struct lsvm_ops *ops, const struct lsvm_points *a, const struct lsvm_panels *b,
                     const struct lsvm_kernel *kernel, const double *coef, double *out)
{
    ops->accumulate(a, b, kernel, coef, out);
}

void lsvm_symmetric_products(const struct lsvm_ops *ops, const float *k, int64_t n, int64_t first, int64_t last,
                             const float *x, int64_t m, float *out)
{
    ops->symmetric_products(k, n, first, last, x, m, out);
}
