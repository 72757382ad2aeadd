/* local_maps_hot.h - the loops of local_maps.h over one level's vectors; see level.h.
 *
 * Sums run over the features in order, in one lane a function. The square and the linear map are pieces of polynomials,
 * which a search among sorted anchors would find, feature by feature. But these loops take some seven instructions for
 * LSVM_LANES functions, and numpy's search takes as long as they do for 300. The Gaussian has no pieces.
 */

/* 2^x for x <= 0, relative error below 2e-7: the nearest integer n, a polynomial in x - n, n added to the exponent. 0
 * below 2^-126: a row that is far away has no part of a function. */
static inline vfloat power_of_two(vfloat x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer in the low bits */
    const vfloat least = (vfloat){0} - 126.0f;
    const vint seen = x > least;
    const vfloat shifted = max_f32(x, least) + magic;
    const vfloat r = max_f32(x, least) - (shifted - magic);
    vfloat p = r * 1.535336188319500e-4f + 1.339887440266574e-3f;
    p = p * r + 9.618437357674640e-3f;
    p = p * r + 5.550332471162809e-2f;
    p = p * r + 2.402264791363012e-1f;
    p = p * r + 6.931472028550421e-1f;
    p = p * r + 1.0f;
    return (vfloat)(((vint)p + ((vint)shifted << 23)) & seen);
}

/* h(|u|) u */
static inline __attribute__((always_inline)) vfloat faded(int kind, vfloat gamma, vfloat u)
{
    const vfloat zero = {0};
    switch (kind) {
    case LSVM_MAP_EXPONENTIAL:
        return power_of_two(-gamma * max_f32(u, -u)) * u;
    case LSVM_MAP_GAUSSIAN:
        return power_of_two(-gamma * (u * u)) * u;
    case LSVM_MAP_LINEAR:
        return max_f32(1.0f - gamma * max_f32(u, -u), zero) * u;
    case LSVM_MAP_SQUARE:
        return max_f32(1.0f - gamma * (u * u), zero) * u;
    default:
        return u;
    }
}

enum { LOCAL_ROWS = 4 };

static inline __attribute__((always_inline)) void local_tile(const struct lsvm_rows *a, int64_t i, int kind,
                                                             const struct lsvm_local_maps *maps, int64_t p, float *out,
                                                             int64_t ldo)
{
    const vfloat *c = (const vfloat *)(maps->anchors + p * maps->d * WIDTH);
    const vfloat *w = (const vfloat *)(maps->weights + p * maps->d * WIDTH);
    const vfloat *gamma = (const vfloat *)(maps->gamma + p * WIDTH);
    const float *rows[LOCAL_ROWS];
    vfloat sum[LOCAL_ROWS][2] = {{{0}}};
    for (int64_t r = 0; r < LOCAL_ROWS; r++)
        rows[r] = lsvm_rows_at(a, i + r < a->n ? i + r : a->n - 1);
    for (int64_t k = 0; k < maps->d; k++, c += 2, w += 2)
#pragma GCC unroll 4
        for (int r = 0; r < LOCAL_ROWS; r++)
            for (int v = 0; v < 2; v++)
                sum[r][v] += faded(kind, gamma[v], rows[r][k] - c[v]) * w[v];
    for (int64_t r = 0; r < LOCAL_ROWS && i + r < a->n; r++) {
        vfloat *to = (vfloat *)(out + (i + r) * ldo + p * WIDTH);
        to[0] = sum[r][0];
        to[1] = sum[r][1];
    }
}

static inline __attribute__((always_inline)) void
local_kind(const struct lsvm_rows *a, int kind, const struct lsvm_local_maps *maps, float *out, int64_t ldo)
{
    for (int64_t p = 0; p < maps->panels; p++)
        for (int64_t i = 0; i < a->n; i += LOCAL_ROWS)
            local_tile(a, i, kind, maps, p, out, ldo);
}

static void local_values(const struct lsvm_rows *a, const struct lsvm_local_maps *maps, float *out, int64_t ldo)
{
    switch (maps->kind) { /* out of the loops */
    case LSVM_MAP_EXPONENTIAL:
        local_kind(a, LSVM_MAP_EXPONENTIAL, maps, out, ldo);
        break;
    case LSVM_MAP_GAUSSIAN:
        local_kind(a, LSVM_MAP_GAUSSIAN, maps, out, ldo);
        break;
    case LSVM_MAP_LINEAR:
        local_kind(a, LSVM_MAP_LINEAR, maps, out, ldo);
        break;
    case LSVM_MAP_SQUARE:
        local_kind(a, LSVM_MAP_SQUARE, maps, out, ldo);
        break;
    default:
        local_kind(a, LSVM_MAP_PLAIN, maps, out, ldo);
    }
}
