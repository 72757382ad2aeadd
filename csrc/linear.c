#include "linear.h"

#include <string.h>

#include "ops.h"
#include "sag.h"
#include "sgd.h"

double lsvm_linear_norm(const struct lsvm_linear *p, int64_t i)
{
    double row = p->shared_bias ? 0 : p->bias * p->bias, shares = 1;
    const int dense = lsvm_rows_dense(&p->rows);
    const float *x = dense ? lsvm_rows_at(&p->rows, i) : p->rows.values + p->rows.indptr[i];
    const int64_t values = dense ? p->rows.d : p->rows.indptr[i + 1] - p->rows.indptr[i];
    for (int64_t j = 0; j < values; j++)
        row += (double)x[j] * (double)x[j];
    if (p->task_ptr) {
        shares = 0;
        for (int64_t e = p->task_ptr[i]; e < p->task_ptr[i + 1]; e++)
            shares += p->share[e] * p->share[e];
    }
    return shares * row + (p->shared_bias ? p->bias * p->bias : 0);
}

void lsvm_linear_values(const struct lsvm_ops *ops, const struct lsvm_linear *p, int64_t first, int64_t last,
                        const double *w, double *out)
{
    ops->linear_values(p, first, last, w, out);
}

void lsvm_linear_add(const struct lsvm_ops *ops, const struct lsvm_linear *p, const double *coef, double *w)
{
    ops->linear_add(p, coef, w);
}

void lsvm_linear_curve(const struct lsvm_ops *ops, const struct lsvm_linear *p, const double *curvature,
                       const double *v, double *out)
{
    memset(out, 0, (size_t)lsvm_linear_size(p) * sizeof(double));
    ops->linear_curve(p, curvature, v, out);
}

void lsvm_linear_hessian(const struct lsvm_ops *ops, const struct lsvm_linear *p, const double *curvature,
                         struct lsvm_hessian *out)
{
    ops->linear_hessian(p, curvature, out);
}

void lsvm_sgd_pass(const struct lsvm_ops *ops, const struct lsvm_linear *p, const double *y, const double *cost,
                   const int64_t *order, int64_t n, struct lsvm_sgd *s)
{
    ops->sgd_pass(p, y, cost, order, n, s);
    if (s->scale > 1e-6 && s->scale < 1e6)
        return;
    for (int64_t j = 0; j < lsvm_linear_size(p); j++) /* the same weights, far from under- and overflow */
        s->v[j] *= s->scale;
    s->weight /= s->scale;
    s->scale = 1;
}

void lsvm_sag_pass(const struct lsvm_ops *ops, const struct lsvm_linear *p, const double *y, const double *cost,
                   const int64_t *order, int64_t n, struct lsvm_sag *s)
{
    const double share = ops->sag_pass(p, y, cost, order, n, s);
    for (int64_t j = 0; j < lsvm_linear_size(p); j++)
        s->w[j] = share * s->w[j] + (1 - share) * s->v[j];
}

/* The loss of z > 0, squared or smoothed, for cost 1. */
static inline double smooth_loss(double width, double z)
{
    return width == 0 ? z * z : z < width ? z * z / (2 * width) : z - width / 2;
}

void lsvm_loss_terms(const struct lsvm_margins *m, const double *f, struct lsvm_terms *out)
{
    const double h = m->width;
    double smooth = 0, loss = 0, dual = 0;
    for (int64_t i = 0; i < m->n; i++) {
        const double y = m->y[i], c = y != 0 ? m->cost[i] : 0, z = 1 - y * f[i];
        double alpha, second;
        lsvm_loss_derivatives(h, z, &alpha, &second);
        out->coef[i] = c * alpha * y;
        out->curvature[i] = c * second;
        if (z > 0) {
            smooth += c * smooth_loss(h, z);
            loss += c * z;
            dual += c * (h == 0 ? alpha - alpha * alpha / 4 : alpha);
        }
    }
    out->smooth = smooth;
    out->loss = loss;
    out->dual = dual;
}

void lsvm_loss_slope(const struct lsvm_margins *m, const double *f, const double *df, double t, double *first,
                     double *second)
{
    double slope = 0, curve = 0;
    for (int64_t i = 0; i < m->n; i++) {
        const double y = m->y[i], c = y != 0 ? m->cost[i] : 0;
        double alpha, inner;
        lsvm_loss_derivatives(m->width, 1 - y * (f[i] + t * df[i]), &alpha, &inner);
        slope -= c * alpha * y * df[i];
        curve += c * inner * df[i] * df[i];
    }
    *first = slope;
    *second = curve;
}

void lsvm_residual_terms(const struct lsvm_residuals *r, const double *f, struct lsvm_terms *out)
{
    const double h = r->width, conjugate = h == 0 ? 0.25 : r->bent ? h / 2 : 0;
    double smooth = 0, loss = 0, dual = 0;
    for (int64_t i = 0; i < r->n; i++) {
        double c, alpha, second;
        const double residual = r->y[i] - f[i], sign = lsvm_residual_side(r, residual, &c);
        const double z = sign * residual - r->epsilon;
        c *= r->cost[i];
        lsvm_loss_derivatives(h, z, &alpha, &second);
        out->coef[i] = c * alpha * sign;
        out->curvature[i] = c * second;
        if (z > 0) {
            smooth += c * smooth_loss(h, z);
            loss += c * z;
            dual += c * alpha * (sign * r->y[i] - r->epsilon - conjugate * alpha);
        }
    }
    out->smooth = smooth;
    out->loss = loss;
    out->dual = dual;
}

void lsvm_residual_slope(const struct lsvm_residuals *r, const double *f, const double *df, double t, double *first,
                         double *second)
{
    double slope = 0, curve = 0;
    for (int64_t i = 0; i < r->n; i++) {
        double c, alpha, inner;
        const double residual = r->y[i] - (f[i] + t * df[i]), sign = lsvm_residual_side(r, residual, &c);
        c *= r->cost[i];
        lsvm_loss_derivatives(r->width, sign * residual - r->epsilon, &alpha, &inner);
        slope -= c * alpha * sign * df[i];
        curve += c * inner * df[i] * df[i];
    }
    *first = slope;
    *second = curve;
}
