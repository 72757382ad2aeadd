/* cholesky_hot.h - the Cholesky factor of ridge.h. Included by level.h.
 *
 * A few rows of the factor are found at a time, from all rows above them: their entries stay in registers meanwhile, so
 * that each is written once. Rows above are read once for each few rows: the matrix should fit into the second cache. */

enum { FACTOR_ROWS = LSVM_BYTES == 64 ? 12 : LSVM_BYTES == 32 ? 6 : 4, FACTOR_COLUMNS = 2 * LSVM_LANES };

/* Entries of FACTOR_ROWS rows from `row` on, in `count` vectors of columns: those of K less what the rows above give. */
static inline __attribute__((always_inline)) void factor_sums(const float *k, const float *u, int64_t ld, int64_t row,
                                                              int64_t column, int64_t n, int count,
                                                              vfloat sum[FACTOR_ROWS][2])
{
    vfloat s[FACTOR_ROWS][2];
#pragma GCC unroll 12
    for (int64_t r = 0; r < FACTOR_ROWS; r++)
        for (int v = 0; v < count; v++)
            s[r][v] = at(k + (row + r < n ? row + r : n - 1) * ld + column + v * LSVM_LANES);
    const float *above = u + column, *own = u + row;
    for (int64_t i = 0; i < row; i++, above += ld, own += ld) {
        vfloat a[2];
        for (int v = 0; v < count; v++)
            a[v] = at(above + v * LSVM_LANES);
#pragma GCC unroll 12
        for (int r = 0; r < FACTOR_ROWS; r++)
            for (int v = 0; v < count; v++)
                s[r][v] -= own[r] * a[v];
    }
#pragma GCC unroll 12
    for (int r = 0; r < FACTOR_ROWS; r++)
        for (int v = 0; v < count; v++)
            sum[r][v] = s[r][v];
}

/* Entries right of those on the diagonal. `inner` has the factor of these, row by row, and `inverse` what is 1 over its
 * diagonal. */
static inline __attribute__((always_inline)) void factor_tile(const float *k, float *u, int64_t ld, int64_t row,
                                                              int64_t column, int64_t n, int count,
                                                              const float inner[FACTOR_ROWS][FACTOR_ROWS],
                                                              const float inverse[FACTOR_ROWS])
{
    vfloat s[FACTOR_ROWS][2];
    factor_sums(k, u, ld, row, column, n, count, s);
#pragma GCC unroll 12
    for (int r = 0; r < FACTOR_ROWS; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < r; i++)
            for (int v = 0; v < count; v++)
                s[r][v] -= inner[i][r] * s[i][v];
        for (int v = 0; v < count; v++) {
            s[r][v] *= inverse[r];
            *(vfloat *)(u + (row + r) * ld + column + v * LSVM_LANES) = s[r][v];
        }
    }
}

static int cholesky(const float *k, float ridge, float *u, int64_t n, int64_t ld)
{
    for (int64_t row = 0; row < n; row += FACTOR_ROWS) {
        const int64_t rows = n - row < FACTOR_ROWS ? n - row : FACTOR_ROWS;
        const int64_t first = row - row % LSVM_LANES, diagonal = row - first; /* the first tile has the diagonal */
        vfloat tile[FACTOR_ROWS][2];
        float inner[FACTOR_ROWS][FACTOR_ROWS], inverse[FACTOR_ROWS];
        const int wide = first + LSVM_LANES < ld;
        if (wide)
            factor_sums(k, u, ld, row, first, n, 2, tile);
        else
            factor_sums(k, u, ld, row, first, n, 1, tile);
        for (int64_t r = 0; r < rows; r++) {
            float *own = (float *)tile[r];
            const float whole = k[(row + r) * (ld + 1)] + ridge, pivot = own[diagonal + r] + ridge;
            if (!(pivot > FLT_EPSILON * whole)) /* it may be nothing but rounding errors */
                return LSVM_SINGULAR;
            own[diagonal + r] = pivot;
            inverse[r] = 1.0f / __builtin_sqrtf(pivot);
            for (int v = 0; v <= wide; v++)
                tile[r][v] *= inverse[r];
            for (int64_t i = r; i < rows; i++)
                inner[r][i] = own[diagonal + i];
            for (int64_t i = r + 1; i < rows; i++)
                for (int v = 0; v <= wide; v++)
                    tile[i][v] -= inner[r][i] * tile[r][v];
            for (int v = 0; v <= wide; v++)
                *(vfloat *)(u + (row + r) * ld + first + v * LSVM_LANES) = tile[r][v];
        }
        int64_t column = first + FACTOR_COLUMNS;
        for (; column + FACTOR_COLUMNS <= ld && column < n; column += FACTOR_COLUMNS)
            factor_tile(k, u, ld, row, column, n, 2, inner, inverse);
        if (column < n)
            factor_tile(k, u, ld, row, column, n, 1, inner, inverse);
    }
    return LSVM_OK;
}
