/* mixture_hot.h - the decision function of a mixture; see mixture.h. Included by level.h.
 *
 * Two vectors of rows go along, so that eight sums are open at a time and none waits for the one before.
 */
enum { ROWS = LSVM_LANES, BLOCK = LSVM_MIXTURE_BLOCK };

/* A block of rows while it is decided. */
struct mixture_block {
    const float *x;
    vdouble *lanes;                                    /* 4 d */
    float *bound;                                      /* K x BLOCK: log_j is at most this */
    int32_t *end;                                      /* K + 1: where the rows of each component end in `order` */
    int32_t first[BLOCK] __attribute__((aligned(64))); /* the component with the largest bound */
    float least[BLOCK] __attribute__((aligned(64)));   /* bounds below this say that a component is nothing */
    int32_t order[BLOCK];
    double most[BLOCK], share[BLOCK], sum[BLOCK]; /* the largest log_j so far; sums of exp(log_j - most) */
};

/* LSVM_LANES rows from column c on: lane i of out[k] is column c + k of row i. Blocks of 1, 2, 4, ... lanes change places
 * with those of the row that is as many further on. */
static inline void transpose(const float *const rows[LSVM_LANES], int64_t c, vfloat out[LSVM_LANES])
{
    vint lane;
    vfloat v[LSVM_LANES];
    for (int l = 0; l < LSVM_LANES; l++)
        lane[l] = l;
    for (int i = 0; i < LSVM_LANES; i++)
        memcpy(v + i, rows[i] + c, sizeof *v);
#pragma GCC unroll 4
    for (int s = 1; s < LSVM_LANES; s *= 2) {
        const vint moved = ((lane & s) != 0) & (LSVM_LANES - s), low = lane + moved, high = low + s;
#pragma GCC unroll 16
        for (int i = 0; i < LSVM_LANES; i++)
            if (!(i & s)) {
                const vfloat a = v[i], b = v[i + s];
                v[i] = __builtin_shuffle(a, b, low);
                v[i + s] = __builtin_shuffle(a, b, high);
            }
    }
    for (int i = 0; i < LSVM_LANES; i++)
        out[i] = v[i];
}

/* All d columns of some rows, side by side. */
static inline void side_by_side(const float *const rows[LSVM_LANES], int64_t d, vfloat *out)
{
    for (int64_t c = 0; c + LSVM_LANES <= d; c += LSVM_LANES)
        transpose(rows, c, out + c);
    if (d >= LSVM_LANES && d % LSVM_LANES)
        transpose(rows, d - LSVM_LANES, out + d - LSVM_LANES);
    for (int64_t c = 0; c < d && d < LSVM_LANES; c++)
        for (int i = 0; i < LSVM_LANES; i++)
            out[c][i] = rows[i][c];
}

/* |A x|^2 of each row, for a triangle in groups; x holds d pairs of vectors. */
static inline void triangle_squares(const double *a, const vdouble *x, int64_t d, vdouble out[2])
{
    out[0] = out[1] = (vdouble){0};
    for (int64_t r = 0; r < d; r += LSVM_MIXTURE_GROUP) {
        vdouble z[LSVM_MIXTURE_GROUP][2] = {{{0}}};
        const int64_t end = r + LSVM_MIXTURE_GROUP < d ? r + LSVM_MIXTURE_GROUP : d;
        for (int64_t c = 0; c < end; c++, a += LSVM_MIXTURE_GROUP)
            for (int q = 0; q < LSVM_MIXTURE_GROUP; q++) {
                z[q][0] += a[q] * x[2 * c];
                z[q][1] += a[q] * x[2 * c + 1];
            }
        for (int q = 0; q < LSVM_MIXTURE_GROUP; q++) {
            out[0] += z[q][0] * z[q][0];
            out[1] += z[q][1] * z[q][1];
        }
    }
}

static inline void diagonal_squares(const double *a, const vdouble *x, int64_t d, vdouble out[2])
{
    out[0] = out[1] = (vdouble){0};
    for (int64_t c = 0; c < d; c++) {
        const vdouble z0 = a[c] * x[2 * c], z1 = a[c] * x[2 * c + 1];
        out[0] += z0 * z0;
        out[1] += z1 * z1;
    }
}

/* exp(x) for x <= 0, relative error below 1e-15: x = n ln 2 + r, the series of exp(r), n added to the exponent. */
static inline vdouble exponential_f64(vdouble x)
{
    static const double term[] = {
        1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
        1.0 / 720,        1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1.0,         1.0};
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer in the low bits */
    const vdouble least = (vdouble){0} - 700.0;
    x = max_f64(x, least);
    const vdouble shifted = x * 1.44269504088896340736 + magic;
    const vdouble n = shifted - magic;
    vdouble r = x - n * 0.693147180369123816490; /* ln 2 in two parts: the first has zeros in its low bits */
    r = r - n * 1.90821492927058770002e-10;
    vdouble p = (vdouble){0} + term[0];
    for (size_t i = 1; i < sizeof term / sizeof *term; i++)
        p = p * r + term[i];
    return (vdouble)((vlong)p + ((vlong)shifted << 52));
}

/* exp(-loss(f)) - exp(-loss(-f)), or f itself */
static inline vdouble side_of(vdouble f, int loss)
{
    const vdouble zero = {0};
    if (loss == LSVM_MIXTURE_VALUES)
        return f;
    vdouble above = max_f64(1.0 - f, zero), below = max_f64(1.0 + f, zero);
    if (loss == LSVM_MIXTURE_SQUARED_HINGE)
        above *= above, below *= below;
    return exponential_f64(-above) - exponential_f64(-below);
}

/* The bounds of two vectors of rows from row i of the block, and the component with the largest; of `count` rows, and
 * the first of them again in the remaining lanes. */
static inline void mixture_bounds(const struct lsvm_mixture *m, struct mixture_block *b, int64_t i, int64_t count)
{
    const int64_t d = m->d, K = m->components;
    const vfloat zero = {0}, most = zero + 1e38f, infinite = zero + __builtin_inff();
    vfloat *const y = (vfloat *)(void *)b->lanes, squares[2] = {zero, zero}, best[2] = {-infinite, -infinite};
    vint first[2] = {{0}};
    const float *u = m->directions, *rows[LSVM_LANES];
    for (int64_t v = 0; v < 2; v++) {
        for (int64_t l = v * LSVM_LANES; l < (v + 1) * LSVM_LANES; l++)
            rows[l - v * LSVM_LANES] = b->x + (i + (l < count ? l : 0)) * d;
        side_by_side(rows, d, y + v * d);
    }
    for (int64_t c = 0; c < d; c++)
        for (int v = 0; v < 2; v++) {
            y[v * d + c] -= m->centre[c];
            squares[v] += y[v * d + c] * y[v * d + c];
        }
    for (int64_t j = 0; j < K; j += 2) {
        vfloat t[LSVM_MIXTURE_GROUP][2] = {{{0}}};
        for (int64_t c = 0; c < d; c++, u += LSVM_MIXTURE_GROUP)
            for (int q = 0; q < LSVM_MIXTURE_GROUP; q++) {
                t[q][0] += u[q] * y[c];
                t[q][1] += u[q] * y[d + c];
            }
        for (int64_t h = 0; h < 2 && j + h < K; h++)
            for (int v = 0; v < 2; v++) {
                const struct lsvm_mixture_screen *s = m->screen + j + h;
                const vfloat t0 = t[2 * h][v] - s->side[0], t1 = t[2 * h + 1][v] - s->side[1];
                const vfloat bound = s->offset + s->slope * squares[v] - 0.484375f * min_f32(t0 * t0 + t1 * t1, most);
                const vint above = bound > best[v], own = (vint){0} + (int32_t)(j + h);
                first[v] = (above & own) | (~above & first[v]);
                best[v] = select_f32(above, bound, best[v]);
                *(vfloat *)(b->bound + (j + h) * BLOCK + i + v * LSVM_LANES) = bound;
            }
    }
    for (int v = 0; v < 2; v++) {
        const vint lost = ~(best[v] > -1e30f);
        *(vint *)(b->first + i + v * LSVM_LANES) = first[v];
        for (int64_t j = 0; any_f32(lost) && j < K; j++) {
            vfloat *const bound = (vfloat *)(b->bound + j * BLOCK + i + v * LSVM_LANES);
            *bound = select_f32(lost, infinite, *bound);
        }
    }
}

/* log_j and f_j of rows side by side in float32. lanes: for 2 d vectors. */
static inline void component_values(const struct lsvm_mixture *m, int64_t j, const vfloat *x, vdouble *lanes,
                                    vdouble log[2], vdouble f[2])
{
    const int64_t d = m->d;
    const double *const mean = m->mean + j * d, *const w = m->weights + j * (d + 1);
    f[0] = f[1] = w[d] + (vdouble){0};
    for (int64_t c = 0; c < d; c++)
        for (int v = 0; v < 2; v++) {
            const vdouble value = widen((const float *)(x + c) + v * WIDE);
            lanes[2 * c + v] = value - mean[c];
            f[v] += w[c] * value;
        }
    (m->full ? triangle_squares : diagonal_squares)(m->factor + j * lsvm_mixture_stride(d, m->full), lanes, d, log);
    for (int v = 0; v < 2; v++)
        log[v] = m->offset[j] - 0.5 * log[v];
}

/* Component j, computed for some rows of the block and added to what they have. */
static inline void mixture_add(const struct lsvm_mixture *m, struct mixture_block *b, int64_t j, const int32_t *rows,
                               int64_t n)
{
    vfloat *const x = (vfloat *)(void *)(b->lanes + 2 * m->d);
    for (int64_t at = 0; at < n; at += ROWS) {
        const int64_t count = n - at < ROWS ? n - at : ROWS;
        const float *pointers[ROWS];
        vdouble log[2], f[2], most[2], share[2], sum[2];
        for (int64_t i = 0; i < ROWS; i++) {
            const int64_t row = rows[at + (i < count ? i : 0)];
            pointers[i] = b->x + row * m->d;
            most[i / WIDE][i % WIDE] = b->most[row];
            share[i / WIDE][i % WIDE] = b->share[row];
            sum[i / WIDE][i % WIDE] = b->sum[row];
        }
        side_by_side(pointers, m->d, x);
        component_values(m, j, x, b->lanes, log, f);
        for (int v = 0; v < 2; v++) {
            const vdouble top = max_f64(log[v], most[v]);
            vdouble before = exponential_f64(most[v] - top), now = exponential_f64(log[v] - top);
            if (m->hard) {
                now = select_f64(log[v] > most[v], (vdouble){0} + 1.0, (vdouble){0});
                before = 1.0 - now;
            }
            share[v] = before * share[v] + now;
            sum[v] = before * sum[v] + now * side_of(f[v], m->loss);
            most[v] = top;
        }
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = rows[at + i];
            b->most[row] = most[i / WIDE][i % WIDE];
            b->share[row] = share[i / WIDE][i % WIDE];
            b->sum[row] = sum[i / WIDE][i % WIDE];
        }
    }
}

/* Each row's component with the largest bound. */
static inline void mixture_first(const struct lsvm_mixture *m, struct mixture_block *b, int64_t n)
{
    const int64_t K = m->components;
    memset(b->end, 0, (size_t)(K + 1) * sizeof *b->end);
    for (int64_t i = 0; i < n; i++)
        b->end[b->first[i] + 1]++;
    for (int64_t j = 0; j < K; j++)
        b->end[j + 1] += b->end[j];
    for (int64_t i = 0; i < n; i++)
        b->order[b->end[b->first[i]]++] = (int32_t)i;
    for (int64_t j = 0, from = 0; j < K; from = b->end[j++])
        mixture_add(m, b, j, b->order + from, b->end[j] - from);
    for (int64_t i = 0; i < n; i++) {
        const double log = b->most[i], below = log - LSVM_MIXTURE_NOTHING - 1e-6 * (log < 0 ? -log : log);
        b->least[i] = (float)below; /* which rounds by less than 1e-6 */
        b->bound[b->first[i] * BLOCK + i] = -__builtin_inff();
    }
}

/* Component j for the rows in which it counts besides their first. */
static inline void mixture_others(const struct lsvm_mixture *m, struct mixture_block *b, int64_t j, int64_t n)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i += LSVM_LANES) {
        const vfloat *const bound = (const vfloat *)(b->bound + j * BLOCK + i);
        if (!any_f32(~(*bound < *(const vfloat *)(b->least + i)))) /* a bound that is no number says nothing */
            continue;
        for (int64_t r = i; r < n && r < i + LSVM_LANES; r++) {
            const int nothing = b->bound[j * BLOCK + r] < b->least[r] || b->first[r] == j;
            b->order[found] = (int32_t)r;
            found += !nothing;
        }
    }
    mixture_add(m, b, j, b->order, found);
}

static void mixture_decide(const struct lsvm_mixture *m, const float *x, int64_t n, double *scratch, double *out)
{
    struct mixture_block b = {.lanes = (vdouble *)scratch};
    b.bound = (float *)(b.lanes + 4 * m->d);
    b.end = (int32_t *)(b.bound + m->components * BLOCK);
    for (int64_t i = 0; i < n; i += BLOCK, x += BLOCK * m->d) {
        const int64_t count = n - i < BLOCK ? n - i : BLOCK;
        b.x = x;
        for (int64_t r = 0; r < count; r++) {
            b.most[r] = -__builtin_inf();
            b.share[r] = b.sum[r] = 0;
        }
        for (int64_t r = 0; r < count; r += 2 * LSVM_LANES)
            mixture_bounds(m, &b, r, count - r);
        mixture_first(m, &b, count);
        for (int64_t j = 0; j < m->components; j++)
            mixture_others(m, &b, j, count);
        for (int64_t r = 0; r < count; r++)
            out[i + r] = b.sum[r] / b.share[r];
    }
}
