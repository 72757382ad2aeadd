/* linear_hot.h - rows times weights, and what is built from them; see linear.h. Included by level.h.
 *
 * Rows are float32, weights and sums float64: a row is widened as it is read. Rows need no alignment and no padding.
 */
#define WIDE ((int64_t)(LSVM_BYTES / 8))

typedef double vdouble_u __attribute__((vector_size(LSVM_BYTES), aligned(8), may_alias));
typedef float vhalf_u __attribute__((vector_size(LSVM_BYTES / 2), aligned(4), may_alias));

static inline vdouble widen(const float *x) { return widen_f32((vhalf) * (const vhalf_u *)x); }

static inline double dense_dot(const float *x, const double *w, int64_t d)
{
    vdouble s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t j = 0;
    for (; j + 4 * WIDE <= d; j += 4 * WIDE) {
        s0 += widen(x + j) * *(const vdouble_u *)(w + j);
        s1 += widen(x + j + WIDE) * *(const vdouble_u *)(w + j + WIDE);
        s2 += widen(x + j + 2 * WIDE) * *(const vdouble_u *)(w + j + 2 * WIDE);
        s3 += widen(x + j + 3 * WIDE) * *(const vdouble_u *)(w + j + 3 * WIDE);
    }
    for (; j + WIDE <= d; j += WIDE)
        s0 += widen(x + j) * *(const vdouble_u *)(w + j);
    double sum = horizontal_sum_f64((s0 + s1) + (s2 + s3));
    for (; j < d; j++)
        sum += (double)x[j] * w[j];
    return sum;
}

static inline void dense_add(const float *x, double t, double *w, int64_t d)
{
    int64_t j = 0;
    for (; j + WIDE <= d; j += WIDE)
        *(vdouble_u *)(w + j) += t * widen(x + j);
    for (; j < d; j++)
        w[j] += t * (double)x[j];
}

static inline double sparse_dot(const struct lsvm_rows *x, int64_t i, const double *w)
{
    const int64_t end = x->indptr[i + 1];
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int64_t e = x->indptr[i];
    for (; e + 4 <= end; e += 4) {
        s0 += (double)x->values[e] * w[x->indices[e]];
        s1 += (double)x->values[e + 1] * w[x->indices[e + 1]];
        s2 += (double)x->values[e + 2] * w[x->indices[e + 2]];
        s3 += (double)x->values[e + 3] * w[x->indices[e + 3]];
    }
    for (; e < end; e++)
        s0 += (double)x->values[e] * w[x->indices[e]];
    return (s0 + s1) + (s2 + s3);
}

static inline void sparse_add(const struct lsvm_rows *x, int64_t i, double t, double *w)
{
    for (int64_t e = x->indptr[i]; e < x->indptr[i + 1]; e++)
        w[x->indices[e]] += t * (double)x->values[e];
}

/* (x_i, bias) . w for the weights of one task. */
static inline double task_dot(const struct lsvm_linear *p, int64_t i, const double *w)
{
    const struct lsvm_rows *x = &p->rows;
    const double s = lsvm_rows_dense(x) ? dense_dot(lsvm_rows_at(x, i), w, x->d) : sparse_dot(x, i, w);
    return p->shared_bias ? s : s + p->bias * w[x->d];
}

static inline void task_add(const struct lsvm_linear *p, int64_t i, double t, double *w)
{
    const struct lsvm_rows *x = &p->rows;
    if (lsvm_rows_dense(x))
        dense_add(lsvm_rows_at(x, i), t, w, x->d);
    else
        sparse_add(x, i, t, w);
    if (!p->shared_bias)
        w[x->d] += t * p->bias;
}

static inline double row_value(const struct lsvm_linear *p, int64_t i, const double *w)
{
    const int64_t side = p->rows.d + 1;
    double s = p->shared_bias ? p->bias * w[p->tasks * side] : 0;
    if (!p->task_ptr)
        return s + task_dot(p, i, p->task ? w + p->task[i] * side : w);
    for (int64_t e = p->task_ptr[i]; e < p->task_ptr[i + 1]; e++)
        s += p->share[e] * task_dot(p, i, w + p->task[e] * side);
    return s;
}

static inline void row_add(const struct lsvm_linear *p, int64_t i, double t, double *w)
{
    const int64_t side = p->rows.d + 1;
    if (p->shared_bias)
        w[p->tasks * side] += t * p->bias;
    if (!p->task_ptr) {
        task_add(p, i, t, p->task ? w + p->task[i] * side : w);
        return;
    }
    for (int64_t e = p->task_ptr[i]; e < p->task_ptr[i + 1]; e++)
        task_add(p, i, t * p->share[e], w + p->task[e] * side);
}

/* These loops work on a copy of the problem that nothing else can point to: its fields then need not be loaded again
 * after every store. */
static void linear_values(const struct lsvm_linear *given, int64_t first, int64_t last, const double *w, double *out)
{
    const struct lsvm_linear problem = *given, *p = &problem;
    for (int64_t i = first; i < last; i++)
        out[i - first] = row_value(p, i, w);
}

static void linear_add(const struct lsvm_linear *given, const double *coef, double *w)
{
    const struct lsvm_linear problem = *given, *p = &problem;
    for (int64_t i = 0; i < p->rows.n; i++)
        if (coef[i] != 0)
            row_add(p, i, coef[i], w);
}

static void linear_curve(const struct lsvm_linear *given, const double *curvature, const double *v, double *out)
{
    const struct lsvm_linear problem = *given, *p = &problem;
    for (int64_t i = 0; i < p->rows.n; i++)
        if (curvature[i] != 0)
            row_add(p, i, curvature[i] * row_value(p, i, v), out);
}

/* Up to four rows of one task wait here, so that the Hessian's block is loaded and stored once for all of them. */
struct pending {
    int64_t rows[4];
    double curvature[4];
    int count;
    int32_t task;
};

/* Dense row i as (x, bias) in float64, zero up to `side`. */
static void spread_row(const struct lsvm_linear *p, int64_t i, double *out, int64_t side)
{
    memset(out, 0, (size_t)side * sizeof(double));
    dense_add(lsvm_rows_at(&p->rows, i), 1, out, p->rows.d);
    out[p->rows.d] = p->shared_bias ? 0 : p->bias;
}

static void flush(const struct lsvm_linear *p, struct lsvm_hessian *s, struct pending *q, int64_t side)
{
    double *const h = s->blocks + q->task * side * side, *const border = s->border + q->task * side;
    double *const a0 = s->scratch, *const a1 = a0 + side, *const a2 = a1 + side, *const a3 = a2 + side;
    for (int k = 0; k < q->count; k++)
        spread_row(p, q->rows[k], s->scratch + k * side, side);
    for (int k = q->count; k < 4; k++) {
        memset(s->scratch + k * side, 0, (size_t)side * sizeof(double));
        q->curvature[k] = 0;
    }
    for (int64_t r = 0; r <= p->rows.d; r++) {
        const double c0 = q->curvature[0] * a0[r], c1 = q->curvature[1] * a1[r];
        const double c2 = q->curvature[2] * a2[r], c3 = q->curvature[3] * a3[r];
        double *const row = h + r * side;
        for (int64_t c = r / WIDE * WIDE; c < side; c += WIDE)
            *(vdouble_u *)(row + c) += (c0 * *(vdouble_u *)(a0 + c) + c1 * *(vdouble_u *)(a1 + c)) +
                                       (c2 * *(vdouble_u *)(a2 + c) + c3 * *(vdouble_u *)(a3 + c));
        if (p->shared_bias)
            border[r] += p->bias * (c0 + c1 + c2 + c3);
    }
    q->count = 0;
}

/* The same for one sparse row, entry by entry: indices ascend, so that the upper triangle is filled. */
static void sparse_hessian(const struct lsvm_linear *p, int64_t i, double curvature, struct lsvm_hessian *s,
                           int64_t side)
{
    const int32_t task = p->task ? p->task[i] : 0;
    double *const h = s->blocks + task * side * side, *const border = s->border + task * side;
    const struct lsvm_rows *x = &p->rows;
    const int64_t last = x->indptr[i + 1];
    for (int64_t a = x->indptr[i]; a < last; a++) {
        const double c = curvature * x->values[a];
        double *const row = h + x->indices[a] * side;
        for (int64_t b = a; b < last; b++)
            row[x->indices[b]] += c * x->values[b];
        if (p->shared_bias)
            border[x->indices[a]] += c * p->bias;
        else
            row[x->d] += c * p->bias;
    }
    if (!p->shared_bias)
        h[x->d * side + x->d] += curvature * p->bias * p->bias;
}

static void linear_hessian(const struct lsvm_linear *p, const double *curvature, struct lsvm_hessian *s)
{
    const int64_t side = lsvm_hessian_side(p);
    struct pending q = {.count = 0};
    for (int64_t i = 0; i < p->rows.n; i++) {
        if (curvature[i] == 0)
            continue;
        s->corner += p->shared_bias ? curvature[i] * p->bias * p->bias : 0;
        if (!lsvm_rows_dense(&p->rows)) {
            sparse_hessian(p, i, curvature[i], s, side);
            continue;
        }
        const int32_t task = p->task ? p->task[i] : 0;
        if (q.count == 4 || (q.count && q.task != task))
            flush(p, s, &q, side);
        q.task = task;
        q.rows[q.count] = i;
        q.curvature[q.count++] = curvature[i];
    }
    if (q.count)
        flush(p, s, &q, side);
}
