/* sgd_hot.h - stochastic subgradient steps; see sgd.h. Included by level.h. */
static void sgd_pass(const struct lsvm_linear *given, const double *y, const double *cost, const int64_t *order,
                     int64_t n, struct lsvm_sgd *s)
{
    const struct lsvm_linear problem = *given, *p = &problem; /* as in linear_hot.h */
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = order[k];
        const double eta = 1 / (s->t0 + (double)++s->steps);
        const double margin = y[i] * s->scale * row_value(p, i, s->v);
        s->scale *= 1 - eta;
        if (y[i] != 0 && margin < 1) {
            const double step = eta * s->rows * cost[i] * y[i] / s->scale;
            row_add(p, i, step, s->v);
            row_add(p, i, step * s->weight, s->late);
        }
        s->weight += s->scale;
        s->iterates++;
    }
}
