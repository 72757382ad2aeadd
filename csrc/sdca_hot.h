/* sdca_hot.h - one pass of dual coordinate ascent; see sdca.h. Included by level.h. */
#define SDCA_AHEAD 4 /* rows asked for before their turn: their order is random, which no hardware foresees */

static inline void prefetch_row(const struct lsvm_linear *p, const struct lsvm_sdca_pass *s, int64_t i)
{
    __builtin_prefetch(&s->coordinates[i], 1);
    const struct lsvm_rows *x = &p->rows;
    if (lsvm_rows_dense(x)) {
        const char *row = (const char *)lsvm_rows_at(x, i);
        const int64_t bytes = x->d * (int64_t)sizeof(float);
        for (int64_t at = 0; at < bytes && at < 512; at += 64)
            __builtin_prefetch(row + at);
    } else {
        const int64_t e = x->indptr[i];
        __builtin_prefetch(x->values + e);
        __builtin_prefetch(x->values + e + 16);
        __builtin_prefetch(x->indices + e);
        __builtin_prefetch(x->indices + e + 16);
    }
}

static void sdca_pass(const struct lsvm_linear *given, struct lsvm_sdca_pass *s)
{
    const struct lsvm_linear problem = *given, *p = &problem; /* as in linear_hot.h */
    int64_t kept = 0;
    double largest = -1e300, smallest = 1e300;
    for (int64_t t = 0; t < s->n_active; t++) {
        if (t + SDCA_AHEAD < s->n_active)
            prefetch_row(p, s, s->active[t + SDCA_AHEAD]);
        const int64_t i = s->active[t];
        struct lsvm_coordinate *const c = &s->coordinates[i];
        const double gradient = c->y * row_value(p, i, s->w) - 1 + c->ridge * c->alpha;
        const int low = c->alpha <= 0, high = c->alpha >= c->upper;
        if ((low && gradient > s->above) || (high && gradient < s->below))
            continue;
        s->active[kept++] = i;
        const double projected = (low && gradient > 0) || (high && gradient < 0) ? 0 : gradient;
        largest = projected > largest ? projected : largest;
        smallest = projected < smallest ? projected : smallest;
        if (projected == 0)
            continue;
        double next = c->alpha - gradient * c->inverse;
        next = next < 0 ? 0 : next > c->upper ? c->upper : next;
        const double step = next - c->alpha;
        c->alpha = next;
        row_add(p, i, step * c->y, s->w);
    }
    s->n_active = kept;
    s->largest = largest;
    s->smallest = smallest;
}
