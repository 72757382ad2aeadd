/* nearest_hot.h - the passes of nearest.h over rows; see there. Included by level_unfused.h.
 *
 * AVX2 takes a third off the search for two centres.
 */
enum { LANES = 8, AHEAD = 12, TOGETHER = 8 };

INLINE double add_lanes(const double *lane)
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* <a, b> of dense vectors. The values past the last whole eight go to lanes that are known when this is compiled: a
 * loop over them would keep all lanes in memory, and take half of the time at 28 features. */
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

INLINE double row_dot(const struct lsvm_rows *m, int64_t row, const double *u)
{
    if (!m->indptr)
        return row_by_vector(lsvm_rows_at(m, row), u, m->d);
    const int64_t begin = m->indptr[row];
    return sparse_dot(m->values + begin, m->indices + begin, m->indptr[row + 1] - begin, u);
}

INLINE double row_square(const struct lsvm_rows *m, int64_t row)
{
    const float *x = lsvm_rows_at(m, row);
    if (!m->indptr)
        return row_by_row(x, x, m->d);
    double lane[LANES] = {0};
    for (int64_t k = m->indptr[row]; k < m->indptr[row + 1]; k++)
        lane[(uint32_t)m->indices[k] % LANES] += (double)m->values[k] * (double)m->values[k];
    return add_lanes(lane);
}

INLINE double apart_at(double x, double u, double v) { return (fabs(x - u) - fabs(u)) - (fabs(x - v) - fabs(v)); }

INLINE double row_apart(const struct lsvm_rows *m, int64_t row, const double *restrict u, const double *restrict v)
{
    double lane[LANES] = {0};
    if (m->indptr) {
        for (int64_t k = m->indptr[row]; k < m->indptr[row + 1]; k++) {
            const int32_t j = m->indices[k];
            lane[(uint32_t)j % LANES] += apart_at((double)m->values[k], u[j], v[j]);
        }
        return add_lanes(lane);
    }
    const float *restrict x = lsvm_rows_at(m, row);
    int64_t j = 0;
    for (; j + LANES <= m->d; j += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += apart_at((double)x[j + l], u[j + l], v[j + l]);
    double rest[LANES] = {0}; /* a loop over some of the lanes would need these in memory, not in registers */
    for (int l = 0; j + l < m->d; l++)
        rest[l] = apart_at((double)x[j + l], u[j + l], v[j + l]);
    for (int l = 0; l < LANES; l++)
        lane[l] += rest[l];
    return add_lanes(lane);
}

/* The rows of a node are scattered over the matrix; without this every one of them waits for memory. */
static void prefetch(const struct lsvm_rows *m, const int64_t *rows, int64_t i, int64_t n)
{
    if (i + AHEAD >= n || lsvm_rows_outside(m, rows[i + AHEAD]))
        return;
    if (m->indptr) {
        __builtin_prefetch(m->values + m->indptr[rows[i + AHEAD]]);
        __builtin_prefetch(m->indices + m->indptr[rows[i + AHEAD]]);
        return;
    }
    const char *row = (const char *)lsvm_rows_at(m, rows[i + AHEAD]);
    const int64_t bytes = m->d * (int64_t)sizeof(float);
    for (int64_t b = 0; b < bytes && b < 512; b += 64)
        __builtin_prefetch(row + b);
}

INLINE void add_row(const struct lsvm_rows *m, int64_t row, double *restrict total)
{
    if (m->indptr) {
        for (int64_t k = m->indptr[row]; k < m->indptr[row + 1]; k++)
            total[m->indices[k]] += (double)m->values[k];
    } else {
        const float *x = lsvm_rows_at(m, row);
        for (int64_t j = 0; j < m->d; j++)
            total[j] += (double)x[j];
    }
}

static int nearest_project(const struct lsvm_rows *m, const int64_t *rows, int64_t n, const double *direction,
                           double *out)
{
    for (int64_t i = 0; i < n; i++) {
        if (lsvm_rows_outside(m, rows[i]))
            return LSVM_BAD_ROW;
        prefetch(m, rows, i, n);
        out[i] = row_dot(m, rows[i], direction);
    }
    return LSVM_OK;
}

static int nearest_apart(const struct lsvm_rows *m, const int64_t *rows, int64_t n, const double *pair, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        if (lsvm_rows_outside(m, rows[i]))
            return LSVM_BAD_ROW;
        prefetch(m, rows, i, n);
        out[i] = row_apart(m, rows[i], pair, pair + m->d);
    }
    return LSVM_OK;
}

static int nearest_squares(const struct lsvm_rows *m, const int64_t *rows, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        if (lsvm_rows_outside(m, rows[i]))
            return LSVM_BAD_ROW;
        prefetch(m, rows, i, n);
        out[i] = row_square(m, rows[i]);
    }
    return LSVM_OK;
}

static int nearest_total(const struct lsvm_rows *m, const int64_t *rows, int64_t n, double *total)
{
    for (int64_t i = 0; i < n; i++) {
        if (lsvm_rows_outside(m, rows[i]))
            return LSVM_BAD_ROW;
        prefetch(m, rows, i, n);
        add_row(m, rows[i], total);
    }
    return LSVM_OK;
}

INLINE int32_t choose(const struct lsvm_rows *m, int64_t row, const struct lsvm_nearest_children *children,
                      int manhattan)
{
    int32_t best = 0;
    double best_score = 0;
    for (int64_t c = 1; c < children->n; c++) {
        const double *vector = children->vectors + c * m->d;
        const double value = manhattan ? row_apart(m, row, children->vectors, vector) : row_dot(m, row, vector);
        const double score = value - children->thresholds[c];
        best = score > best_score ? (int32_t)c : best;
        best_score = score > best_score ? score : best_score;
    }
    return best;
}

static int nearest_choose(const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                          const struct lsvm_nearest_children *children, int32_t *child)
{
    for (int64_t i = 0; i < n; i++) {
        if (lsvm_rows_outside(m, rows[i]))
            return LSVM_BAD_ROW;
        prefetch(m, rows, i, n);
        child[i] = children->manhattan ? choose(m, rows[i], children, 1) : choose(m, rows[i], children, 0);
    }
    return LSVM_OK;
}

/* The child of a node that a row goes to; negative for a broken tree. */
INLINE int64_t step_down(const struct lsvm_rows *m, int64_t row, const struct lsvm_nearest_tree *tree, int64_t node,
                         int manhattan)
{
    const int64_t first = tree->first_child[node];
    const struct lsvm_nearest_children children = {tree->vectors + first * m->d, tree->thresholds + first,
                                                   tree->n_children[node], manhattan};
    if (first <= node || first + children.n > tree->n_nodes)
        return -1;
    return first + choose(m, row, &children, manhattan);
}

/* Several rows go down side by side: a row alone waits at each node for the product that says which node is next. */
INLINE int route_by(const struct lsvm_rows *given, int64_t begin, int64_t n, const struct lsvm_nearest_tree *tree,
                    int32_t *cell, int manhattan)
{
    const struct lsvm_rows rows = *given, *m = &rows; /* its fields then stay in registers */
    if (begin < 0 || n < 0 || begin > m->n - n)
        return LSVM_BAD_ROW;
    for (int64_t at = 0; at < n; at += TOGETHER) {
        const int64_t size = n - at < TOGETHER ? n - at : TOGETHER;
        int64_t node[TOGETHER] = {0};
        for (int inner = 1; inner;) {
            inner = 0;
            for (int64_t i = 0; i < size; i++) {
                if (tree->n_children[node[i]] <= 0)
                    continue;
                node[i] = step_down(m, begin + at + i, tree, node[i], manhattan);
                if (node[i] < 0)
                    return LSVM_BAD_TREE;
                inner = 1;
            }
        }
        for (int64_t i = 0; i < size; i++)
            cell[at + i] = tree->cell[node[i]];
    }
    return LSVM_OK;
}

static int nearest_route(const struct lsvm_rows *m, int64_t begin, int64_t n, const struct lsvm_nearest_tree *tree,
                         int32_t *cell)
{
    return tree->manhattan ? route_by(m, begin, n, tree, cell, 1) : route_by(m, begin, n, tree, cell, 0);
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

static int nearest_hash(const struct lsvm_rows *m, int64_t begin, int64_t n, uint64_t seed, uint64_t *out)
{
    if (begin < 0 || n < 0 || begin > m->n - n)
        return LSVM_BAD_ROW;
    for (int64_t i = 0; i < n; i++) {
        uint64_t h = 0;
        if (m->indptr) {
            for (int64_t k = m->indptr[begin + i]; k < m->indptr[begin + i + 1]; k++)
                h += value_hash(m->values[k], m->indices[k], seed);
        } else {
            const float *x = lsvm_rows_at(m, begin + i);
            for (int64_t j = 0; j < m->d; j++)
                h += value_hash(x[j], j, seed);
        }
        out[i] = h;
    }
    return LSVM_OK;
}
