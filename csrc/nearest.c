#include "nearest.h"

#include <string.h>

/* The passes over rows exist twice, chosen when the library is loaded; AVX2 without fused multiply-add gives the bits of
 * the baseline and takes a third off the search for two centres. What they call has to be inlined to be compiled twice. */
#if defined(__x86_64__) && defined(__GLIBC__)
#define PASS __attribute__((target_clones("avx2", "default")))
#else
#define PASS
#endif
#define INLINE static inline __attribute__((always_inline))

enum { LANES = 8, AHEAD = 12, TOGETHER = 8 };

INLINE double add_lanes(const double *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* <a, b> of dense vectors. The values past the last whole eight go to lanes that are known when this is compiled: a loop
 * over them would keep all lanes in memory, and take half of the time at 28 features. */
#define DENSE_DOT(NAME, A, B)                                  \
    INLINE double NAME(const A *a, const B *b, int64_t d)      \
    {                                                          \
        double lane[LANES] = {0};                              \
        for (; d >= LANES; d -= LANES, a += LANES, b += LANES) \
            for (int l = 0; l < LANES; l++)                    \
                lane[l] += (double)a[l] * (double)b[l];        \
        if (d >= 4)                                            \
            for (int l = 0; l < 4; l++)                        \
                lane[l] += (double)a[l] * (double)b[l];        \
        if (d > 6)                                             \
            lane[6] += (double)a[6] * (double)b[6];            \
        if (d > 5)                                             \
            lane[5] += (double)a[5] * (double)b[5];            \
        if (d > 4)                                             \
            lane[4] += (double)a[4] * (double)b[4];            \
        if (d == 3)                                            \
            lane[2] += (double)a[2] * (double)b[2];            \
        if (d == 3 || d == 2)                                  \
            lane[1] += (double)a[1] * (double)b[1];            \
        if (d == 3 || d == 2 || d == 1)                        \
            lane[0] += (double)a[0] * (double)b[0];            \
        return add_lanes(lane);                                \
    }

DENSE_DOT(row_by_vector, float, double)
DENSE_DOT(row_by_row, float, float)
DENSE_DOT(vector_by_vector, double, double)

INLINE double sparse_dot(const float *restrict x, const int32_t *restrict at, int64_t nnz, const double *restrict u)
{
    double lane[LANES] = {0};
    for (int64_t k = 0; k < nnz; k++)
        lane[(uint32_t)at[k] % LANES] += (double)x[k] * u[at[k]];
    return add_lanes(lane);
}

INLINE double row_dot(const struct lsvm_nearest_matrix *m, int64_t row, const double *u)
{
    if (!m->indptr)
        return row_by_vector(m->data + row * m->n_features, u, m->n_features);
    const int64_t begin = m->indptr[row];
    return sparse_dot(m->data + begin, m->indices + begin, m->indptr[row + 1] - begin, u);
}

INLINE double row_square(const struct lsvm_nearest_matrix *m, int64_t row)
{
    const float *x = m->data + row * m->n_features;
    if (!m->indptr)
        return row_by_row(x, x, m->n_features);
    double lane[LANES] = {0};
    for (int64_t k = m->indptr[row]; k < m->indptr[row + 1]; k++)
        lane[(uint32_t)m->indices[k] % LANES] += (double)m->data[k] * (double)m->data[k];
    return add_lanes(lane);
}

static int outside(const struct lsvm_nearest_matrix *m, int64_t row) { return row < 0 || row >= m->n_rows; }

/* The rows of a node are scattered over the matrix; without this every one of them waits for memory. */
static void prefetch(const struct lsvm_nearest_matrix *m, const int64_t *rows, int64_t i, int64_t n)
{
    if (i + AHEAD >= n || outside(m, rows[i + AHEAD]))
        return;
    if (m->indptr) {
        __builtin_prefetch(m->data + m->indptr[rows[i + AHEAD]]);
        __builtin_prefetch(m->indices + m->indptr[rows[i + AHEAD]]);
        return;
    }
    const char *row = (const char *)(m->data + rows[i + AHEAD] * m->n_features);
    const int64_t bytes = m->n_features * (int64_t)sizeof(float);
    for (int64_t b = 0; b < bytes && b < 512; b += 64)
        __builtin_prefetch(row + b);
}

INLINE void add_row(const struct lsvm_nearest_matrix *m, int64_t row, double *restrict total)
{
    if (m->indptr) {
        for (int64_t k = m->indptr[row]; k < m->indptr[row + 1]; k++)
            total[m->indices[k]] += (double)m->data[k];
    } else {
        const float *x = m->data + row * m->n_features;
        for (int64_t j = 0; j < m->n_features; j++)
            total[j] += (double)x[j];
    }
}

PASS int lsvm_nearest_project(const struct lsvm_nearest_matrix *m, const int64_t *rows, int64_t n,
                              const double *direction, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        if (outside(m, rows[i]))
            return LSVM_NEAREST_ROW;
        prefetch(m, rows, i, n);
        out[i] = row_dot(m, rows[i], direction);
    }
    return LSVM_NEAREST_OK;
}

PASS int lsvm_nearest_squares(const struct lsvm_nearest_matrix *m, const int64_t *rows, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        if (outside(m, rows[i]))
            return LSVM_NEAREST_ROW;
        prefetch(m, rows, i, n);
        out[i] = row_square(m, rows[i]);
    }
    return LSVM_NEAREST_OK;
}

PASS int lsvm_nearest_total(const struct lsvm_nearest_matrix *m, const int64_t *rows, int64_t n, double *total)
{
    for (int64_t i = 0; i < n; i++) {
        if (outside(m, rows[i]))
            return LSVM_NEAREST_ROW;
        prefetch(m, rows, i, n);
        add_row(m, rows[i], total);
    }
    return LSVM_NEAREST_OK;
}

/* The value that would be at place k if the n values were sorted; reorders them (Hoare's quickselect). */
static double select_place(double *value, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        const double a = value[low], b = value[low + (high - low) / 2], c = value[high];
        const double pivot = a < b ? (b < c ? b : (a < c ? c : a)) : (a < c ? a : (b < c ? c : b));
        int64_t i = low, j = high;
        while (i <= j) {
            while (value[i] < pivot)
                i++;
            while (value[j] > pivot)
                j--;
            if (i > j)
                break;
            const double other = value[i];
            value[i++] = value[j];
            value[j--] = other;
        }
        if (k <= j)
            high = j;
        else if (k >= i)
            low = i;
        else
            break;
    }
    return value[k];
}

/* Sets out to the row of the largest |x - centre|^2, of which |centre|^2 is left out. */
static int farthest(const struct lsvm_nearest_matrix *m, const int64_t *rows, int64_t n, const double *squares,
                    const double *centre, double *projection, double *out)
{
    const int code = lsvm_nearest_project(m, rows, n, centre, projection);
    int64_t best = 0;
    if (code)
        return code;
    for (int64_t i = 1; i < n; i++)
        if (squares[i] - 2 * projection[i] > squares[best] - 2 * projection[best])
            best = i;
    memset(out, 0, (size_t)m->n_features * sizeof *out);
    add_row(m, rows[best], out);
    return LSVM_NEAREST_OK;
}

static int farthest_first(const struct lsvm_nearest_matrix *m, const int64_t *rows, int64_t n, double *far,
                          double *work)
{
    const int64_t d = m->n_features;
    double *squares = work, *projection = work + n, *mean = work + 2 * n;
    int code = lsvm_nearest_squares(m, rows, n, squares);
    if (code)
        return code;
    memset(mean, 0, (size_t)d * sizeof *mean);
    code = lsvm_nearest_total(m, rows, n, mean);
    for (int64_t j = 0; j < d; j++)
        mean[j] /= (double)n;
    if (!code)
        code = farthest(m, rows, n, squares, mean, projection, far);
    if (!code)
        code = farthest(m, rows, n, squares, far, projection, far + d);
    return code;
}

static int64_t count_up_to(const double *value, int64_t n, double most)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += value[i] <= most;
    return count;
}

/* The centres become the means of the n_low rows of lowest projection, ties by order, and of the others. is_high is 0
 * and 1 for these; returns whether it changed. */
PASS static int move_pair(const struct lsvm_nearest_matrix *m, const int64_t *rows, int64_t n, int64_t n_low,
                          const double *projection, double last, double *pair, double *is_high)
{
    const int64_t d = m->n_features;
    int64_t ties = n_low;
    int changed = 0;
    for (int64_t i = 0; i < n; i++)
        ties -= projection[i] < last;
    memset(pair, 0, (size_t)(2 * d) * sizeof *pair);
    for (int64_t i = 0; i < n; i++) {
        const int high = projection[i] > last || (projection[i] == last && --ties < 0);
        changed |= (is_high[i] != 0) != high;
        is_high[i] = high;
        add_row(m, rows[i], pair + high * d);
    }
    for (int64_t j = 0; j < d; j++) {
        pair[j] /= (double)n_low;
        pair[d + j] /= (double)(n - n_low);
    }
    return changed;
}

int64_t lsvm_nearest_pair_work(int64_t n, int64_t n_features) { return 3 * n + n_features; }

PASS int lsvm_nearest_pair(const struct lsvm_nearest_matrix *m, const int64_t *rows, int64_t n,
                           const struct lsvm_nearest_steps *steps, double *far, double *pair, double *work)
{
    const int64_t d = m->n_features, least = steps->least;
    double *projection = work, *scratch = work + n, *is_high = work + 2 * n, *direction = work + 3 * n;
    int code = farthest_first(m, rows, n, far, work);
    if (code)
        return code;
    memcpy(pair, far, (size_t)(2 * d) * sizeof *pair);
    memset(is_high, 0, (size_t)n * sizeof *is_high);
    for (int64_t step = 0; step < steps->halves + steps->nearest; step++) {
        for (int64_t j = 0; j < d; j++)
            direction[j] = pair[d + j] - pair[j];
        code = lsvm_nearest_project(m, rows, n, direction, projection);
        if (code)
            return code;
        const double bisector = (vector_by_vector(pair + d, pair + d, d) - vector_by_vector(pair, pair, d)) / 2;
        const int64_t nearer = count_up_to(projection, n, bisector);
        int64_t n_low = nearer < least ? least : nearer > n - least ? n - least : nearer;
        if (step < steps->halves)
            n_low = n / 2;
        double last = bisector;
        if (n_low != nearer) {
            memcpy(scratch, projection, (size_t)n * sizeof *scratch);
            last = select_place(scratch, n, n_low - 1);
        }
        if (!move_pair(m, rows, n, n_low, projection, last, pair, is_high) && step >= steps->halves)
            break;
    }
    return LSVM_NEAREST_OK;
}

INLINE int32_t choose(const struct lsvm_nearest_matrix *m, int64_t row, const struct lsvm_nearest_children *children)
{
    int32_t best = 0;
    double best_score = 0;
    for (int64_t c = 1; c < children->n; c++) {
        const double score = row_dot(m, row, children->directions + c * m->n_features) - children->thresholds[c];
        best = score > best_score ? (int32_t)c : best;
        best_score = score > best_score ? score : best_score;
    }
    return best;
}

PASS int lsvm_nearest_choose(const struct lsvm_nearest_matrix *m, const int64_t *rows, int64_t n,
                             const struct lsvm_nearest_children *children, int32_t *child)
{
    for (int64_t i = 0; i < n; i++) {
        if (outside(m, rows[i]))
            return LSVM_NEAREST_ROW;
        prefetch(m, rows, i, n);
        child[i] = choose(m, rows[i], children);
    }
    return LSVM_NEAREST_OK;
}

int lsvm_nearest_group(int64_t *rows, const int32_t *child, int64_t n, int64_t n_children, int64_t *scratch,
                       int64_t *bounds)
{
    memset(bounds, 0, (size_t)(n_children + 1) * sizeof *bounds);
    for (int64_t i = 0; i < n; i++) {
        if (child[i] < 0 || child[i] >= n_children)
            return LSVM_NEAREST_CHILD;
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
    return LSVM_NEAREST_OK;
}

/* The child of a node that a row goes to; negative for a broken tree. */
INLINE int64_t step_down(const struct lsvm_nearest_matrix *m, int64_t row, const struct lsvm_nearest_tree *tree,
                         int64_t node)
{
    const int64_t first = tree->first_child[node];
    const struct lsvm_nearest_children children = {tree->directions + first * m->n_features, tree->thresholds + first,
                                                   tree->n_children[node]};
    if (first <= node || first + children.n > tree->n_nodes)
        return -1;
    return first + choose(m, row, &children);
}

/* Several rows go down side by side: a row alone waits at each node for the product that says which node is next. */
PASS int lsvm_nearest_route(const struct lsvm_nearest_matrix *m, int64_t begin, int64_t n,
                            const struct lsvm_nearest_tree *tree, int32_t *cell)
{
    if (begin < 0 || n < 0 || begin > m->n_rows - n)
        return LSVM_NEAREST_ROW;
    for (int64_t at = 0; at < n; at += TOGETHER) {
        const int64_t size = n - at < TOGETHER ? n - at : TOGETHER;
        int64_t node[TOGETHER] = {0};
        for (int inner = 1; inner;) {
            inner = 0;
            for (int64_t i = 0; i < size; i++) {
                if (tree->n_children[node[i]] <= 0)
                    continue;
                node[i] = step_down(m, begin + at + i, tree, node[i]);
                if (node[i] < 0)
                    return LSVM_NEAREST_TREE;
                inner = 1;
            }
        }
        for (int64_t i = 0; i < size; i++)
            cell[at + i] = tree->cell[node[i]];
    }
    return LSVM_NEAREST_OK;
}

/* The finalizer of splitmix64 (Steele, Lea, Flood 2014), a bijection that spreads every bit. */
static uint64_t mix(uint64_t h)
{
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

/* Values are hashed each with its column and added, so that zeros can be left out and four chains run side by side. */
static uint64_t value_hash(float x, int64_t column, uint64_t seed)
{
    uint32_t bits;
    if (x == 0.0F)
        return 0;
    memcpy(&bits, &x, sizeof bits);
    return mix(seed ^ (((uint64_t)column << 32) | bits));
}

PASS int lsvm_nearest_hash(const struct lsvm_nearest_matrix *m, int64_t begin, int64_t n, uint64_t seed, uint64_t *out)
{
    if (begin < 0 || n < 0 || begin > m->n_rows - n)
        return LSVM_NEAREST_ROW;
    for (int64_t i = 0; i < n; i++) {
        uint64_t h = 0;
        if (m->indptr) {
            for (int64_t k = m->indptr[begin + i]; k < m->indptr[begin + i + 1]; k++)
                h += value_hash(m->data[k], m->indices[k], seed);
        } else {
            const float *x = m->data + (begin + i) * m->n_features;
            for (int64_t j = 0; j < m->n_features; j++)
                h += value_hash(x[j], j, seed);
        }
        out[i] = h;
    }
    return LSVM_NEAREST_OK;
}

static int64_t skip_zeros(const struct lsvm_nearest_matrix *m, int64_t k, int64_t end)
{
    while (k < end && m->data[k] == 0.0F)
        k++;
    return k;
}

static int sparse_same(const struct lsvm_nearest_matrix *m, int64_t a, int64_t b)
{
    const int64_t end_a = m->indptr[a + 1], end_b = m->indptr[b + 1];
    int64_t i = skip_zeros(m, m->indptr[a], end_a), j = skip_zeros(m, m->indptr[b], end_b);
    while (i < end_a && j < end_b) {
        if (m->indices[i] != m->indices[j] || m->data[i] != m->data[j])
            return 0;
        i = skip_zeros(m, i + 1, end_a);
        j = skip_zeros(m, j + 1, end_b);
    }
    return i == end_a && j == end_b;
}

static int dense_same(const struct lsvm_nearest_matrix *m, int64_t a, int64_t b)
{
    const float *x = m->data + a * m->n_features, *z = m->data + b * m->n_features;
    for (int64_t j = 0; j < m->n_features; j++)
        if (x[j] != z[j])
            return 0;
    return 1;
}

int lsvm_nearest_same(const struct lsvm_nearest_matrix *m, const int64_t *a, const int64_t *b, int64_t n, uint8_t *same)
{
    for (int64_t i = 0; i < n; i++) {
        if (outside(m, a[i]) || outside(m, b[i]))
            return LSVM_NEAREST_ROW;
        same[i] = (uint8_t)(m->indptr ? sparse_same(m, a[i], b[i]) : dense_same(m, a[i], b[i]));
    }
    return LSVM_NEAREST_OK;
}
