/* kernels_hot.h - the loops of kernels.h over one level's vectors; see level.h. */

enum { TILE_ROWS = LSVM_TILE_ROWS, WIDTH = 2 * LSVM_LANES };

static inline vfloat absolute(vfloat x) { return (vfloat)((vint)x & 0x7fffffff); }

/* One tile: products, or sums of absolute differences, of TILE_ROWS rows with one panel. Twelve accumulators hide the
 * latency of a fused multiply-add and fit the sixteen registers of AVX2. Sums run over the features in order: the same
 * rounding whatever the tile. */
static inline __attribute__((always_inline)) void tile_sums(const float *const rows[TILE_ROWS], const float *panel,
                                                            int64_t d, int base, vfloat sum[TILE_ROWS][2])
{
    vfloat s[TILE_ROWS][2] = {{{0}}};
    const vfloat *b = (const vfloat *)panel;
    for (int64_t k = 0; k < d; k++, b += 2) {
        const vfloat b0 = b[0], b1 = b[1];
#pragma GCC unroll 6
        for (int r = 0; r < TILE_ROWS; r++) {
            if (base == LSVM_SUMS) {
                s[r][0] += absolute(rows[r][k] - b0);
                s[r][1] += absolute(rows[r][k] - b1);
            } else {
                s[r][0] += rows[r][k] * b0;
                s[r][1] += rows[r][k] * b1;
            }
        }
    }
    for (int r = 0; r < TILE_ROWS; r++)
        sum[r][0] = s[r][0], sum[r][1] = s[r][1];
}

/* Rows i..i+TILE_ROWS-1 of a; beyond the end the last row again, so that remainders run through the same code. */
static inline void tile_rows(const struct lsvm_rows *a, int64_t i, const float *rows[TILE_ROWS])
{
    for (int64_t r = 0; r < TILE_ROWS; r++)
        rows[r] = lsvm_rows_at(a, i + r < a->n ? i + r : a->n - 1);
}

/* The base of a kernel from the sum of a tile; norm_a and norm_b are not read for LSVM_PRODUCTS. */
static inline vfloat based(int base, float norm_a, vfloat norm_b, vfloat sum)
{
    const vfloat zero = {0};
    if (base == LSVM_PRODUCTS)
        return sum;
    if (base == LSVM_SUMS)
        return norm_a + norm_b + sum;
    return max_f32(norm_a + norm_b - 2.0f * sum, zero);
}

static inline __attribute__((always_inline)) void products_of(const struct lsvm_points *a, const struct lsvm_panels *b,
                                                              float *out, int64_t ldo, int base)
{
    for (int64_t p = 0; p < b->panels; p++) {
        const float *panel = b->packed + p * b->d * WIDTH;
        const vfloat *norm_b = (const vfloat *)(b->norm + p * WIDTH);
        for (int64_t i = 0; i < a->rows.n; i += TILE_ROWS) {
            const float *rows[TILE_ROWS];
            vfloat sum[TILE_ROWS][2];
            tile_rows(&a->rows, i, rows);
            tile_sums(rows, panel, a->rows.d, base, sum);
            for (int64_t r = 0; r < TILE_ROWS && i + r < a->rows.n; r++) {
                vfloat *to = (vfloat *)(out + (i + r) * ldo + p * WIDTH);
                for (int v = 0; v < 2; v++)
                    to[v] = base == LSVM_PRODUCTS ? sum[r][v] : based(base, a->norm[i + r], norm_b[v], sum[r][v]);
            }
        }
    }
}

static void products(const struct lsvm_points *a, const struct lsvm_panels *b, float *out, int64_t ldo, int base)
{
    if (base == LSVM_SUMS)
        products_of(a, b, out, ldo, LSVM_SUMS);
    else
        products_of(a, b, out, ldo, base == LSVM_SQUARES ? LSVM_SQUARES : LSVM_PRODUCTS);
}

/* a b + c, rounded as the compiler's contraction of the same expression over vectors is. */
static inline float multiply_add(float a, float b, float c)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* In the order of tile_sums: |x|^2 is bit for bit x . x there. */
static void norms(const struct lsvm_rows *a, float *out)
{
    for (int64_t i = 0; i < a->n; i++) {
        const float *row = lsvm_rows_at(a, i);
        float sum = 0;
        for (int64_t k = 0; k < a->d; k++)
            sum = multiply_add(row[k], row[k], sum);
        out[i] = sum;
    }
}

/* exp(x) for x <= 0, relative error below 2e-7: x = n ln 2 + r, a polynomial in r, n added to the exponent. */
static inline vfloat exponential(vfloat x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
    const vfloat least = (vfloat){0} - 87.0f;
    x = max_f32(x, least);
    const vfloat shifted = x * 1.44269504088896341f + magic;
    const vfloat n = shifted - magic;
    vfloat r = x - n * 0.693145751953125f; /* ln 2 in two parts: the first has zeros in its low bits */
    r = r - n * 1.428606820309417232e-6f;
    vfloat p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return (vfloat)((vint)p + ((vint)shifted << 23));
}

static inline vfloat square_root(vfloat x)
{
    vfloat root = {0};
    for (int l = 0; l < LSVM_LANES; l++)
        root[l] = __builtin_sqrtf(x[l]);
    return root;
}

static inline vfloat power(vfloat x, int degree)
{
    vfloat result = (vfloat){0} + 1.0f;
    for (; degree > 0; degree >>= 1, x *= x)
        if (degree & 1)
            result *= x;
    return result;
}

static inline vfloat kernel_value(const struct lsvm_kernel *kernel, vfloat v)
{
    switch (kernel->kind) {
    case LSVM_GAUSSIAN:
    case LSVM_MANHATTAN:
        return exponential(-kernel->gamma * v);
    case LSVM_LAPLACIAN:
        return exponential(-kernel->gamma * square_root(v));
    case LSVM_POLYNOMIAL:
        return power(kernel->gamma * v + kernel->coef0, kernel->degree);
    default:
        return v;
    }
}

static void transform(const struct lsvm_kernel *kernel, const float *in, float *out, int64_t n)
{
    const vfloat *from = (const vfloat *)in;
    vfloat *to = (vfloat *)out;
    /* without the switch in the loop */
    if (kernel->kind == LSVM_GAUSSIAN || kernel->kind == LSVM_MANHATTAN)
        for (int64_t i = 0; i < n / LSVM_LANES; i++)
            to[i] = exponential(-kernel->gamma * from[i]);
    else if (kernel->kind == LSVM_LAPLACIAN)
        for (int64_t i = 0; i < n / LSVM_LANES; i++)
            to[i] = exponential(-kernel->gamma * square_root(from[i]));
    else
        for (int64_t i = 0; i < n / LSVM_LANES; i++)
            to[i] = kernel_value(kernel, from[i]);
}

enum { STRIP_ROWS = 8 * TILE_ROWS };

/* A strip of rows is transformed while it is in the cache, and no second matrix is touched. */
static void matrix(const struct lsvm_points *a, const struct lsvm_panels *b, const struct lsvm_kernel *kernel,
                   float *out, int64_t ldo)
{
    struct lsvm_points strip = *a;
    for (int64_t i = 0; i < a->rows.n; i += STRIP_ROWS) {
        strip.rows.values = lsvm_rows_at(&a->rows, i);
        strip.norm = a->norm ? a->norm + i : NULL;
        strip.rows.n = a->rows.n - i < STRIP_ROWS ? a->rows.n - i : STRIP_ROWS;
        products(&strip, b, out + i * ldo, ldo, lsvm_base(kernel));
        for (int64_t r = i; r < i + strip.rows.n; r++)
            transform(kernel, out + r * ldo, out + r * ldo, b->panels * WIDTH);
    }
}

enum { ROW_PANELS = 6 };

/* The distances of one row to several panels at once, which hides the latency of a fused multiply-add; each sum runs over
 * the features in order, as in tile_sums. */
static inline __attribute__((always_inline)) void row_distances(const struct lsvm_points *a, int64_t i,
                                                                const struct lsvm_panels *b, float *out, int base)
{
    const float *row = lsvm_rows_at(&a->rows, i);
    for (int64_t first = 0; first < b->panels; first += ROW_PANELS) {
        const vfloat *panel[ROW_PANELS];
        vfloat sum[ROW_PANELS][2] = {{{0}}};
        for (int64_t p = 0; p < ROW_PANELS; p++) { /* beyond the end the last panel again */
            const int64_t at = first + p < b->panels ? first + p : b->panels - 1;
            panel[p] = (const vfloat *)(b->packed + at * b->d * WIDTH);
        }
        for (int64_t k = 0; k < b->d; k++)
#pragma GCC unroll 6
            for (int p = 0; p < ROW_PANELS; p++)
                for (int v = 0; v < 2; v++) {
                    if (base == LSVM_SUMS)
                        sum[p][v] += absolute(row[k] - panel[p][2 * k + v]);
                    else
                        sum[p][v] += row[k] * panel[p][2 * k + v];
                }
        for (int64_t p = 0; p < ROW_PANELS && first + p < b->panels; p++) {
            const vfloat *norm = (const vfloat *)(b->norm + (first + p) * WIDTH);
            vfloat *to = (vfloat *)(out + (first + p) * WIDTH);
            for (int v = 0; v < 2; v++)
                to[v] = based(base, a->norm[i], norm[v], sum[p][v]);
        }
    }
}

/* Computes row i of a kernel matrix, bit for bit as `matrix` does. Not inlined: the loops that ask for rows would spill
 * their registers. */
static __attribute__((noinline)) void compute_row(const struct lsvm_kernel_rows *rows, int64_t i)
{
    float *out = rows->k + i * rows->ld;
    if (lsvm_base(&rows->kernel) == LSVM_SUMS)
        row_distances(&rows->a, i, &rows->b, out, LSVM_SUMS);
    else
        row_distances(&rows->a, i, &rows->b, out, LSVM_SQUARES);
    transform(&rows->kernel, out, out, rows->b.panels * WIDTH);
    rows->there[i] = 1;
}

/* sum_j coef_j values_j over the panels in use, in double: the coefficients are as large as C and cancel. */
static inline double dot_double(const float *values, const int32_t *used, int64_t n, const double *coef)
{
    vdouble sum[2] = {{0}};
    for (int64_t k = 0; k < n; k++) {
        const vhalf *v = (const vhalf *)(values + used[k] * (int64_t)WIDTH);
        const vdouble *c = (const vdouble *)(coef + k * WIDTH);
        sum[0] += c[0] * __builtin_convertvector(v[0], vdouble);
        sum[1] += c[1] * __builtin_convertvector(v[1], vdouble);
        sum[0] += c[2] * __builtin_convertvector(v[2], vdouble);
        sum[1] += c[3] * __builtin_convertvector(v[3], vdouble);
    }
    sum[0] += sum[1];
    double total = 0;
    for (int l = 0; l < LSVM_LANES / 2; l++)
        total += sum[0][l];
    return total;
}

static void expansions(const struct lsvm_points *a, const struct lsvm_expansion *e, float *scratch, double *out)
{
    const int64_t size = e->b.panels * WIDTH, models = e->group_ptr[e->groups];
    struct lsvm_points tile = *a;
    float *distances = scratch, *values = scratch + TILE_ROWS * size;
    const int base = lsvm_base(&e->kernels[0]);
    for (int64_t i = 0; i < a->rows.n; i += TILE_ROWS) {
        tile.rows.values = lsvm_rows_at(&a->rows, i);
        tile.norm = a->norm ? a->norm + i : NULL;
        tile.rows.n = a->rows.n - i < TILE_ROWS ? a->rows.n - i : TILE_ROWS;
        products(&tile, &e->b, distances, size, base);
        for (int64_t g = 0; g < e->groups; g++) {
            transform(&e->kernels[g], distances, values, tile.rows.n * size);
            for (int64_t m = e->group_ptr[g]; m < e->group_ptr[g + 1]; m++) {
                const int64_t first = e->used_ptr[m], n = e->used_ptr[m + 1] - first;
                for (int64_t r = 0; r < tile.rows.n; r++)
                    out[(i + r) * models + m] =
                        dot_double(values + r * size, e->used + first, n, e->coef + first * WIDTH);
            }
        }
    }
}

enum { NEAR_FLOATS = 5120 }; /* of panels that stay in the first-level cache while all rows pass by */

/* One tile's products become kernel values and are summed while they are in the first-level cache. */
static inline __attribute__((always_inline)) void accumulate_tile(const struct lsvm_points *a, int64_t i,
                                                                  const struct lsvm_panels *b, int64_t first,
                                                                  int64_t last, const struct lsvm_kernel *kernel,
                                                                  int base, const double *coef, double *out)
{
    const float *rows[TILE_ROWS];
    float norm_a[TILE_ROWS];
    vdouble total[TILE_ROWS] = {{0}};
    tile_rows(&a->rows, i, rows);
    for (int64_t r = 0; r < TILE_ROWS; r++)
        norm_a[r] = base != LSVM_PRODUCTS ? a->norm[i + r < a->rows.n ? i + r : a->rows.n - 1] : 0;
    for (int64_t p = first; p < last; p++) {
        const vfloat *norm = (const vfloat *)(b->norm + p * WIDTH);
        const vdouble *c = (const vdouble *)(coef + p * WIDTH);
        vfloat sum[TILE_ROWS][2];
        tile_sums(rows, b->packed + p * b->d * WIDTH, a->rows.d, base, sum);
#pragma GCC unroll 6
        for (int r = 0; r < TILE_ROWS; r++)
            for (int v = 0; v < 2; v++)
                sum[r][v] = kernel_value(kernel, base == LSVM_PRODUCTS ? sum[r][v]
                                                                       : based(base, norm_a[r], norm[v], sum[r][v]));
        const vhalf *values = (const vhalf *)(const void *)sum;
#pragma GCC unroll 6
        for (int r = 0; r < TILE_ROWS; r++)
            for (int h = 0; h < 4; h++)
                total[r] += c[h] * __builtin_convertvector(values[4 * r + h], vdouble);
    }
    for (int64_t r = 0; r < TILE_ROWS && i + r < a->rows.n; r++)
        for (int l = 0; l < LSVM_LANES / 2; l++)
            out[i + r] += total[r][l];
}

static inline __attribute__((always_inline)) void accumulate_kind(const struct lsvm_points *a,
                                                                  const struct lsvm_panels *b,
                                                                  const struct lsvm_kernel *kernel, int base,
                                                                  const double *coef, double *out)
{
    int64_t near = NEAR_FLOATS / (b->d * WIDTH + 1);
    near = near < 1 ? 1 : near;
    for (int64_t first = 0; first < b->panels; first += near) {
        const int64_t last = first + near < b->panels ? first + near : b->panels;
        for (int64_t i = 0; i < a->rows.n; i += TILE_ROWS)
            accumulate_tile(a, i, b, first, last, kernel, base, coef, out);
    }
}

static void accumulate(const struct lsvm_points *a, const struct lsvm_panels *b, const struct lsvm_kernel *kernel,
                       const double *coef, double *out)
{
    const struct lsvm_kernel gaussian = {LSVM_GAUSSIAN, 0, kernel->gamma, 0};
    const struct lsvm_kernel manhattan = {LSVM_MANHATTAN, 0, kernel->gamma, 0};
    if (kernel->kind == LSVM_GAUSSIAN) /* the common cases, with the switch out of the loop */
        accumulate_kind(a, b, &gaussian, LSVM_SQUARES, coef, out);
    else if (kernel->kind == LSVM_MANHATTAN)
        accumulate_kind(a, b, &manhattan, LSVM_SUMS, coef, out);
    else
        accumulate_kind(a, b, kernel, a->norm != NULL ? LSVM_SQUARES : LSVM_PRODUCTS, coef, out);
}

/* Columns need not be aligned: lanes are copied, which the compiler makes a load. */
static inline vfloat load(const float *from)
{
    vfloat v;
    memcpy(&v, from, sizeof v);
    return v;
}

enum { SUMMED_FEATURES = 4, SUMMED_ROWS = 16 };

/* Features k .. k + count - 1 of some rows at once: their sums do not wait for each other, and a row of w is read once
 * for all. */
static inline __attribute__((always_inline)) void add_weighted(const float *w, int64_t ld, const float *x, int64_t d,
                                                               int64_t rows, const float *columns, int64_t n, int count,
                                                               double *out)
{
    vfloat sum[SUMMED_FEATURES][2] = {{{0}}};
    float rest[SUMMED_FEATURES] = {0.0f};
    for (int64_t i = 0; i < rows; i++) {
        const float *row = w + i * ld, *own = x + i * d;
        int64_t j = 0;
        for (; j + WIDTH <= n; j += WIDTH)
            for (int k = 0; k < count; k++)
                for (int v = 0; v < 2; v++) {
                    const float *column = columns + k * n + j + v * LSVM_LANES;
                    sum[k][v] += load(row + j + v * LSVM_LANES) * absolute(own[k] - load(column));
                }
        if (j + LSVM_LANES <= n) {
            for (int k = 0; k < count; k++)
                sum[k][0] += load(row + j) * absolute(own[k] - load(columns + k * n + j));
            j += LSVM_LANES;
        }
        for (; j < n; j++)
            for (int k = 0; k < count; k++)
                rest[k] = multiply_add(row[j], __builtin_fabsf(own[k] - columns[k * n + j]), rest[k]);
    }
    double total[SUMMED_FEATURES] = {0.0};
    for (int k = 0; k < count; k++) {
        sum[k][0] += sum[k][1];
        total[k] = (double)rest[k];
    }
    for (int l = 0; l < LSVM_LANES; l++)
        for (int k = 0; k < count; k++)
            total[k] += (double)sum[k][0][l];
    for (int k = 0; k < count; k++)
        out[k] += total[k];
}

static void weighted_sums(const float *w, int64_t ld, const float *x, int64_t m, const float *columns, int64_t n,
                          int64_t d, double *out)
{
    for (int64_t k = 0; k < d; k++)
        out[k] = 0.0;
    for (int64_t i = 0; i < m; i += SUMMED_ROWS) {
        const int64_t rows = m - i < SUMMED_ROWS ? m - i : SUMMED_ROWS;
        const float *part = w + i * ld, *own = x + i * d;
        int64_t k = 0;
        for (; k + SUMMED_FEATURES <= d; k += SUMMED_FEATURES)
            add_weighted(part, ld, own + k, d, rows, columns + k * n, n, SUMMED_FEATURES, out + k);
        for (; k < d; k++)
            add_weighted(part, ld, own + k, d, rows, columns + k * n, n, 1, out + k);
    }
}

enum { BLOCK_ROWS = LSVM_PAD, TILE_COLUMNS = 1024, GROUP_ROWS = 4 };

static inline vfloat at(const float *aligned) { return *(const vfloat *)aligned; }

static inline int64_t tile_end(int64_t from, int64_t n) { return from + TILE_COLUMNS < n ? from + TILE_COLUMNS : n; }

/* By halves: lane after lane would take as many steps as there are lanes, and the loops that end here are short. */
static inline float total_f32(vfloat v)
{
    vint lane;
    for (int l = 0; l < LSVM_LANES; l++)
        lane[l] = l;
    for (int half = LSVM_LANES / 2; half; half /= 2)
        v += __builtin_shuffle(v, lane ^ half);
    return v[0];
}

/* Rows r .. r + 3 and columns from .. to - 1, which lie right of them: each element counts for its row and its column.
 * For `count` vectors at once, as the elements are read from the cache for all of them. next: the tile that comes after
 * this one, or NULL; the machine itself does not look beyond the end of a page. */
static inline __attribute__((always_inline)) void both_sides(const float *k, int64_t n, int64_t r, int64_t from,
                                                             int64_t to, const float *x, float *out, int count,
                                                             const float *next)
{
    vfloat of_row[2][GROUP_ROWS] = {{{0}}}, at_row[2][GROUP_ROWS];
    const float *k0 = k + r * n, *k1 = k0 + n, *k2 = k1 + n, *k3 = k2 + n;
    for (int v = 0; v < count; v++)
        for (int i = 0; i < GROUP_ROWS; i++)
            at_row[v][i] = of_row[v][i] + x[v * n + r + i];
    for (int64_t j = from; j < to; j += LSVM_LANES) {
        const vfloat a = at(k0 + j), b = at(k1 + j);
        const vfloat c = at(k2 + j), d = at(k3 + j);
        if (next != NULL)
            for (int i = 0; i < GROUP_ROWS; i++)
                __builtin_prefetch(next + i * n + (j - from), 0, 2);
        for (int v = 0; v < count; v++) {
            const vfloat own = at(x + v * n + j), *w = at_row[v];
            of_row[v][0] += a * own;
            of_row[v][1] += b * own;
            of_row[v][2] += c * own;
            of_row[v][3] += d * own;
            *(vfloat *)(out + v * n + j) = at(out + v * n + j) + a * w[0] + b * w[1] + c * w[2] + d * w[3];
        }
    }
    for (int v = 0; v < count; v++)
        for (int i = 0; i < GROUP_ROWS; i++)
            out[v * n + r + i] += total_f32(of_row[v][i]);
}

static void symmetric_products(const float *k, int64_t n, int64_t first, int64_t last, const float *x, int64_t m,
                               float *out)
{
    const unsigned before = flushed(); /* the kernel of far rows is about 1e-38 */
    for (int64_t block = first; block < last; block += BLOCK_ROWS) {
        const int64_t right = block + BLOCK_ROWS;
        for (int64_t v = 0; v < m; v++)
            for (int64_t r = block; r < right; r++) {
                vfloat sum = {0};
                for (int64_t j = block; j < right; j += LSVM_LANES)
                    sum += at(k + r * n + j) * at(x + v * n + j);
                out[v * n + r] += total_f32(sum);
            }
        for (int64_t from = right; from < n; from += TILE_COLUMNS) {
            const int64_t to = tile_end(from, n);
            for (int64_t r = block; r < right; r += GROUP_ROWS) {
                const float *next = r + GROUP_ROWS < right ? k + (r + GROUP_ROWS) * n + from
                                    : to < n               ? k + block * n + to
                                                           : NULL;
                int64_t v = 0;
                for (; v + 2 <= m; v += 2) {
                    both_sides(k, n, r, from, to, x + v * n, out + v * n, 2, next);
                    next = NULL;
                }
                if (v < m)
                    both_sides(k, n, r, from, to, x + v * n, out + v * n, 1, next);
            }
        }
    }
    unflushed(before);
}
