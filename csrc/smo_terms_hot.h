/* smo_terms_hot.h - the SMO loop where coefficients have terms of their own; see lsvm_coef_terms in smo.h (included once for
 * float, once for double, after smo_hot.h).
 *
 * A coefficient moves within its region: on one side of 0, where its term is smooth, or all of its box where the term
 * is smooth at 0, too. There the problem is that of smo_hot.h with the gradient g - shift and the curvature K_ii + d. At
 * 0 itself the sign of the gradient, beyond e, says which side is its region. So a coefficient changes its sign in two
 * steps.
 */

struct NAME(sided) {
    const REAL *k;
    REAL *g, *up, *dn;
    REAL *shift, *edge, *plus, *minus; /* shift of g; e at 0; curvature where the coefficient grows, and shrinks */
    int64_t n, ld;
};

/* Gradient of the region that a gradient g leads to: beyond the edge, or 0. */
static inline VREAL NAME(beyond)(const struct NAME(sided) * r, int64_t i, VREAL g)
{
    const VREAL zero = {0}, moved = g - *(VREAL *)(r->shift + i), edge = *(VREAL *)(r->edge + i);
    return NAME(max)(moved - edge, zero) + NAME(min)(moved + edge, zero);
}

static inline VREAL NAME(curvature)(const struct NAME(sided) * r, int64_t i, VREAL g)
{
    const VREAL zero = {0};
    return NAME(select)(g > zero, *(VREAL *)(r->plus + i), *(VREAL *)(r->minus + i));
}

static inline VREAL NAME(sided_gain)(const struct NAME(sided) * r, int64_t i, VREAL g)
{
    g = NAME(beyond)(r, i, g);
    const VREAL d = NAME(curvature)(r, i, g);
    return NAME(gain)(g, *(VREAL *)(r->up + i), *(VREAL *)(r->dn + i), d, NAME(reciprocal)(d));
}

/* Gain of coordinate j's best step after i has taken its step t; see partner_gain. */
static inline VREAL NAME(sided_partner_gain)(const struct NAME(sided) * r, int64_t j, const REAL *ki, REAL t,
                                             REAL follow)
{
    const VREAL k = *(const VREAL *)(ki + j), g = NAME(beyond)(r, j, *(VREAL *)(r->g + j) - t * k);
    const VREAL d = NAME(curvature)(r, j, g), curvature = NAME(max)(d - follow * k * k, (REAL)1e-6 * d);
    return NAME(gain)(g, *(VREAL *)(r->up + j), *(VREAL *)(r->dn + j), curvature, NAME(reciprocal)(curvature));
}

/* g -= di K_i + dj K_j, and the coordinate with the largest gain of its own; index -1 at the optimum. */
static inline struct NAME(best)
    NAME(sided_select)(const struct NAME(sided) * r, const REAL *ki, REAL di, const REAL *kj, REAL dj)
{
    REAL best = 0;
    int64_t block = 0;
    for (int64_t first = 0; first < r->n; first += SMO_BLOCK) {
        const int64_t last = first + SMO_BLOCK < r->n ? first + SMO_BLOCK : r->n;
        VREAL most = {0};
        for (int64_t i = first; i < last; i += SMO_LANES) {
            VREAL *g = (VREAL *)(r->g + i);
            *g = *g - di * *(const VREAL *)(ki + i) - dj * *(const VREAL *)(kj + i);
            most = NAME(max)(most, NAME(sided_gain)(r, i, *g));
        }
        if (NAME(any)(most > NAME(splat)(best)))
            best = NAME(horizontal_max)(most), block = first;
    }
    if (best <= 0)
        return (struct NAME(best)){0, -1};
    const int64_t end = block + SMO_BLOCK < r->n ? block + SMO_BLOCK : r->n;
    SMO_FIND(block, end, best, NAME(sided_gain)(r, i, *(VREAL *)(r->g + i)));
}

static inline struct NAME(best) NAME(sided_partner)(const struct NAME(sided) * r, const REAL *ki, REAL t, REAL follow)
{
    REAL best = 0;
    int64_t block = 0;
    for (int64_t first = 0; first < r->n; first += SMO_BLOCK) {
        const int64_t last = first + SMO_BLOCK < r->n ? first + SMO_BLOCK : r->n;
        VREAL most = {0};
        for (int64_t j = first; j < last; j += SMO_LANES)
            most = NAME(max)(most, NAME(sided_partner_gain)(r, j, ki, t, follow));
        if (NAME(any)(most > NAME(splat)(best)))
            best = NAME(horizontal_max)(most), block = first;
    }
    if (best <= 0)
        return (struct NAME(best)){0, -1};
    const int64_t end = block + SMO_BLOCK < r->n ? block + SMO_BLOCK : r->n;
    SMO_FIND(block, end, best, NAME(sided_partner_gain)(r, i, ki, t, follow));
}

/* What region coefficient i is in, from b_i. */
static inline void NAME(enter)(const struct NAME(sided) * r, const struct lsvm_smo *p, struct lsvm_smo_state *s,
                               int64_t i)
{
    const struct lsvm_coef_terms *terms = p->terms;
    const double b = s->b[i], e = terms->e[i], d = s->curvature[i];
    const int whole = e <= 0 && terms->plus[i] == terms->minus[i], above = b > 0, at_zero = !whole && b == 0;
    const double own = above || whole ? terms->plus[i] : terms->minus[i];
    r->up[i] = (REAL)(whole || above || at_zero ? s->hi[i] - b : -b);
    r->dn[i] = (REAL)(whole || !above ? s->lo[i] - b : -b);
    r->shift[i] = (REAL)(at_zero ? 0 : own * b + (whole ? 0 : above ? e : -e));
    r->edge[i] = (REAL)(at_zero ? e : 0);
    r->plus[i] = (REAL)(d + (at_zero ? terms->plus[i] : own));
    r->minus[i] = (REAL)(d + (at_zero ? terms->minus[i] : own));
}

/* Move b_i by delta within its region; the move made. A step to an end of the region as REAL knows it ends there. */
static inline double NAME(sided_move)(const struct NAME(sided) * r, const struct lsvm_smo *p, struct lsvm_smo_state *s,
                                      int64_t i, double delta)
{
    const double before = s->b[i];
    const int split = p->terms->e[i] > 0 || p->terms->plus[i] != p->terms->minus[i];
    const double low = split && before > 0 ? 0 : s->lo[i], high = split && before < 0 ? 0 : s->hi[i];
    double to = delta <= r->dn[i] ? low : delta >= r->up[i] ? high : before + delta;
    s->b[i] = to < low ? low : to > high ? high : to;
    NAME(enter)(r, p, s, i);
    return s->b[i] - before;
}

static int NAME(smo_terms)(const struct lsvm_smo *p, struct lsvm_smo_state *s, double tolerance)
{
    REAL *extra = s->terms;
    const struct NAME(sided)
        sided = {p->k, s->g, s->up, s->dn, extra, extra + p->n, extra + 2 * p->n, extra + 3 * p->n, p->n, p->ld};
    const struct NAME(sided) *r = &sided;
    for (int64_t i = 0; i < p->n; i++)
        NAME(enter)(r, p, s, i);
    const REAL *any = NAME(row)(p, 0);
    struct NAME(best) first = NAME(sided_select)(r, any, 0, any, 0);
    s->converged = 0;
    for (int64_t iteration = 0;; iteration++, s->iterations++) {
        if (iteration % 32 == 0 || first.index < 0 || s->iterations >= s->stop_at) {
            s->gap = 0;
            for (int64_t i = 0; i < p->n; i++)
                s->gap += lsvm_coef_gap(p->terms, i, s->lo[i], s->hi[i], s->b[i], (double)r->g[i]);
            s->converged = s->gap <= tolerance;
            if (s->converged || first.index < 0 || s->iterations >= s->stop_at)
                return LSVM_OK;
            if (iteration % 8192 == 0 && p->poll && p->poll(p->context, s->iterations))
                return LSVM_INTERRUPTED;
        }
        const int64_t i = first.index;
        const REAL *ki = NAME(row)(p, i), up = r->up[i], dn = r->dn[i];
        /* the vectors of a block hold the region of i: its gradient there, and its curvature */
        const REAL moved = r->g[i] - r->shift[i], edge = r->edge[i];
        const REAL gi = moved > edge ? moved - edge : moved < -edge ? moved + edge : 0;
        const REAL di = gi > 0 ? r->plus[i] : r->minus[i], whole = gi / di;
        const REAL t = whole > up ? up : whole < dn ? dn : whole;
        r->up[i] = r->dn[i] = 0; /* i is nobody's partner: itself least of all */
        const int64_t j = NAME(sided_partner)(r, ki, t, t == whole ? 1 / di : 0).index;
        r->up[i] = up, r->dn[i] = dn;
        double si = t, sj = 0;
        if (j >= 0) {
            const REAL kij = ki[j], after = r->g[j] - r->shift[j] - t * kij, edge_j = r->edge[j];
            const int grows = after > 0;
            const REAL gj = r->g[j] - r->shift[j] - (grows ? edge_j : -edge_j);
            REAL g[2] = {gi, gj}, d[2] = {di, grows ? r->plus[j] : r->minus[j]}, ups[2] = {up, r->up[j]},
                 dns[2] = {dn, r->dn[j]};
            if (edge > 0) /* at 0 the region is one side of it */
                *(gi > 0 ? dns : ups) = 0;
            if (edge_j > 0)
                (grows ? dns : ups)[1] = 0;
            const struct NAME(rows) pair = {NULL, g, ups, dns, d, 2, 0};
            NAME(solve_pair)(&pair, 0, 1, kij, &si, &sj);
        }
        const REAL *kj = j >= 0 ? NAME(row)(p, j) : ki;
        si = NAME(sided_move)(r, p, s, i, si);
        sj = j >= 0 ? NAME(sided_move)(r, p, s, j, sj) : 0;
        first = NAME(sided_select)(r, ki, (REAL)si, kj, (REAL)sj);
    }
}

#undef SMO_LANES
#undef SMO_BLOCK
#undef SMO_FIND
#undef SMO_FAR
