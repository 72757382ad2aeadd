/* mixture_hot.h - densities and linear functions of a mixture's components; see mixture.h. Included by level.h.
 *
 * Two vectors of rows go along, so that eight sums are open at a time and none waits for the one before.
 */
enum { ROWS = 2 * WIDE };

/* |A x|^2 of each row, for a triangle in groups; x holds d pairs of vectors. */
static inline void triangle_squares(const double *a, const vdouble *x, int64_t d, vdouble out[2])
{
    out[0] = out[1] = (vdouble){0};
    for (int64_t r = 0; r < d; r += LSVM_MIXTURE_GROUP) {
        vdouble z[LSVM_MIXTURE_GROUP][2] = {{{0}}};
        const int64_t end = r + LSVM_MIXTURE_GROUP < d ? r + LSVM_MIXTURE_GROUP : d;
        for (int64_t c = 0; c < end; c++, a += LSVM_MIXTURE_GROUP)
            for (int q = 0; q < LSVM_MIXTURE_GROUP; q++) {
                z[q][0] += a[q] * x[2 * c];
                z[q][1] += a[q] * x[2 * c + 1];
            }
        for (int q = 0; q < LSVM_MIXTURE_GROUP; q++) {
            out[0] += z[q][0] * z[q][0];
            out[1] += z[q][1] * z[q][1];
        }
    }
}

static inline void diagonal_squares(const double *a, const vdouble *x, int64_t d, vdouble out[2])
{
    out[0] = out[1] = (vdouble){0};
    for (int64_t c = 0; c < d; c++) {
        const vdouble z0 = a[c] * x[2 * c], z1 = a[c] * x[2 * c + 1];
        out[0] += z0 * z0;
        out[1] += z1 * z1;
    }
}

static void mixture_values(const struct lsvm_mixture *m, const float *x, int64_t n, double *scratch, double *logs,
                           double *values)
{
    const int64_t d = m->d, K = m->components, stride = lsvm_mixture_stride(d, m->full);
    vdouble *const rows = (vdouble *)scratch, *const away = rows + 2 * d;
    for (int64_t first = 0; first < n; first += ROWS) {
        const int64_t count = n - first < ROWS ? n - first : ROWS;
        for (int64_t c = 0; c < d; c++)
            for (int64_t i = 0; i < ROWS; i++)
                rows[2 * c + i / WIDE][i % WIDE] = i < count ? (double)x[(first + i) * d + c] : 0.0;
        for (int64_t j = 0; j < K; j++) {
            const double *const mean = m->mean + j * d, *const w = m->weights + j * (d + 1);
            vdouble squares[2], f[2] = {w[d] + (vdouble){0}, w[d] + (vdouble){0}};
            for (int64_t c = 0; c < d; c++)
                for (int v = 0; v < 2; v++) {
                    away[2 * c + v] = rows[2 * c + v] - mean[c];
                    f[v] += w[c] * rows[2 * c + v];
                }
            (m->full ? triangle_squares : diagonal_squares)(m->factor + j * stride, away, d, squares);
            for (int64_t i = 0; i < count; i++) {
                logs[(first + i) * K + j] = m->offset[j] - 0.5 * squares[i / WIDE][i % WIDE];
                values[(first + i) * K + j] = f[i / WIDE][i % WIDE];
            }
        }
    }
}
