#include "smo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

enum { MOST_ROUNDS = 20 };                  /* of a tolerance that is relative */
static const double LEAST_RESIDUAL = 0.005; /* over `limit`: an objective counts as that of such residuals at least */

static size_t element_size(const struct lsvm_smo *p) { return p->is_double ? sizeof(double) : sizeof(float); }

static double kernel_at(const struct lsvm_smo *p, int64_t i)
{
    const int64_t at = i * p->ld + i;
    return p->is_double ? ((const double *)p->k)[at] : (double)((const float *)p->k)[at];
}

static void store(const struct lsvm_smo *p, void *array, int64_t i, double value)
{
    if (p->is_double)
        ((double *)array)[i] = value;
    else
        ((float *)array)[i] = (float)value;
}

int lsvm_smo_state_new(const struct lsvm_smo *p, struct lsvm_smo_state *s)
{
    const size_t doubles = (size_t)p->n * sizeof(double), elements = (size_t)p->n * element_size(p);
    const size_t more = p->terms ? doubles + 4 * elements : 0;
    char *at = NULL;
    memset(s, 0, sizeof *s);
    if (posix_memalign(&s->block, LSVM_ALIGN, 3 * doubles + 4 * elements + more))
        return LSVM_NO_MEMORY;
    at = s->block;
    s->b = (double *)(void *)at;
    s->lo = s->b + p->n;
    s->hi = s->lo + p->n;
    at += 3 * doubles;
    s->g = at;
    s->up = at + elements;
    s->dn = at + 2 * elements;
    s->diagonal = at + 3 * elements;
    for (int64_t i = 0; i < p->n; i++) { /* a unit diagonal is not read: each of its entries would miss the caches */
        const double d = p->unit_diagonal ? 1 : kernel_at(p, i);
        store(p, s->diagonal, i, d > 1e-12 ? d : 1e-12); /* a zero row of a linear kernel still needs some curvature */
    }
    if (p->terms) {
        s->terms = at + 4 * elements;
        s->curvature = (double *)(void *)(at + 8 * elements);
        for (int64_t i = 0; i < p->n; i++) {
            const double d = p->unit_diagonal ? 1 : kernel_at(p, i);
            s->curvature[i] = d > 1e-12 ? d : 1e-12;
        }
    }
    return LSVM_OK;
}

void lsvm_smo_state_free(struct lsvm_smo_state *s)
{
    free(s->block);
    s->block = NULL;
}

void lsvm_smo_multiply(const struct lsvm_ops *ops, const struct lsvm_smo *p, const double *c, double *out)
{
    if (p->is_double)
        ops->multiply_f64(p, c, out);
    else
        ops->multiply_f32(p, c, out);
}

/* Gradient and distances to the bounds from b and f = Kb. */
static void refresh(const struct lsvm_smo *p, struct lsvm_smo_state *s, const double *f)
{
    for (int64_t i = 0; i < p->n; i++) {
        store(p, s->g, i, p->y[i] - f[i]);
        store(p, s->up, i, s->hi[i] - s->b[i]);
        store(p, s->dn, i, s->lo[i] - s->b[i]);
    }
}

static double larger(double a, double b) { return a > b ? a : b; }
static double smaller(double a, double b) { return a < b ? a : b; }

/* Bias of a solution: the mean gradient of the free coefficients, or the middle of what the bounded ones allow. */
static void find_bias(const struct lsvm_smo *p, const struct lsvm_smo_state *s, const double *f,
                      struct lsvm_report *report)
{
    double sum = 0, high = -1e300, low = 1e300;
    int64_t free_rows = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const double g = p->y[i] - f[i];
        const int may_grow = s->b[i]<s->hi[i], may_shrink = s->b[i]> s->lo[i];
        if (may_grow && may_shrink)
            sum += g, free_rows++;
        if (may_grow)
            high = larger(high, g);
        if (may_shrink)
            low = g < low ? g : low;
    }
    if (high < -1e299 ||
        low > 1e299) { /* one class only: nothing can move; the constant that answers with that class */
        report->violation = 0;
        report->bias = high < -1e299 ? low : high;
        return;
    }
    report->violation = larger(0, high - low);
    report->bias = free_rows ? sum / (double)free_rows : 0.5 * (high + low);
}

static double term(const struct lsvm_coef_terms *terms, int64_t i, double b)
{
    return terms ? terms->e[i] * fabs(b) + 0.5 * (b > 0 ? terms->plus[i] : terms->minus[i]) * b * b : 0;
}

/* Objective, gap, violation and bias in float64 from f = Kb. */
static void evaluate(const struct lsvm_smo *p, const struct lsvm_smo_state *s, const double *f,
                     struct lsvm_report *report)
{
    report->bias = report->violation = report->objective = report->gap = 0;
    if (p->offset)
        find_bias(p, s, f, report);
    for (int64_t i = 0; i < p->n; i++) {
        const double g = p->y[i] - f[i] - report->bias;
        report->objective += s->b[i] * (p->y[i] - 0.5 * f[i]) - term(p->terms, i, s->b[i]);
        report->gap += p->terms ? lsvm_coef_gap(p->terms, i, s->lo[i], s->hi[i], s->b[i], g)
                                : larger((s->hi[i] - s->b[i]) * g, (s->lo[i] - s->b[i]) * g);
    }
    report->iterations = s->iterations;
}

/* The primal objective at f = Kb, with losses of residuals up to `limit`. */
static double limited_primal(const struct lsvm_smo *p, const struct lsvm_smo_state *s, const double *f)
{
    double sum = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const double g = smaller(p->limit, larger(-p->limit, p->y[i] - f[i]));
        sum += 0.5 * s->b[i] * f[i];
        sum += p->terms ? lsvm_coef_loss(p->terms, i, s->lo[i], s->hi[i], g) : larger(s->hi[i] * g, s->lo[i] * g);
    }
    return sum;
}

/* The losses of small residuals, one to each side of every row. */
static double least_objective(const struct lsvm_smo *p, const struct lsvm_smo_state *s)
{
    double sum = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const double g = LEAST_RESIDUAL * p->limit + (p->terms ? p->terms->e[i] : 0), lo = s->lo[i], hi = s->hi[i];
        sum +=
            p->terms ? lsvm_coef_loss(p->terms, i, lo, hi, g) + lsvm_coef_loss(p->terms, i, lo, hi, -g) : (hi - lo) * g;
    }
    return sum;
}

/* What the loop has to reach: a KKT violation with an offset, an absolute gap without. */
static double loop_tolerance(const struct lsvm_smo *p, const struct lsvm_smo_state *s, const double *f,
                             double tolerance)
{
    double costs = 0;
    if (p->offset)
        return tolerance;
    if (p->limit > 0)
        return tolerance * larger(limited_primal(p, s, f), least_objective(p, s));
    if (p->terms)
        return tolerance * p->terms->total;
    for (int64_t i = 0; i < p->n; i++)
        costs += s->hi[i] - s->lo[i];
    return tolerance * costs;
}

/* Iterations after which the gradient is recomputed: its updates round (a random walk of about |g| 2^-24 a step in
 * float32). Recomputing reads a row of K for each nonzero coefficient, fewer than n; the iterations in between read 2
 * rows each. */
static int64_t refresh_interval(const struct lsvm_smo *p) { return p->n < 2000 ? 20000 : 10 * p->n; }

/* Whether the terms are a ridge: the same squares for both signs of b, and each b_i has one of them and no bound. */
static int is_ridge(const struct lsvm_smo *p, const struct lsvm_smo_state *s)
{
    for (int64_t i = 0; i < p->n; i++) {
        const int zero = s->lo[i] == 0 && s->hi[i] == 0, above = s->lo[i] == 0 && isinf(s->hi[i]),
                  below = isinf(s->lo[i]) && s->hi[i] == 0;
        if (p->terms->e[i] != 0 || p->terms->plus[i] != p->terms->minus[i] || !(zero || above || below))
            return 0;
    }
    return 1;
}

/* The loop that fits a problem. */
static lsvm_smo_loop loop_for(const struct lsvm_ops *ops, const struct lsvm_smo *p, const struct lsvm_smo_state *s)
{
    if (p->terms && is_ridge(p, s))
        return p->is_double ? ops->smo_ridge_f64 : ops->smo_ridge_f32;
    if (p->terms)
        return p->is_double ? ops->smo_terms_f64 : ops->smo_terms_f32;
    return p->is_double ? ops->smo_f64 : ops->smo_f32;
}

/* The loop from s->b and f = Kb, with the gradient refreshed at intervals, until `tolerance` or max_iterations. */
static int run(const struct lsvm_ops *ops, const struct lsvm_smo *p, struct lsvm_smo_state *s, double tolerance,
               double *f)
{
    const lsvm_smo_loop loop = loop_for(ops, p, s);
    for (;;) {
        refresh(p, s, f);
        s->stop_at = s->iterations + refresh_interval(p);
        if (s->stop_at > p->max_iterations)
            s->stop_at = p->max_iterations;
        const int code = loop(p, s, tolerance);
        if (code || s->converged || s->iterations < s->stop_at || s->iterations >= p->max_iterations)
            return code;
        lsvm_smo_multiply(ops, p, s->b, f);
    }
}

int lsvm_smo_solve(const struct lsvm_ops *ops, const struct lsvm_smo *p, const double *lo, const double *hi,
                   double tolerance, double *b, double *f, struct lsvm_report *report)
{
    const size_t doubles = (size_t)p->n * sizeof(double);
    struct lsvm_smo_state s;
    int code = lsvm_smo_state_new(p, &s);
    if (code)
        return code;
    memcpy(s.b, b, doubles);
    memcpy(s.lo, lo, doubles);
    memcpy(s.hi, hi, doubles);
    lsvm_smo_multiply(ops, p, s.b, f);
    double wanted = loop_tolerance(p, &s, f, tolerance), asked = wanted;
    for (int round = 0; round < (p->limit > 0 ? MOST_ROUNDS : 4); round++, asked = smaller(0.5 * asked, wanted)) {
        code = run(ops, p, &s, asked, f);
        if (code)
            goto out;
        lsvm_smo_multiply(ops, p, s.b, f);
        evaluate(p, &s, f, report);
        wanted = loop_tolerance(p, &s, f, tolerance);
        report->converged = (p->offset ? report->violation : report->gap) <= wanted;
        if (report->converged || s.iterations >= p->max_iterations)
            break;
    }
    memcpy(b, s.b, doubles);
out:
    lsvm_smo_state_free(&s);
    return code;
}

static void current_f(const struct lsvm_smo *p, const struct lsvm_smo_state *s, double *f)
{
    for (int64_t i = 0; i < p->n; i++)
        f[i] = p->y[i] - (p->is_double ? ((const double *)s->g)[i] : (double)((const float *)s->g)[i]);
}

/* Bounds of a coefficient whose row has this cost: on the side of its label for the hinge, the loss's own else. */
static void bounds(const struct lsvm_dual *dual, double y, double cost, double *lo, double *hi)
{
    if (!dual) {
        *hi = y > 0 ? cost : 0;
        *lo = y < 0 ? -cost : 0;
    } else {
        *hi = cost > 0 && !(dual->sided && y <= 0) ? cost * dual->high : 0;
        *lo = cost > 0 && !(dual->sided && y >= 0) ? cost * dual->low : 0;
    }
}

/* Boxes for cost c. */
static void set_boxes(const struct lsvm_smo *p, struct lsvm_smo_state *s, const struct lsvm_path *path, double c)
{
    for (int64_t i = 0; i < p->n; i++)
        bounds(path->dual, p->y[i], c * path->weight[i], &s->lo[i], &s->hi[i]);
}

/* Coefficients that rescale took to a bound, but for a rounding, are put there. */
static void snap(const struct lsvm_smo *p, struct lsvm_smo_state *s)
{
    for (int64_t i = 0; i < p->n; i++) {
        if (s->b[i] > s->hi[i] * (1 - 1e-12))
            s->b[i] = s->hi[i];
        if (s->b[i] < s->lo[i] * (1 - 1e-12))
            s->b[i] = s->lo[i];
    }
}

/* In the boxes of a smaller cost: free coefficients beyond them go to their bounds, and f = Kb along. */
static void clip(const struct lsvm_ops *ops, const struct lsvm_smo *p, struct lsvm_smo_state *s, double *f,
                 double *part, double *product)
{
    int any = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const double b = s->b[i], inside = b > s->hi[i] ? s->hi[i] : b < s->lo[i] ? s->lo[i] : b;
        part[i] = fabs(inside - b) > 1e-12 * fabs(b) ? inside - b : 0;
        s->b[i] = inside;
        any |= part[i] != 0;
    }
    if (any)
        lsvm_smo_multiply(ops, p, part, product);
    for (int64_t i = 0; any && i < p->n; i++)
        f[i] += product[i];
}

/* Terms for cost c, in `work` (3 n). */
static void set_terms(const struct lsvm_smo *p, const struct lsvm_path *path, double c, double *work,
                      struct lsvm_coef_terms *terms)
{
    double *e = work, *plus = work + p->n, *minus = work + 2 * p->n;
    terms->e = e, terms->plus = plus, terms->minus = minus, terms->total = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const double cost = c * path->weight[i];
        e[i] = cost > 0 ? path->dual->e : 0;
        plus[i] = cost > 0 ? path->dual->plus / cost : 0;
        minus[i] = cost > 0 ? path->dual->minus / cost : 0;
        terms->total += cost;
    }
}

/* b and f = Kb for the next cost: bounded coefficients grow by `ratio`, free ones stay; with an offset all grow, which
 * keeps their sum. f' = ratio f - (ratio - 1) K b_free = f + (ratio - 1) K b_bounded: over the fewer rows. */
static void rescale(const struct lsvm_ops *ops, const struct lsvm_smo *p, struct lsvm_smo_state *s, double ratio,
                    double *f, double *part, double *product)
{
    int64_t n_free = 0, n_bounded = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const int bounded = s->b[i] == s->lo[i] || s->b[i] == s->hi[i];
        n_free += !bounded && s->b[i] != 0;
        n_bounded += bounded && s->b[i] != 0;
    }
    const int by_free = n_free < n_bounded;
    for (int64_t i = 0; i < p->n; i++) {
        const int bounded = s->b[i] == s->lo[i] || s->b[i] == s->hi[i];
        part[i] = bounded == by_free ? 0 : s->b[i];
        s->b[i] *= bounded || p->offset ? ratio : 1;
    }
    if (!p->offset)
        lsvm_smo_multiply(ops, p, part, product);
    for (int64_t i = 0; i < p->n; i++)
        f[i] = p->offset ? ratio * f[i]
               : by_free ? ratio * f[i] - (ratio - 1) * product[i]
                         : f[i] + (ratio - 1) * product[i];
}

/* b and f = Kb take the multiple of b that is best: as costs grow, and where b is but a guess, sizes are wrong first.
 * The terms are a ridge, so every multiple is feasible. */
static void best_multiple(const struct lsvm_smo *p, struct lsvm_smo_state *s, double *f)
{
    double linear = 0, square = 0;
    for (int64_t i = 0; i < p->n; i++) {
        linear += p->y[i] * s->b[i];
        square += s->b[i] * (f[i] + p->terms->plus[i] * s->b[i]);
    }
    const double times = square > 0 ? linear / square : 1;
    for (int64_t i = 0; i < p->n; i++)
        s->b[i] *= times, f[i] *= times;
}

/* The loop, and on as long as the objective, which a gap is compared with, has become smaller. */
static int run_path(const struct lsvm_ops *ops, const struct lsvm_smo *p, struct lsvm_smo_state *s, double tolerance,
                    double *f, struct lsvm_report *report)
{
    double asked = loop_tolerance(p, s, f, tolerance);
    for (int round = 0; round < MOST_ROUNDS; round++) {
        const int code = run(ops, p, s, asked, f);
        if (code)
            return code;
        current_f(p, s, f);
        evaluate(p, s, f, report);
        report->converged = s->converged;
        if (!s->converged || !(p->limit > 0))
            break;
        const double wanted = loop_tolerance(p, s, f, tolerance);
        if (report->gap <= wanted)
            break;
        asked = smaller(0.5 * asked, wanted);
    }
    return LSVM_OK;
}

/* All coefficients at their bound, the right start for a small cost; 0 where it is infinite, and with an offset. */
static void begin_path(const struct lsvm_smo *p, struct lsvm_smo_state *s, const struct lsvm_path *path, double *f)
{
    for (int64_t i = 0; i < p->n; i++) {
        double lo = 0, hi = 0;
        bounds(path->dual, p->y[i], path->costs[0] * path->weight[i], &lo, &hi);
        const double bound = p->y[i] > 0 ? hi : lo;
        s->b[i] = p->offset || isinf(bound) ? 0 : bound;
        f[i] = p->offset ? 0 : path->costs[0] * path->unit[i];
    }
}

int lsvm_smo_path(const struct lsvm_ops *ops, const struct lsvm_smo *problem, const struct lsvm_path *path,
                  double tolerance, double *b, double *f, struct lsvm_report *reports, int64_t *tried)
{
    const size_t doubles = (size_t)problem->n * sizeof(double);
    const struct lsvm_dual *dual = path->dual;
    const struct lsvm_before *before = path->before;
    const int with_terms = dual && (dual->e > 0 || dual->plus > 0 || dual->minus > 0);
    struct lsvm_coef_terms terms = {0};
    struct lsvm_smo own = *problem;
    const struct lsvm_smo *p = &own;
    struct lsvm_smo_state s;
    own.terms = with_terms ? &terms : NULL;
    double *work = malloc((with_terms ? 6 : 3) * doubles);
    if (!work)
        return LSVM_NO_MEMORY;
    int code = lsvm_smo_state_new(p, &s);
    if (code) {
        free(work);
        return code;
    }
    double *now = work, *part = work + p->n, *product = work + 2 * p->n;
    double last = before ? before->cost : path->costs[0];
    if (before) {
        memcpy(s.b, before->b, doubles);
        memcpy(now, before->f, doubles);
        set_boxes(p, &s, path, before->cost);
        snap(p, &s);
    } else
        begin_path(p, &s, path, now);
    for (int64_t c = *tried = 0; c < path->n_costs; c++) {
        const double cost = path->costs[c];
        if (cost != last)
            rescale(ops, p, &s, cost / last, now, part, product);
        set_boxes(p, &s, path, cost);
        if (cost < last)
            clip(ops, p, &s, now, part, product);
        snap(p, &s);
        if (with_terms)
            set_terms(p, path, cost, work + 3 * p->n, &terms);
        if (with_terms && dual->sided)
            best_multiple(p, &s, now);
        last = cost;
        s.iterations = 0;
        code = run_path(ops, p, &s, tolerance, now, &reports[c]);
        if (code)
            break;
        memcpy(b + c * p->n, s.b, doubles);
        memcpy(f + c * p->n, now, doubles);
        *tried = c + 1;
        if (p->limit > 0 && !reports[c].converged)
            break; /* a larger cost would not take fewer iterations */
    }
    free(work);
    lsvm_smo_state_free(&s);
    return code;
}
