/* ml3_hot.h - steps and scores of ml3.h. Included by level_unfused.h. */
enum { ML3_AHEAD = 4, ML3_AHEAD_BYTES = 1024 };

/* Below it the scale is multiplied into the weights; the average's parts cancel by as much. */
#define SMALLEST_SCALE 0.05

/* One row without its zeros, a 1 for the bias appended; and what a step computes from it. */
struct row_work {
    float *x;
    int32_t *at;
    int64_t n;
    float *products;         /* width: W x before scaling */
    float *old;              /* models rounded up: the true class's products before the round */
    float *beta_true, *beta; /* models rounded up, zero behind the models: of the true and of the wrong class */
    int64_t lanes;           /* models rounded up to LSVM_ML3_LANES */
    double reach;            /* largest ratio of |c|_q to the largest of c */
    void *block;
};

static int64_t rounded_up(int64_t n) { return (n + LSVM_ML3_LANES - 1) / LSVM_ML3_LANES * LSVM_ML3_LANES; }

static int row_work_new(const struct lsvm_ml3_model *m, struct row_work *w)
{
    const size_t values = (size_t)m->features + 1, lanes = (size_t)rounded_up(m->models), width = (size_t)m->width;
    float *f = calloc(2 * values + width + 3 * lanes, sizeof(float));
    if (!f)
        return LSVM_NO_MEMORY;
    w->block = f;
    w->products = f, w->old = f + width, w->beta_true = w->old + lanes, w->beta = w->beta_true + lanes;
    w->x = w->beta + lanes, w->at = (int32_t *)(w->x + values);
    w->lanes = (int64_t)lanes;
    w->reach = isinf(m->q) ? 1 : pow((double)m->models, 1 / m->q);
    return LSVM_OK;
}

INLINE void keep_nonzero(struct row_work *w, float x, int64_t at)
{
    w->x[w->n] = x;
    w->at[w->n] = (int32_t)at;
    w->n += x != 0;
}

INLINE void gather(struct row_work *w, const struct lsvm_rows *rows, int64_t row)
{
    w->n = 0;
    if (lsvm_rows_dense(rows)) {
        const float *x = lsvm_rows_at(rows, row);
        for (int64_t j = 0; j < rows->d; j++)
            keep_nonzero(w, x[j], j);
    } else
        for (int64_t k = rows->indptr[row]; k < rows->indptr[row + 1]; k++)
            keep_nonzero(w, rows->values[k], rows->indices[k]);
    keep_nonzero(w, 1, rows->d);
}

/* Rows are visited in random order: without this every one of them waits for memory. */
static void ml3_prefetch(const struct lsvm_rows *rows, int64_t row)
{
    if (lsvm_rows_outside(rows, row))
        return;
    const int64_t begin = rows->indptr ? rows->indptr[row] : row * rows->ld;
    const int64_t values = rows->indptr ? rows->indptr[row + 1] - begin : rows->d;
    for (int64_t b = 0; b < values * 4 && b < ML3_AHEAD_BYTES; b += 64) {
        __builtin_prefetch((const char *)(rows->values + begin) + b);
        if (rows->indptr)
            __builtin_prefetch((const char *)(rows->indices + begin) + b);
    }
}

/* out = the sum of the row's lines, `width` (a multiple of LSVM_ML3_LANES) floats long and `stride` apart. */
INLINE void multiply(const float *restrict lines, int64_t stride, int64_t width, const struct row_work *w,
                     float *restrict out)
{
    const float *restrict x = w->x;
    int64_t j = 0;
    memset(out, 0, (size_t)width * sizeof(float));
    for (; j + 4 <= w->n; j += 4) {
        const float *a = lines + w->at[j] * stride, *b = lines + w->at[j + 1] * stride;
        const float *c = lines + w->at[j + 2] * stride, *d = lines + w->at[j + 3] * stride;
        for (int64_t k = 0; k < width; k++)
            out[k] += (x[j] * a[k] + x[j + 1] * b[k]) + (x[j + 2] * c[k] + x[j + 3] * d[k]);
    }
    for (; j < w->n; j++)
        for (int64_t k = 0; k < width; k++)
            out[k] += x[j] * lines[w->at[j] * stride + k];
}

/* t^q for t in [0, 1] */
INLINE double power(double t, double q) { return q == 3 ? t * t * t : q == 2 ? t * t : q == 1 ? t : pow(t, q); }

INLINE double root(double s, double q) { return q == 3 ? cbrt(s) : q == 2 ? sqrt(s) : q == 1 ? s : pow(s, 1 / q); }

INLINE float largest_of(const float *c, int64_t m)
{
    float most = 0;
    for (int64_t k = 0; k < m; k++)
        most = c[k] > most ? c[k] : most;
    return most;
}

/* |c_+|_q; most = largest_of(c, m) */
INLINE double norm_of(const float *c, int64_t m, double q, float most)
{
    double sum = 0;
    if (most == 0 || isinf(q))
        return most;
    for (int64_t k = 0; k < m; k++)
        if (c[k] > 0)
            sum += power((double)c[k] / most, q);
    return most * root(sum, q);
}

/* beta = (c_+ / |c_+|_q)^(q - 1), for q = INFINITY a 1 at the first of the largest; 0 where no c is positive. */
INLINE void best_beta(const float *c, int64_t m, double q, float *beta)
{
    const float most = largest_of(c, m);
    const double norm = norm_of(c, m, q, most);
    int found = 0;
    for (int64_t k = 0; k < m; k++) {
        if (isinf(q))
            beta[k] = (most > 0 && !found && c[k] == most) ? 1 : 0, found |= c[k] == most;
        else
            beta[k] = c[k] > 0 ? (float)power((double)c[k] / norm, q - 1) : 0;
    }
}

INLINE double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += (double)a[k] * (double)b[k];
    return sum;
}

/* splitmix64: uniform in [0, 1) */
static double uniform(uint64_t *state)
{
    uint64_t z = (*state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* Uniform in the cube [0, 1]^m, and what lies outside the unit ball of the p-norm shrunk onto it. */
static void random_beta(struct lsvm_ml3_training *t, int64_t m, float *beta)
{
    double sum = 0;
    for (int64_t k = 0; k < m; k++) {
        beta[k] = (float)uniform(&t->random);
        sum += pow(beta[k], t->p);
    }
    const double norm = pow(sum, 1 / t->p);
    for (int64_t k = 0; norm > 1 && k < m; k++)
        beta[k] = (float)(beta[k] / norm);
}

/* The class other than `code` with the largest score, and its score before scaling; -1 where there is no other
 * class. */
INLINE int64_t most_wrong(const struct lsvm_ml3_model *m, const struct lsvm_ml3_training *t, const struct row_work *w,
                          int64_t code, double *score)
{
    int64_t wrong = -1;
    *score = -INFINITY;
    for (int64_t r = 0; r < m->classes; r++) {
        if (r == code)
            continue;
        const float *c = w->products + r * m->models;
        double s;
        if (t->before) {
            const float most = largest_of(c, m->models);
            s = most * w->reach <= *score ? *score : norm_of(c, m->models, m->q, most);
        } else
            s = dot(w->beta_true, c, m->models);
        if (s > *score)
            *score = s, wrong = r;
    }
    return wrong;
}

/* lines of one class += a beta x'. Lanes behind the models get + 0. */
INLINE void add_outer(float *restrict lines, int64_t width, const struct row_work *w, float a,
                      const float *restrict beta)
{
    for (int64_t j = 0; j < w->n; j++) {
        float *restrict line = lines + w->at[j] * width;
        const float ax = a * w->x[j];
        for (int64_t k = 0; k < w->lanes; k++)
            line[k] += ax * beta[k];
    }
}

INLINE void add_pair(const struct lsvm_ml3_model *m, float *lines, const struct row_work *w, int64_t code,
                     int64_t wrong, double a)
{
    add_outer(lines + code * m->models, m->width, w, (float)a, w->beta_true);
    add_outer(lines + wrong * m->models, m->width, w, (float)-a, w->beta);
}

static void ml3_fold_scale(struct lsvm_ml3_model *m, struct lsvm_ml3_training *t)
{
    const float scale = (float)m->scale, sum = (float)t->sum;
    for (int64_t i = 0; i < (m->features + 1) * m->width; i++) {
        if (t->late) {
            t->total[i] += sum * m->weights[i] - t->late[i];
            t->late[i] = 0;
        }
        m->weights[i] *= scale;
    }
    t->square *= m->scale * m->scale;
    t->sum = 0;
    m->scale = 1;
}

static void forget(struct lsvm_ml3_model *m, struct lsvm_ml3_training *t)
{
    memset(m->weights, 0, (size_t)((m->features + 1) * m->width) * sizeof(float));
    m->scale = 1;
    t->square = 0;
}

/* The gradient's part of a step for a row whose loss is positive; then the projection. */
INLINE void descend(struct lsvm_ml3_model *m, struct lsvm_ml3_training *t, const struct row_work *w, int64_t code,
                    int64_t wrong, double step)
{
    const double a = step / m->scale,
                 beta_square = dot(w->beta_true, w->beta_true, m->models) + dot(w->beta, w->beta, m->models);
    const double along = dot(w->beta_true, w->products + code * m->models, m->models) -
                         dot(w->beta, w->products + wrong * m->models, m->models);
    add_pair(m, m->weights, w, code, wrong, a);
    if (t->late)
        add_pair(m, t->late, w, code, wrong, a * t->sum);
    t->square = t->square > 0 ? t->square + 2 * a * along : 0;
    t->square += a * a * beta_square * dot(w->x, w->x, w->n);
    const double norm = sqrt(t->square);
    if (m->scale * norm > t->radius)
        m->scale = t->radius / norm;
}

INLINE void step(struct lsvm_ml3_model *m, struct lsvm_ml3_training *t, struct row_work *w, int64_t row)
{
    const int64_t code = t->codes[row], lines = m->features + 1;
    double score;
    multiply(m->weights, m->width, m->width, w, w->products);
    if (t->before) {
        multiply(t->before + code * lines * m->models, m->models, w->lanes, w, w->old);
        best_beta(w->old, m->models, m->q, w->beta_true);
    } else
        random_beta(t, m->models, w->beta_true);
    const int64_t wrong = most_wrong(m, t, w, code, &score);
    const double true_score = dot(w->beta_true, w->products + code * m->models, m->models);
    const double loss = 1 + m->scale * (score - true_score);
    if (t->before && loss > 0 && wrong >= 0)
        best_beta(w->products + wrong * m->models, m->models, m->q, w->beta);
    else if (!t->before)
        memcpy(w->beta, w->beta_true, (size_t)m->models * sizeof(float));
    t->steps += 1;
    if (t->steps == 1)
        forget(m, t);
    else
        m->scale *= 1 - 1 / t->steps;
    if (loss > 0 && wrong >= 0)
        descend(m, t, w, code, wrong, t->weight[row] / (t->lambda * t->steps));
    t->sum += m->scale;
    if (m->scale < SMALLEST_SCALE)
        ml3_fold_scale(m, t);
}

static int ml3_steps(struct lsvm_ml3_model *model, struct lsvm_ml3_training *training, const struct lsvm_rows *rows,
                     const int64_t *order, int64_t n)
{
    struct row_work work;
    int code = row_work_new(model, &work);
    if (code)
        return code;
    for (int64_t i = 0; i < n; i++) {
        if (i + ML3_AHEAD < n)
            ml3_prefetch(rows, order[i + ML3_AHEAD]);
        if (order[i] < 0 || order[i] >= rows->n) {
            code = LSVM_BAD_ROW;
            goto out;
        }
        gather(&work, rows, order[i]);
        step(model, training, &work, order[i]);
    }
out:
    free(work.block);
    return code;
}

static int ml3_scores(const struct lsvm_ml3_model *model, const struct lsvm_rows *rows, int64_t begin, int64_t n,
                      double *out)
{
    struct row_work work;
    if (begin < 0 || begin + n > rows->n)
        return LSVM_BAD_ROW;
    if (row_work_new(model, &work))
        return LSVM_NO_MEMORY;
    for (int64_t i = 0; i < n; i++) {
        gather(&work, rows, begin + i);
        multiply(model->weights, model->width, model->width, &work, work.products);
        for (int64_t r = 0; r < model->classes; r++) {
            const float *c = work.products + r * model->models;
            out[i * model->classes + r] =
                model->scale * norm_of(c, model->models, model->q, largest_of(c, model->models));
        }
    }
    free(work.block);
    return LSVM_OK;
}
