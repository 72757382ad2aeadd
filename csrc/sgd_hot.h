/* sgd_hot.h - stochastic subgradient steps; see sgd.h. Included by level.h. */
/* Minus the derivative of a loss of values by f, for cost 1. */
static inline double residual_pull(const struct lsvm_residuals *r, double residual)
{
    double factor, alpha, second;
    const double sign = lsvm_residual_side(r, residual, &factor);
    lsvm_loss_derivatives(r->width, sign * residual - r->epsilon, &alpha, &second);
    return sign * factor * alpha;
}

static void sgd_pass(const struct lsvm_linear *given, const double *y, const double *cost, const int64_t *order,
                     int64_t n, struct lsvm_sgd *s)
{
    const struct lsvm_linear problem = *given, *p = &problem; /* as in linear_hot.h */
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = order[k];
        const double eta = 1 / (s->t0 + (double)++s->steps);
        const double f = s->scale * row_value(p, i, s->v);
        const double pull = s->values ? residual_pull(s->values, y[i] - f) : y[i] * f < 1 ? y[i] : 0;
        s->scale *= 1 - eta;
        if (pull != 0) {
            const double step = eta * s->rows * cost[i] * pull / s->scale;
            row_add(p, i, step, s->v);
            row_add(p, i, step * s->weight, s->late);
        }
        s->weight += s->scale;
        s->iterates++;
    }
}
