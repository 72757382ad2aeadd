/* rows.h - n rows of d features, float32, dense or sparse: the one form in which csrc is handed a matrix.
 *
 * Dense: row i is values[i * ld] to values[i * ld + d - 1]; indices and indptr are NULL. Sparse (CSR): the entries of
 * row i are those from indptr[i] to indptr[i + 1] - 1 of `values` and of `indices`, the columns from 0; ld is not read.
 * Where indices have to ascend within a row, the header of the function says so.
 *
 * The caller owns all arrays, keeps them while they are in use, and has checked indices and indptr: csrc reads what
 * they name. Nothing here can fail.
 */
#ifndef LSVM_ROWS_H
#define LSVM_ROWS_H

#include <stddef.h>
#include <stdint.h>

struct lsvm_rows {
    int64_t n, d;
    const float *values;
    int64_t ld; /* floats from one dense row to the next, at least d */
    const int32_t *indices;
    const int64_t *indptr; /* n + 1; NULL: the rows are dense */
};

static inline int lsvm_rows_dense(const struct lsvm_rows *rows) { return rows->indptr == NULL; }

static inline const float *lsvm_rows_at(const struct lsvm_rows *rows, int64_t i) { return rows->values + i * rows->ld; }

/* Whether there is no row i. */
static inline int lsvm_rows_outside(const struct lsvm_rows *rows, int64_t i) { return i < 0 || i >= rows->n; }

#endif
