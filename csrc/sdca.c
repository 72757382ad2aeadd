#include "sdca.h"

#include <stdlib.h>
#include <string.h>

#include "ops.h"

#define BLOCK 4096 /* rows whose values are looked at together */

struct solver {
    const struct lsvm_ops *ops;
    const struct lsvm_linear *p;
    const struct lsvm_sdca *s;
    struct lsvm_sdca_pass pass;
    double *values; /* BLOCK */
    uint64_t random;
};

static double squared_norm(const double *w, int64_t size)
{
    double sum = 0;
    for (int64_t j = 0; j < size; j++)
        sum += w[j] * w[j];
    return sum;
}

/* Coordinates from alpha, all of them active, and w = sum_i alpha_i y_i m_i phi_i; `coef` holds n. */
static void begin(struct solver *o, const double *alpha, double *coef)
{
    o->pass.n_active = 0;
    for (int64_t i = 0; i < o->p->rows.n; i++) {
        const double cost = o->s->y[i] != 0 ? o->s->cost[i] : 0;
        struct lsvm_coordinate *const c = &o->pass.coordinates[i];
        *c = (struct lsvm_coordinate){.y = o->s->y[i]};
        coef[i] = 0;
        if (!(cost > 0))
            continue;
        c->upper = o->s->squared ? 1e300 : cost;
        c->ridge = o->s->squared ? 1 / (2 * cost) : 0;
        const double curvature = lsvm_linear_norm(o->p, i) + c->ridge;
        c->inverse = curvature > 0 ? 1 / curvature : 1e300; /* a row of zeros: its coefficient goes to the bound */
        c->alpha = alpha[i] < 0 ? 0 : alpha[i] > c->upper ? c->upper : alpha[i];
        coef[i] = c->alpha * c->y;
        o->pass.active[o->pass.n_active++] = i;
    }
    memset(o->pass.w, 0, (size_t)lsvm_linear_size(o->p) * sizeof(double));
    lsvm_linear_add(o->ops, o->p, coef, o->pass.w);
}

static uint64_t draw(uint64_t *state) /* xorshift64*, Vigna 2016 */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717ULL;
}

static void shuffle(struct solver *o)
{
    int64_t *const a = o->pass.active;
    for (int64_t i = o->pass.n_active - 1; i > 0; i--) {
        const int64_t j = (int64_t)((((draw(&o->random) >> 32) * (uint64_t)(i + 1)) >> 32));
        const int64_t kept = a[i];
        a[i] = a[j];
        a[j] = kept;
    }
}

/* Both objectives over all rows. The active ones are then those that the next steps may move: inside their box, or
 * within `margin` of leaving a bound. */
static void evaluate(struct solver *o, double margin, struct lsvm_sdca_report *report)
{
    const double half = 0.5 * squared_norm(o->pass.w, lsvm_linear_size(o->p));
    double primal = half, dual = -half;
    o->pass.n_active = 0;
    for (int64_t first = 0; first < o->p->rows.n; first += BLOCK) {
        const int64_t last = first + BLOCK < o->p->rows.n ? first + BLOCK : o->p->rows.n;
        lsvm_linear_values(o->ops, o->p, first, last, o->pass.w, o->values);
        for (int64_t i = first; i < last; i++) {
            const struct lsvm_coordinate *const c = &o->pass.coordinates[i];
            if (c->upper == 0)
                continue;
            const double slack = 1 - c->y * o->values[i - first];
            const double gradient = c->ridge * c->alpha - slack;
            if (slack > 0)
                primal += o->s->squared ? o->s->cost[i] * slack * slack : o->s->cost[i] * slack;
            dual += c->alpha - 0.5 * c->ridge * c->alpha * c->alpha;
            if (!(c->alpha <= 0 && gradient > margin) && !(c->alpha >= c->upper && gradient < -margin))
                o->pass.active[o->pass.n_active++] = i;
        }
    }
    report->primal = primal;
    report->dual = dual;
}

/* Passes until the gap is small enough. The gap costs a pass over all rows, so it is looked at when the active
 * coordinates agree, or when several times as much work has been done. */
static int run(struct solver *o, struct lsvm_sdca_report *report)
{
    struct lsvm_sdca_pass *const pass = &o->pass;
    const int64_t n = o->p->rows.n;
    double spread_wanted = 1;
    int64_t next_look = 3 * n;
    pass->above = 1e300;
    pass->below = -1e300;
    for (;;) {
        shuffle(o);
        report->steps += pass->n_active;
        o->ops->sdca_pass(o->p, pass);
        if (o->s->poll && o->s->poll(o->s->context, report->steps))
            return LSVM_INTERRUPTED;
        const double spread = pass->n_active ? pass->largest - pass->smallest : 0;
        const int last = report->steps >= o->s->max_passes * n;
        pass->above = pass->largest > 0 ? pass->largest : 1e300;
        pass->below = pass->smallest < 0 ? pass->smallest : -1e300;
        if (spread > spread_wanted && report->steps < next_look && !last)
            continue;
        evaluate(o, 2 * spread, report);
        report->converged = report->primal - report->dual <= o->s->tolerance * report->primal;
        if (report->converged || last)
            return LSVM_OK;
        if (spread <= spread_wanted)
            spread_wanted = 0.3 * spread;
        next_look = report->steps + 3 * n + report->steps / 4;
        report->steps++; /* ends even where nothing is active */
        pass->above = 1e300;
        pass->below = -1e300;
    }
}

int lsvm_sdca_solve(const struct lsvm_ops *ops, const struct lsvm_linear *p, const struct lsvm_sdca *s, double *alpha,
                    double *w, struct lsvm_sdca_report *report)
{
    const size_t n = (size_t)(p->rows.n ? p->rows.n : 1);
    struct solver o = {.ops = ops, .p = p, .s = s, .random = s->seed * 2 + 1};
    double *coef = malloc(n * sizeof *coef);
    int code = LSVM_NO_MEMORY;
    memset(report, 0, sizeof *report);
    o.pass.w = w;
    o.pass.coordinates = malloc(n * sizeof *o.pass.coordinates);
    o.pass.active = malloc(n * sizeof *o.pass.active);
    o.values = malloc(BLOCK * sizeof *o.values);
    if (!coef || !o.pass.coordinates || !o.pass.active || !o.values)
        goto out;
    begin(&o, alpha, coef);
    code = run(&o, report);
    for (int64_t i = 0; i < p->rows.n; i++)
        alpha[i] = o.pass.coordinates[i].alpha;
out:
    free(coef);
    free(o.pass.coordinates);
    free(o.pass.active);
    free(o.values);
    return code;
}
