#include "lasvm.h"

#include <stdlib.h>

#define POLL_EVERY 1024 /* rows */

struct expansion {
    const struct lsvm_smo *p;
    const struct lsvm_epoch *e;
    double *b;
    int64_t *row; /* members, `size` of them */
    double *g;    /* of each member */
    char *inside; /* of each row: whether it is a member */
    int64_t size, steps;
};

/* The members at which g is largest among those that may grow, and smallest among those that may shrink; -1 for none. */
struct pair {
    int64_t grows, shrinks;
};

static double kernel(const struct lsvm_smo *p, int64_t i, int64_t j)
{
    const int64_t at = i * p->ld + j;
    return p->is_double ? ((const double *)p->k)[at] : (double)((const float *)p->k)[at];
}

static void enter(struct expansion *s, int64_t i)
{
    double f = 0;
    for (int64_t m = 0; m < s->size; m++)
        f += s->b[s->row[m]] * kernel(s->p, i, s->row[m]);
    s->row[s->size] = i;
    s->g[s->size++] = s->p->y[i] - f;
    s->inside[i] = 1;
}

/* The members of b != 0 first, so that each gradient can be summed over all of them; then the seeds. */
static void begin(struct expansion *s)
{
    int64_t left[2] = {LSVM_SEEDS, LSVM_SEEDS};
    for (int64_t i = 0; i < s->p->n; i++)
        if (s->b[i] != 0) {
            s->row[s->size++] = i;
            s->inside[i] = 1;
        }
    for (int64_t m = 0; m < s->size; m++) {
        double f = 0;
        for (int64_t k = 0; k < s->size; k++)
            f += s->b[s->row[k]] * kernel(s->p, s->row[m], s->row[k]);
        s->g[m] = s->p->y[s->row[m]] - f;
    }
    for (int64_t t = 0; t < s->e->n && left[0] + left[1] > 0; t++) {
        const int64_t i = s->e->order[t], side = s->p->y[i] > 0;
        if (!s->inside[i] && left[side] > 0) {
            left[side]--;
            enter(s, i);
        }
    }
}

static struct pair most_violating(const struct expansion *s)
{
    struct pair found = {-1, -1};
    for (int64_t m = 0; m < s->size; m++) {
        const int64_t i = s->row[m];
        if (s->b[i] < s->e->hi[i] && (found.grows < 0 || s->g[m] > s->g[found.grows]))
            found.grows = m;
        if (s->b[i] > s->e->lo[i] && (found.shrinks < 0 || s->g[m] < s->g[found.shrinks]))
            found.shrinks = m;
    }
    return found;
}

/* The best step on a pair of members; 0 if it does not violate optimality. */
static int step(struct expansion *s, struct pair pair)
{
    if (pair.grows < 0 || pair.shrinks < 0 || s->g[pair.grows] - s->g[pair.shrinks] <= s->e->tolerance)
        return 0;
    const int64_t i = s->row[pair.grows], j = s->row[pair.shrinks];
    const double curvature = kernel(s->p, i, i) + kernel(s->p, j, j) - 2 * kernel(s->p, i, j);
    const double up = s->e->hi[i] - s->b[i], down = s->b[j] - s->e->lo[j], room = up < down ? up : down;
    const double best = (s->g[pair.grows] - s->g[pair.shrinks]) / (curvature > 1e-12 ? curvature : 1e-12);
    const double t = best < room ? best : room;
    s->b[i] = t < up ? s->b[i] + t : s->e->hi[i]; /* a bound is reached without rounding */
    s->b[j] = t < down ? s->b[j] - t : s->e->lo[j];
    for (int64_t m = 0; m < s->size; m++)
        s->g[m] -= t * (kernel(s->p, i, s->row[m]) - kernel(s->p, j, s->row[m]));
    s->steps++;
    return 1;
}

/* Row i, if it is no member: it enters, and moves with the member that violates most with it. */
static void process(struct expansion *s, int64_t i)
{
    if (s->inside[i])
        return;
    enter(s, i);
    struct pair pair = most_violating(s);
    if (s->p->y[i] > 0)
        pair.grows = s->size - 1;
    else
        pair.shrinks = s->size - 1;
    if (!step(s, pair))
        s->inside[s->row[--s->size]] = 0;
}

/* A step on the most violating pair of members; those at 0 that it leaves nothing to gain are no members any more. */
static void reprocess(struct expansion *s)
{
    int64_t kept = 0;
    step(s, most_violating(s));
    const struct pair pair = most_violating(s);
    if (pair.grows < 0 || pair.shrinks < 0)
        return;
    const double high = s->g[pair.grows], low = s->g[pair.shrinks];
    for (int64_t m = 0; m < s->size; m++) {
        const int64_t i = s->row[m];
        const int idle = s->b[i] == 0 && (s->p->y[i] > 0 ? s->g[m] <= low : s->g[m] >= high);
        s->inside[i] = !idle;
        s->row[kept] = i;
        s->g[kept] = s->g[m];
        kept += !idle;
    }
    s->size = kept;
}

int lsvm_lasvm_epoch(const struct lsvm_smo *p, const struct lsvm_epoch *e, double *b, int64_t *steps)
{
    const size_t n = (size_t)p->n;
    struct expansion s = {.p = p, .e = e, .b = b};
    int code = LSVM_NO_MEMORY;
    s.row = malloc(n * sizeof *s.row);
    s.g = malloc(n * sizeof *s.g);
    s.inside = calloc(n, 1);
    if (!s.row || !s.g || !s.inside)
        goto out;
    code = LSVM_OK;
    begin(&s);
    for (int64_t t = 0; t < e->n; t++) {
        process(&s, e->order[t]);
        reprocess(&s);
        if (t % POLL_EVERY == 0 && p->poll && p->poll(p->context, s.steps)) {
            code = LSVM_INTERRUPTED;
            goto out;
        }
    }
out:
    *steps = s.steps;
    free(s.row);
    free(s.g);
    free(s.inside);
    return code;
}
