/* sag_hot.h - steps of the stochastic average gradient; see sag.h. Included by level.h. Returns S. */
static double sag_pass(const struct lsvm_linear *given, const double *y, const double *cost, const int64_t *order,
                       int64_t n, struct lsvm_sag *s)
{
    const struct lsvm_linear problem = *given, *p = &problem; /* as in linear_hot.h */
    double share = 1;
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = order[k];
        const double f = share * row_value(p, i, s->w) + (1 - share) * row_value(p, i, s->v);
        const double slack = 1 - y[i] * f, coef = slack > 0 ? 2 * cost[i] * slack * y[i] : 0;
        const double step = coef - s->coef[i];
        if (step != 0) {
            s->coef[i] = coef;
            row_add(p, i, step, s->v);
            row_add(p, i, -(1 / share - 1) * step, s->w);
        }
        share *= 1 - s->eta;
    }
    return share;
}
