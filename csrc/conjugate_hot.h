/* conjugate_hot.h - the parts of a pass of conjugate gradients; see conjugate.h. Included by level.h, behind
 * kernels_hot.h. Rows of G are taken four at a time, as elements of the systems are read and written for each. */
enum { GROUP_LANDMARKS = 4 };

static void conjugate_look(struct lsvm_conjugate *p)
{
    for (int64_t v = 0; v < p->m; v++) {
        const float *y = p->y + v * p->n, *ridge = p->ridge + v * p->n, *mask = p->mask + v * p->n;
        const float *a = p->a + v * p->n, *f = p->f + v * p->n;
        float *rho = p->rho + v * p->n;
        p->excess[v] = p->loss[v] = 0.0;
        for (int64_t from = 0; from < p->n; from += TILE_COLUMNS) {
            vfloat excess = {0}, loss = {0};
            for (int64_t j = from; j < tile_end(from, p->n); j += LSVM_LANES) {
                const vfloat own = at(ridge + j), coef = at(a + j), shrunk = own * coef;
                const vfloat left = at(y + j) - at(mask + j) * at(f + j) - shrunk;
                *(vfloat *)(rho + j) = left;
                excess += left * left / own;
                loss += shrunk * coef;
            }
            p->excess[v] += (double)total_f32(excess);
            p->loss[v] += (double)total_f32(loss);
        }
    }
}

/* Adds to `share` (count systems of so many landmarks) the products of rho with rows i .. i + 3 of G, in a tile. */
static inline __attribute__((always_inline)) void onto_landmarks(const struct lsvm_conjugate *p, int64_t i,
                                                                 int64_t from, int64_t v, int count)
{
    vfloat sum[2][GROUP_LANDMARKS] = {{{0}}};
    const float *g = p->factor + i * p->n, *rho = p->rho + v * p->n;
    for (int64_t j = from; j < tile_end(from, p->n); j += LSVM_LANES)
        for (int s = 0; s < count; s++) {
            const vfloat own = at(rho + s * p->n + j);
            for (int k = 0; k < GROUP_LANDMARKS; k++)
                sum[s][k] += at(g + k * p->n + j) * own;
        }
    for (int s = 0; s < count; s++)
        for (int k = 0; k < GROUP_LANDMARKS; k++)
            p->share[(v + s) * p->landmarks + i + k] += total_f32(sum[s][k]);
}

/* Takes from z what rows i .. i + 3 of G give by their shares, in a tile. */
static inline __attribute__((always_inline)) void from_landmarks(const struct lsvm_conjugate *p, int64_t i,
                                                                 int64_t from, int64_t v, int count)
{
    const float *g = p->factor + i * p->n;
    vfloat share[2][GROUP_LANDMARKS];
    const vfloat nothing = {0};
    for (int s = 0; s < count; s++)
        for (int k = 0; k < GROUP_LANDMARKS; k++)
            share[s][k] = nothing + p->share[(v + s) * p->landmarks + i + k];
    for (int64_t j = from; j < tile_end(from, p->n); j += LSVM_LANES) {
        const vfloat a = at(g + j), b = at(g + p->n + j);
        const vfloat c = at(g + 2 * p->n + j), d = at(g + 3 * p->n + j);
        for (int s = 0; s < count; s++) {
            const vfloat *w = share[s];
            vfloat *z = (vfloat *)(p->z + (v + s) * p->n + j);
            *z = *z - a * w[0] - b * w[1] - c * w[2] - d * w[3];
        }
    }
}

/* Calls a part for each tile, each four rows of G, and the systems by twos: G is read from memory once. */
static inline __attribute__((always_inline)) void in_tiles(const struct lsvm_conjugate *p,
                                                           void (*part)(const struct lsvm_conjugate *p, int64_t i,
                                                                        int64_t from, int64_t v, int count))
{
    for (int64_t from = 0; from < p->n; from += TILE_COLUMNS)
        for (int64_t i = 0; i < p->landmarks; i += GROUP_LANDMARKS) {
            int64_t v = 0;
            for (; v + 2 <= p->m; v += 2)
                part(p, i, from, v, 2);
            if (v < p->m)
                part(p, i, from, v, 1);
        }
}

/* Solves L L' w = w, w (landmarks). */
static void solve_triangles(const float *triangle, const float *inverse, int64_t landmarks, float *w)
{
    for (int64_t i = 0; i < landmarks; i++) {
        vfloat sum = {0};
        for (int64_t j = 0; j < i; j += LSVM_LANES) /* 0 from column i on */
            sum += at(triangle + i * landmarks + j) * at(w + j);
        w[i] = (w[i] - total_f32(sum)) * inverse[i];
    }
    const vfloat nothing = {0};
    for (int64_t i = landmarks - 1; i >= 0; i--) {
        w[i] *= inverse[i];
        const vfloat own = nothing + w[i];
        for (int64_t j = 0; j < i; j += LSVM_LANES)
            *(vfloat *)(w + j) -= at(triangle + i * landmarks + j) * own;
    }
}

/* z = the preconditioner times rho. */
static void precondition(struct lsvm_conjugate *p)
{
    memset(p->share, 0, (size_t)(p->m * p->landmarks) * sizeof(float));
    memset(p->z, 0, (size_t)(p->m * p->n) * sizeof(float));
    in_tiles(p, onto_landmarks);
    for (int64_t v = 0; v < p->m; v++)
        solve_triangles(p->triangles + v * p->landmarks * p->landmarks, p->inverses + v * p->landmarks, p->landmarks,
                        p->share + v * p->landmarks);
    in_tiles(p, from_landmarks);
    for (int64_t j = 0; j < p->m * p->n; j += LSVM_LANES) {
        vfloat *z = (vfloat *)(p->z + j);
        *z = at(p->rho + j) + at(p->mask + j) * *z;
    }
}

/* The sum of the products of two rows (n). */
static double total_product(const float *a, const float *b, int64_t n)
{
    double total = 0.0;
    for (int64_t from = 0; from < n; from += TILE_COLUMNS) {
        vfloat sum = {0};
        for (int64_t j = from; j < tile_end(from, n); j += LSVM_LANES)
            sum += at(a + j) * at(b + j);
        total += (double)total_f32(sum);
    }
    return total;
}

static void conjugate_turn(struct lsvm_conjugate *p, int anew)
{
    precondition(p);
    const vfloat nothing = {0};
    for (int64_t v = 0; v < p->m; v++) {
        const double before = p->size[v];
        const float *z = p->z + v * p->n;
        float *direction = p->direction + v * p->n;
        p->size[v] = total_product(p->rho + v * p->n, z, p->n);
        const vfloat share = nothing + (anew || !(before > 0.0) ? 0.0f : (float)(p->size[v] / before));
        for (int64_t j = 0; j < p->n; j += LSVM_LANES)
            *(vfloat *)(direction + j) = at(z + j) + share * at(direction + j);
    }
}

static void conjugate_step(struct lsvm_conjugate *p, const float *image)
{
    const vfloat nothing = {0};
    for (int64_t v = 0; v < p->m; v++) {
        const float *direction = p->direction + v * p->n, *ridge = p->ridge + v * p->n, *own = image + v * p->n;
        float *a = p->a + v * p->n, *f = p->f + v * p->n, *scratch = p->z + v * p->n;
        for (int64_t j = 0; j < p->n; j += LSVM_LANES)
            *(vfloat *)(scratch + j) = at(own + j) + at(ridge + j) * at(direction + j);
        p->curvature[v] = total_product(direction, scratch, p->n);
        const vfloat length = nothing + (p->curvature[v] > 0.0 ? (float)(p->size[v] / p->curvature[v]) : 0.0f);
        for (int64_t j = 0; j < p->n; j += LSVM_LANES) {
            *(vfloat *)(a + j) += length * at(direction + j);
            *(vfloat *)(f + j) += length * at(own + j);
        }
    }
    conjugate_look(p);
}
