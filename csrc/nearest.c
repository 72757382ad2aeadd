#include "nearest.h"

#include <string.h>

#include "ops.h"

int lsvm_nearest_project(const struct lsvm_ops *ops, const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                         const double *direction, double *out)
{
    return ops->unfused->nearest_project(m, rows, n, direction, out);
}

int lsvm_nearest_apart(const struct lsvm_ops *ops, const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                       const double *pair, double *out)
{
    return ops->unfused->nearest_apart(m, rows, n, pair, out);
}

int lsvm_nearest_squares(const struct lsvm_ops *ops, const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                         double *out)
{
    return ops->unfused->nearest_squares(m, rows, n, out);
}

int lsvm_nearest_total(const struct lsvm_ops *ops, const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                       double *total)
{
    return ops->unfused->nearest_total(m, rows, n, total);
}

int64_t lsvm_nearest_pair_work(int64_t n, int64_t d) { return 3 * n + d; }

int lsvm_nearest_pair(const struct lsvm_ops *ops, const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                      const struct lsvm_nearest_steps *steps, double *far, double *pair, double *work)
{
    return ops->unfused->nearest_pair(m, rows, n, steps, far, pair, work);
}

int lsvm_nearest_choose(const struct lsvm_ops *ops, const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                        const struct lsvm_nearest_children *children, int32_t *child)
{
    return ops->unfused->nearest_choose(m, rows, n, children, child);
}

int lsvm_nearest_route(const struct lsvm_ops *ops, const struct lsvm_rows *m, int64_t begin, int64_t n,
                       const struct lsvm_nearest_tree *tree, int32_t *cell)
{
    return ops->unfused->nearest_route(m, begin, n, tree, cell);
}

int lsvm_nearest_hash(const struct lsvm_ops *ops, const struct lsvm_rows *m, int64_t begin, int64_t n, uint64_t seed,
                      uint64_t *out)
{
    return ops->unfused->nearest_hash(m, begin, n, seed, out);
}

int lsvm_nearest_group(int64_t *rows, const int32_t *child, int64_t n, int64_t n_children, int64_t *scratch,
                       int64_t *bounds)
{
    memset(bounds, 0, (size_t)(n_children + 1) * sizeof *bounds);
    for (int64_t i = 0; i < n; i++) {
        if (child[i] < 0 || child[i] >= n_children)
            return LSVM_BAD_CHILD;
        bounds[child[i]]++;
    }
    int64_t total = 0;
    for (int64_t c = 0; c < n_children; c++) {
        const int64_t count = bounds[c];
        bounds[c] = total;
        total += count;
    }
    for (int64_t i = 0; i < n; i++)
        scratch[bounds[child[i]]++] = rows[i];
    memcpy(rows, scratch, (size_t)n * sizeof *rows);
    /* each bound has moved to the next child's start: move them back by one place */
    memmove(bounds + 1, bounds, (size_t)n_children * sizeof *bounds);
    bounds[0] = 0;
    return LSVM_OK;
}

static int64_t skip_zeros(const struct lsvm_rows *m, int64_t k, int64_t end)
{
    while (k < end && m->values[k] == 0.0F)
        k++;
    return k;
}

static int sparse_same(const struct lsvm_rows *m, int64_t a, int64_t b)
{
    const int64_t end_a = m->indptr[a + 1], end_b = m->indptr[b + 1];
    int64_t i = skip_zeros(m, m->indptr[a], end_a), j = skip_zeros(m, m->indptr[b], end_b);
    while (i < end_a && j < end_b) {
        if (m->indices[i] != m->indices[j] || m->values[i] != m->values[j])
            return 0;
        i = skip_zeros(m, i + 1, end_a);
        j = skip_zeros(m, j + 1, end_b);
    }
    return i == end_a && j == end_b;
}

static int dense_same(const struct lsvm_rows *m, int64_t a, int64_t b)
{
    const float *x = lsvm_rows_at(m, a), *z = lsvm_rows_at(m, b);
    for (int64_t j = 0; j < m->d; j++)
        if (x[j] != z[j])
            return 0;
    return 1;
}

int lsvm_nearest_same(const struct lsvm_rows *m, const int64_t *a, const int64_t *b, int64_t n, uint8_t *same)
{
    for (int64_t i = 0; i < n; i++) {
        if (lsvm_rows_outside(m, a[i]) || lsvm_rows_outside(m, b[i]))
            return LSVM_BAD_ROW;
        same[i] = (uint8_t)(m->indptr ? sparse_same(m, a[i], b[i]) : dense_same(m, a[i], b[i]));
    }
    return LSVM_OK;
}
