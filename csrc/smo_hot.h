/* smo_hot.h - the SMO loop over one level's vectors of REAL; see level.h (included once for float, once for double).
 *
 * An iteration is two passes over the rows. The first applies the last step to the gradient and finds the coordinate i
 * with the largest gain of a step on its own; the second reads row i of K and finds the partner j whose step, with i
 * following along, gains most (second-order choice). The pair is then solved exactly in its box.
 */

#define SMO_LANES ((int64_t)(LSVM_BYTES / sizeof(REAL)))
#define SMO_BLOCK 256 /* rows after which a maximum is folded: its index is then searched in one block only */

/* k and ld are those of the problem. Nobody reads them here, but without them gcc keeps the rest in memory, and the loops
 * take 13 per cent more instructions. */
struct NAME(rows) {
    const REAL *k;
    REAL *g, *up, *dn, *diagonal;
    int64_t n, ld;
};

struct NAME(best) {
    REAL value;
    int64_t index;
};

/* Row i of K, computed before where it is not there. */
static inline const REAL *NAME(row)(const struct lsvm_smo *p, int64_t i)
{
    if (__builtin_expect(p->rows != NULL && !p->rows->there[i], 0))
        compute_row(p->rows, i);
    return (const REAL *)p->k + i * p->ld;
}

static inline VREAL NAME(splat)(REAL x) { return (VREAL){0} + x; }

static inline VREAL NAME(clip)(VREAL x, VREAL low, VREAL high) { return NAME(min)(NAME(max)(x, low), high); }

static inline REAL NAME(horizontal_max)(VREAL v)
{
    REAL m = v[0];
    for (int l = 1; l < SMO_LANES; l++)
        m = v[l] > m ? v[l] : m;
    return m;
}

static inline REAL NAME(horizontal_sum)(VREAL v)
{
    REAL s = 0;
    for (int l = 0; l < SMO_LANES; l++)
        s += v[l];
    return s;
}

/* Gain of the best step of one coordinate alone, curvature d: t (g - d t / 2) at t = g / d clipped to the box. */
static inline VREAL NAME(gain)(VREAL g, VREAL up, VREAL dn, VREAL d, VREAL inverse)
{
    const VREAL t = NAME(clip)(g * inverse, dn, up);
    return t * (g - (REAL)0.5 * d * t);
}

static inline VREAL NAME(own_gain)(const struct NAME(rows) * r, int64_t i, VREAL g, int unit)
{
    const VREAL up = *(VREAL *)(r->up + i), dn = *(VREAL *)(r->dn + i), one = NAME(splat)(1);
    const VREAL d = unit ? one : *(VREAL *)(r->diagonal + i);
    return NAME(gain)(g, up, dn, d, unit ? one : NAME(reciprocal)(d));
}

/* Gain of coordinate j's best step after i has taken its step t, with i free to follow (follow = 1 / K_ii) or held at
 * its bound (follow = 0): the curvature along j is K_jj - K_ij^2 / K_ii or K_jj. */
static inline VREAL NAME(partner_gain)(const struct NAME(rows) * r, int64_t j, const REAL *ki, REAL t, REAL follow,
                                       int unit)
{
    const VREAL k = *(const VREAL *)(ki + j), up = *(VREAL *)(r->up + j), dn = *(VREAL *)(r->dn + j);
    const VREAL d = unit ? NAME(splat)(1) : *(VREAL *)(r->diagonal + j);
    const VREAL g = *(VREAL *)(r->g + j) - t * k;
    const VREAL curvature = NAME(max)(d - follow * k * k, (REAL)1e-6 * d);
    return NAME(gain)(g, up, dn, curvature, NAME(reciprocal)(curvature));
}

/* The row in [first, last) whose gain is `value` (the vectors of the block are computed once more). */
#define SMO_FIND(first, last, value, expression)                     \
    do {                                                             \
        for (int64_t i = (first); i < (last); i += SMO_LANES) {      \
            const VREAL gains = (expression);                        \
            if (NAME(any)(gains >= NAME(splat)(value)))              \
                for (int64_t l = 0; l < SMO_LANES; l++)              \
                    if (gains[l] >= (value))                         \
                        return (struct NAME(best)){gains[l], i + l}; \
        }                                                            \
        return (struct NAME(best)){0, -1};                           \
    } while (0)

/* First pass: g -= di K_i + dj K_j, and the coordinate with the largest gain of its own; index -1 at the optimum. */
static inline struct NAME(best)
    NAME(update_and_select)(const struct NAME(rows) * r, const REAL *ki, REAL di, const REAL *kj, REAL dj, int unit)
{
    REAL best = 0;
    int64_t block = 0;
    for (int64_t first = 0; first < r->n; first += SMO_BLOCK) {
        const int64_t last = first + SMO_BLOCK < r->n ? first + SMO_BLOCK : r->n;
        VREAL most[2] = {{0}};
        for (int64_t i = first; i < last; i += 2 * SMO_LANES)
            for (int v = 0; v < 2; v++) {
                const int64_t at = i + v * SMO_LANES;
                VREAL *g = (VREAL *)(r->g + at);
                const VREAL now = *g - di * *(const VREAL *)(ki + at) - dj * *(const VREAL *)(kj + at);
                *g = now;
                most[v] = NAME(max)(most[v], NAME(own_gain)(r, at, now, unit));
            }
        most[0] = NAME(max)(most[0], most[1]);
        if (NAME(any)(most[0] > NAME(splat)(best)))
            best = NAME(horizontal_max)(most[0]), block = first;
    }
    if (best <= 0)
        return (struct NAME(best)){0, -1};
    const int64_t end = block + SMO_BLOCK < r->n ? block + SMO_BLOCK : r->n;
    SMO_FIND(block, end, best, NAME(own_gain)(r, i, *(VREAL *)(r->g + i), unit));
}

/* Second pass: the partner of i; index -1 where nobody gains. */
static inline struct NAME(best)
    NAME(partner)(const struct NAME(rows) * r, const REAL *ki, REAL t, REAL follow, int unit)
{
    REAL best = 0;
    int64_t block = 0;
    for (int64_t first = 0; first < r->n; first += SMO_BLOCK) {
        const int64_t last = first + SMO_BLOCK < r->n ? first + SMO_BLOCK : r->n;
        VREAL most[2] = {{0}};
        for (int64_t j = first; j < last; j += 2 * SMO_LANES)
            for (int v = 0; v < 2; v++)
                most[v] = NAME(max)(most[v], NAME(partner_gain)(r, j + v * SMO_LANES, ki, t, follow, unit));
        most[0] = NAME(max)(most[0], most[1]);
        if (NAME(any)(most[0] > NAME(splat)(best)))
            best = NAME(horizontal_max)(most[0]), block = first;
    }
    if (best <= 0)
        return (struct NAME(best)){0, -1};
    const int64_t end = block + SMO_BLOCK < r->n ? block + SMO_BLOCK : r->n;
    SMO_FIND(block, end, best, NAME(partner_gain)(r, i, ki, t, follow, unit));
}

/* sum_i max(up_i g_i, dn_i g_i): the duality gap without offset. */
static REAL NAME(gap)(const struct NAME(rows) * r)
{
    VREAL sum[2] = {{0}};
    for (int64_t i = 0; i < r->n; i += 2 * SMO_LANES)
        for (int v = 0; v < 2; v++) {
            const int64_t at = i + v * SMO_LANES;
            const VREAL g = *(VREAL *)(r->g + at);
            sum[v] += NAME(max)(*(VREAL *)(r->up + at) * g, *(VREAL *)(r->dn + at) * g);
        }
    return NAME(horizontal_sum)(sum[0] + sum[1]);
}

/* Put b_i where it is to be, kept in its box; returns the move made and refreshes the distances to the bounds. */
static inline double NAME(place)(const struct NAME(rows) * r, struct lsvm_smo_state *s, int64_t i, double to)
{
    const double before = s->b[i];
    s->b[i] = to <= s->lo[i] ? s->lo[i] : to >= s->hi[i] ? s->hi[i] : to;
    r->up[i] = (REAL)(s->hi[i] - s->b[i]);
    r->dn[i] = (REAL)(s->lo[i] - s->b[i]);
    return s->b[i] - before;
}

/* Move b_i by delta. A step to a bound as REAL knows it ends at the bound itself: what rounding left over would stay a
 * support vector, or a free one, for good. */
static inline double NAME(move)(const struct NAME(rows) * r, struct lsvm_smo_state *s, int64_t i, double delta)
{
    const double to = delta <= r->dn[i] ? s->lo[i] : delta >= r->up[i] ? s->hi[i] : s->b[i] + delta;
    return NAME(place)(r, s, i, to);
}

static inline double NAME(clip_step)(const struct NAME(rows) * r, int64_t i, double t)
{
    return t > r->up[i] ? r->up[i] : t < r->dn[i] ? r->dn[i] : t;
}

/* The exact maximum of g_i s + g_j t - (K_ii s^2 + 2 K_ij s t + K_jj t^2) / 2 over the box of (s, t). */
static inline void NAME(solve_pair)(const struct NAME(rows) * r, int64_t i, int64_t j, double k, double *s, double *t)
{
    const double di = r->diagonal[i], dj = r->diagonal[j], gi = r->g[i], gj = r->g[j], det = di * dj - k * k;
    double best = -1;
    if (det > 1e-12 * di * dj) {
        *s = (gi * dj - gj * k) / det;
        *t = (gj * di - gi * k) / det;
        if (*s <= r->up[i] && *s >= r->dn[i] && *t <= r->up[j] && *t >= r->dn[j])
            return;
    }
    const double bounds_i[2] = {r->dn[i], r->up[i]}, bounds_j[2] = {r->dn[j], r->up[j]};
    for (int e = 0; e < 4; e++) { /* otherwise the maximum lies on an edge */
        const double si = e < 2 ? bounds_i[e] : NAME(clip_step)(r, i, (gi - k * bounds_j[e - 2]) / di);
        const double tj = e < 2 ? NAME(clip_step)(r, j, (gj - k * si) / dj) : bounds_j[e - 2];
        const double gain = gi * si + gj * tj - 0.5 * (di * si * si + 2 * k * si * tj + dj * tj * tj);
        if (gain > best)
            best = gain, *s = si, *t = tj;
    }
}

/* Terms 1/2 d_i b_i^2 of coefficients that have no bound on one side, and 0 on the other: those of the squared hinge.
 * The problem is that of K + diag(d), with whose gradient y - Kb - db the loop works. */
struct NAME(ridge) {
    REAL *half, *inverse, *diagonal; /* d / 2; 1 / (2 d), or 0 for a row that takes no part; K_ii + d */
};

/* The gap with a ridge, lsvm_coef_gap of all rows: g + d b, the gradient without the ridge, says which have a loss. */
static REAL NAME(ridge_gap)(const struct NAME(rows) * r, const struct NAME(ridge) * ridge)
{
    const VREAL zero = {0};
    VREAL sum = {0};
    for (int64_t i = 0; i < r->n; i += SMO_LANES) {
        const VREAL g = *(VREAL *)(r->g + i), up = *(VREAL *)(r->up + i), down = -*(VREAL *)(r->dn + i);
        const VREAL half = *(VREAL *)(ridge->half + i), b = NAME(select)(up > down, down, -up);
        const VREAL loss = g + 2 * half * b, costs = NAME(select)(up > down, loss, -loss);
        sum += NAME(select)(costs > zero, g * g * *(VREAL *)(ridge->inverse + i), -b * (g + half * b));
    }
    return NAME(horizontal_sum)(sum);
}

/* Fill in a ridge, and take the gradient to that of K + diag(d). */
static void NAME(ridge_begin)(const struct lsvm_smo *p, struct lsvm_smo_state *s, const struct NAME(ridge) * ridge)
{
    for (int64_t i = 0; i < p->n; i++) {
        const double d = p->terms->plus[i];
        ridge->half[i] = (REAL)(0.5 * d);
        ridge->inverse[i] = (REAL)(d > 0 ? 0.5 / d : 0);
        ridge->diagonal[i] = (REAL)(s->curvature[i] + d);
        ((REAL *)s->g)[i] -= (REAL)(d * s->b[i]);
    }
}

/* Take the gradient back to that of K. */
static void NAME(ridge_end)(const struct lsvm_smo *p, struct lsvm_smo_state *s)
{
    for (int64_t i = 0; i < p->n; i++)
        ((REAL *)s->g)[i] += (REAL)(p->terms->plus[i] * s->b[i]);
}

static inline int NAME(loop_box)(const struct lsvm_smo *p, struct lsvm_smo_state *s, double tolerance, int unit,
                                 const struct NAME(ridge) * ridge)
{
    REAL *diagonal = ridge ? ridge->diagonal : s->diagonal;
    const struct NAME(rows) rows = {p->k, s->g, s->up, s->dn, diagonal, p->n, p->ld}, *r = &rows;
    const REAL *any = NAME(row)(p, 0);
    struct NAME(best) first = NAME(update_and_select)(r, any, 0, any, 0, unit);
    s->converged = 0;
    for (int64_t iteration = 0;; iteration++, s->iterations++) {
        if (iteration % 32 == 0 || first.index < 0 || s->iterations >= s->stop_at) {
            s->gap = ridge ? NAME(ridge_gap)(r, ridge) : NAME(gap)(r);
            s->converged = s->gap <= tolerance;
            if (s->converged || first.index < 0 || s->iterations >= s->stop_at)
                return LSVM_OK;
            if (iteration % 8192 == 0 && p->poll && p->poll(p->context, s->iterations))
                return LSVM_INTERRUPTED;
        }
        const int64_t i = first.index;
        const REAL *ki = NAME(row)(p, i), up = r->up[i], dn = r->dn[i];
        const REAL whole = r->g[i] / r->diagonal[i], t = (REAL)NAME(clip_step)(r, i, whole);
        r->up[i] = r->dn[i] = 0; /* i is nobody's partner: itself least of all */
        const int64_t j = NAME(partner)(r, ki, t, t == whole ? 1 / r->diagonal[i] : 0, unit).index;
        r->up[i] = up, r->dn[i] = dn;
        double si = t, sj = 0;
        if (j >= 0)
            NAME(solve_pair)(r, i, j, ki[j], &si, &sj);
        const REAL *kj = j >= 0 ? NAME(row)(p, j) : ki;
        si = NAME(move)(r, s, i, si);
        sj = j >= 0 ? NAME(move)(r, s, j, sj) : 0;
        if (ridge)
            r->g[i] -= (REAL)(p->terms->plus[i] * si);
        if (ridge && j >= 0)
            r->g[j] -= (REAL)(p->terms->plus[j] * sj);
        first = NAME(update_and_select)(r, ki, (REAL)si, kj, (REAL)sj, unit);
    }
}

/* With an offset, sum_i b_i is constant: b_i grows by what b_j loses. i is the steepest coordinate that may grow, j the
 * partner with the largest second-order gain among those that may shrink (Fan, Chen, Lin 2005, WSS 2). */
struct NAME(extremes) {
    REAL high, low; /* largest gradient of a row that may grow, smallest of one that may shrink */
    int64_t index;  /* of high, -1 if none */
};

#define SMO_FAR ((REAL)1e30)

static inline VREAL NAME(growing)(const struct NAME(rows) * r, int64_t i)
{
    const VREAL zero = {0};
    return NAME(select)(*(VREAL *)(r->up + i) > zero, *(VREAL *)(r->g + i), NAME(splat)(-SMO_FAR));
}

static inline int64_t NAME(find_growing)(const struct NAME(rows) * r, int64_t first, int64_t last, REAL value)
{
    for (int64_t i = first; i < last; i++)
        if (r->up[i] > 0 && r->g[i] >= value)
            return i;
    return -1;
}

static inline struct NAME(extremes)
    NAME(update_and_bound)(const struct NAME(rows) * r, const REAL *ki, const REAL *kj, REAL t)
{
    struct NAME(extremes) e = {-SMO_FAR, SMO_FAR, -1};
    const VREAL zero = {0};
    VREAL low = NAME(splat)(SMO_FAR);
    int64_t block = 0;
    for (int64_t first = 0; first < r->n; first += SMO_BLOCK) {
        const int64_t last = first + SMO_BLOCK < r->n ? first + SMO_BLOCK : r->n;
        VREAL most = NAME(splat)(-SMO_FAR);
        for (int64_t i = first; i < last; i += SMO_LANES) {
            VREAL *g = (VREAL *)(r->g + i);
            *g -= t * (*(const VREAL *)(ki + i) - *(const VREAL *)(kj + i));
            most = NAME(max)(most, NAME(growing)(r, i));
            low = NAME(min)(low, NAME(select)(*(VREAL *)(r->dn + i) < zero, *g, NAME(splat)(SMO_FAR)));
        }
        if (NAME(any)(most > NAME(splat)(e.high)))
            e.high = NAME(horizontal_max)(most), block = first;
    }
    e.low = -NAME(horizontal_max)(-low);
    e.index = NAME(find_growing)(r, block, block + SMO_BLOCK < r->n ? block + SMO_BLOCK : r->n, e.high);
    return e;
}

static inline VREAL NAME(pair_gain)(const struct NAME(rows) * r, int64_t j, const REAL *ki, REAL gi, REAL di, int unit)
{
    const VREAL zero = {0}, k = *(const VREAL *)(ki + j);
    const VREAL d = unit ? NAME(splat)(1) : *(VREAL *)(r->diagonal + j);
    const VREAL difference = NAME(max)(gi - *(VREAL *)(r->g + j), zero);
    const VREAL curvature = NAME(max)(di + d - 2 * k, (REAL)1e-6 * (di + d));
    return NAME(select)(*(VREAL *)(r->dn + j) < zero, difference * difference * NAME(reciprocal)(curvature), zero);
}

static inline struct NAME(best)
    NAME(offset_partner)(const struct NAME(rows) * r, const REAL *ki, REAL gi, REAL di, int unit)
{
    REAL best = 0;
    int64_t block = 0;
    for (int64_t first = 0; first < r->n; first += SMO_BLOCK) {
        const int64_t last = first + SMO_BLOCK < r->n ? first + SMO_BLOCK : r->n;
        VREAL most = {0};
        for (int64_t j = first; j < last; j += SMO_LANES)
            most = NAME(max)(most, NAME(pair_gain)(r, j, ki, gi, di, unit));
        if (NAME(any)(most > NAME(splat)(best)))
            best = NAME(horizontal_max)(most), block = first;
    }
    const int64_t end = block + SMO_BLOCK < r->n ? block + SMO_BLOCK : r->n;
    if (best <= 0)
        return (struct NAME(best)){0, -1};
    SMO_FIND(block, end, best, NAME(pair_gain)(r, i, ki, gi, di, unit));
}

static inline int NAME(loop_offset)(const struct lsvm_smo *p, struct lsvm_smo_state *s, double tolerance, int unit)
{
    const struct NAME(rows) rows = {p->k, s->g, s->up, s->dn, s->diagonal, p->n, p->ld}, *r = &rows;
    const REAL *any = NAME(row)(p, 0);
    struct NAME(extremes) e = NAME(update_and_bound)(r, any, any, 0);
    for (int64_t iteration = 0;; iteration++, s->iterations++) {
        s->gap = e.high - e.low;
        s->converged = s->gap <= tolerance;
        if (s->converged || e.index < 0 || s->iterations >= s->stop_at)
            return LSVM_OK;
        if (iteration % 8192 == 8191 && p->poll && p->poll(p->context, s->iterations))
            return LSVM_INTERRUPTED;
        const int64_t i = e.index;
        const REAL *ki = NAME(row)(p, i);
        const int64_t j = NAME(offset_partner)(r, ki, r->g[i], r->diagonal[i], unit).index;
        if (j < 0)
            return LSVM_OK;
        const double floor = 1e-12 * ((double)r->diagonal[i] + r->diagonal[j]);
        double curvature = (double)r->diagonal[i] + r->diagonal[j] - 2.0 * ki[j];
        curvature = curvature > floor ? curvature : floor;
        double t = ((double)r->g[i] - r->g[j]) / curvature;
        const double room_i = s->hi[i] - s->b[i], room_j = s->b[j] - s->lo[j];
        t = t > room_i ? room_i : t;
        t = t > room_j ? room_j : t;
        NAME(place)(r, s, i, s->b[i] + t);
        NAME(place)(r, s, j, s->b[j] - t);
        e = NAME(update_and_bound)(r, ki, NAME(row)(p, j), (REAL)t);
    }
}

static int NAME(smo)(const struct lsvm_smo *p, struct lsvm_smo_state *s, double tolerance)
{
    if (p->offset)
        return p->unit_diagonal ? NAME(loop_offset)(p, s, tolerance, 1) : NAME(loop_offset)(p, s, tolerance, 0);
    return p->unit_diagonal ? NAME(loop_box)(p, s, tolerance, 1, NULL) : NAME(loop_box)(p, s, tolerance, 0, NULL);
}

static int NAME(smo_ridge)(const struct lsvm_smo *p, struct lsvm_smo_state *s, double tolerance)
{
    REAL *extra = s->terms;
    const struct NAME(ridge) ridge = {extra, extra + p->n, extra + 2 * p->n};
    NAME(ridge_begin)(p, s, &ridge);
    const int code = NAME(loop_box)(p, s, tolerance, 0, &ridge);
    NAME(ridge_end)(p, s);
    return code;
}

#define SMO_ADDED 4 /* rows that are added while a sum is in a register */

/* out += sum_k c_k times a row, in the order of the rows, so that the sum is that of single ones. */
static inline __attribute__((always_inline)) void NAME(add_rows)(const REAL *const *rows, const double *c, int count,
                                                                 int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = out[i];
        for (int k = 0; k < count; k++)
            sum += c[k] * (double)rows[k][i];
        out[i] = sum;
    }
}

/* out = K c in float64, rows with c = 0 unread. */
static void NAME(multiply)(const struct lsvm_smo *p, const double *c, double *out)
{
    const REAL *rows[SMO_ADDED];
    double by[SMO_ADDED];
    int found = 0;
    for (int64_t i = 0; i < p->n; i++)
        out[i] = 0;
    for (int64_t j = 0; j < p->n; j++)
        if (c[j] != 0) {
            rows[found] = NAME(row)(p, j), by[found++] = c[j];
            if (found == SMO_ADDED)
                NAME(add_rows)(rows, by, SMO_ADDED, p->n, out), found = 0;
        }
    for (int k = 0; k < found; k++)
        NAME(add_rows)(rows + k, by + k, 1, p->n, out);
}
