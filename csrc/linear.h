/* linear.h - the task-coupled linear SVM: what every linear local method solves.
 *
 * Row i has features x_i (d of them, float32, dense or CSR) and belongs to some of K tasks with shares m_ik. Its
 * decision value is f_i = sum_k m_ik (w_k . x_i + bias w_k[d]) + bias w_shared, where one of the two constants is
 * absent: a bias is private to each task or shared by all. The problem, over all weights at once, is
 *
 *     min_w  1/2 |w|^2 + sum_i c_i loss(y_i f_i),    loss(z) = max(0, 1 - z) or its square.
 *
 * A covariance B between tasks comes in through the shares: those of B^(1/2) m, or, for B = I + r 11', one more task to
 * which every row belongs with sqrt(r). Nothing of n x Kd is ever made.
 *
 * Weights are float64, lsvm_linear_size(p) of them: K times (d weights, the private bias), then the shared one. Rows
 * are float32, all else float64; losses and objectives are in units of the costs c_i. The caller owns all arrays, and
 * nothing here allocates or fails.
 */
#ifndef LSVM_LINEAR_H
#define LSVM_LINEAR_H

#include "rows.h"
#include "simd.h"

struct lsvm_linear {
    struct lsvm_rows rows; /* sparse ones with ascending indices, for lsvm_linear_hessian */
    int64_t tasks;
    const int32_t *task;     /* NULL: all rows in task 0; without task_ptr the only task of each row */
    const int64_t *task_ptr; /* n + 1, or NULL: every row belongs to one task with share 1 */
    const double *share;     /* as long as task, with task_ptr */
    double bias;             /* the constant, 0 for none */
    int shared_bias;
};

/* The loss that Newton's method sees. With width h > 0 it is the hinge smoothed from below: 0, z^2 / 2h up to z = h,
 * then z - h/2, where z = 1 - y f; with h = 0 it is the squared hinge. */
struct lsvm_margins {
    int64_t n;
    const double *y;    /* n: +1, -1, or 0 where a row takes no part */
    const double *cost; /* n, >= 0 */
    double width;
};

/* The loss of values that Newton's method sees, of z = |y - f| - epsilon where z > 0: with width h > 0 it is z^2 / 2h up
 * to z = h, then z - h/2; with h = 0 it is z^2. It is taken `up` times where y > f, and `down` times elsewhere. With
 * `bent` that is the loss itself (Huber's), else the smoothed form of z. */
struct lsvm_residuals {
    int64_t n;
    const double *y;    /* n */
    const double *cost; /* n, >= 0; 0 where a row takes no part */
    double up, down, epsilon, width;
    int bent;
};

/* What the margins, or the values, f say: for each row the derivative -dloss/df (alpha_i y_i for margins) and the
 * second derivative, and sums of them. */
struct lsvm_terms {
    double *coef, *curvature; /* n each */
    double smooth;            /* sum_i c_i loss, smoothed or squared */
    double loss;              /* the same of the loss that was smoothed */
    double dual;              /* what the coefs add to the dual objective besides -1/2 |sum_i coef_i m_i phi_i|^2 */
};

/* What Newton's method needs of the rows at some derivatives; all but scratch begins as zeros. */
struct lsvm_hessian {
    double *blocks;  /* K blocks of side lsvm_hessian_side, upper triangles of what the rows add to the identity */
    double *border;  /* K times side: second derivatives by a task's weights and the shared bias */
    double *scratch; /* 4 * side */
    double corner;   /* second derivative by the shared bias */
};

static inline int64_t lsvm_linear_size(const struct lsvm_linear *p) { return p->tasks * (p->rows.d + 1) + 1; }
static inline int64_t lsvm_hessian_side(const struct lsvm_linear *p) { return (p->rows.d + 1 + 7) / 8 * 8; }

/* |m_i phi_i|^2, the bias included. */
double lsvm_linear_norm(const struct lsvm_linear *p, int64_t i);

/* out[i] = f_i for the rows first .. last - 1 (out[0] is row first's). */
void lsvm_linear_values(const struct lsvm_ops *ops, const struct lsvm_linear *p, int64_t first, int64_t last,
                        const double *w, double *out);

/* w += sum_i coef[i] m_i phi_i over all rows; rows with coef 0 are not read. */
void lsvm_linear_add(const struct lsvm_ops *ops, const struct lsvm_linear *p, const double *coef, double *w);

/* out = sum_i curvature[i] (m_i phi_i . v) m_i phi_i; rows with curvature 0 are not read. */
void lsvm_linear_curve(const struct lsvm_ops *ops, const struct lsvm_linear *p, const double *curvature,
                       const double *v, double *out);

/* Adds second derivatives by the weights, for rows of one task each; rows with curvature 0 are not read, those with one
 * below 0 are taken away. */
void lsvm_linear_hessian(const struct lsvm_ops *ops, const struct lsvm_linear *p, const double *curvature,
                         struct lsvm_hessian *out);

/* Minus the derivative of a loss by z, for cost 1, and its second derivative; width as in lsvm_margins. */
static inline void lsvm_loss_derivatives(double width, double z, double *alpha, double *second)
{
    const int inside = z > 0 && (width == 0 || z < width);
    *alpha = z <= 0 ? 0 : width == 0 ? 2 * z : inside ? z / width : 1;
    *second = !inside ? 0 : width == 0 ? 2 : 1 / width;
}

/* Sign of a residual y - f, and the factor of its loss. */
static inline double lsvm_residual_side(const struct lsvm_residuals *r, double residual, double *factor)
{
    *factor = residual > 0 ? r->up : r->down;
    return residual > 0 ? 1 : -1;
}

void lsvm_loss_terms(const struct lsvm_margins *m, const double *f, struct lsvm_terms *out);
void lsvm_residual_terms(const struct lsvm_residuals *r, const double *f, struct lsvm_terms *out);

/* First and second derivative at t of sum_i c_i loss along the margins, or the values, f + t df. */
void lsvm_loss_slope(const struct lsvm_margins *m, const double *f, const double *df, double t, double *first,
                     double *second);
void lsvm_residual_slope(const struct lsvm_residuals *r, const double *f, const double *df, double t, double *first,
                         double *second);

#endif
