/* libsvm_text.h - the LIBSVM text format: one example a line,
 *
 *     label [qid:N] index:value index:value ... [# comment]
 *
 * with strictly ascending indices that start at 1 (at 0 when zero_based), blanks or tabs between tokens, lines ended by
 * LF or CR LF. Lines that hold nothing but blanks or a comment are no examples; a label alone is a row of zeros.
 *
 * A text is a byte buffer that begins at the start of a line. It needs no terminator and no final newline, is never
 * written to, and is not copied (but for a last line without newline). Every array belongs to the caller.
 * Places and sizes are in bytes. Nothing here keeps state, so different buffers may be read by different threads.
 */
#ifndef LSVM_LIBSVM_TEXT_H
#define LSVM_LIBSVM_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

struct lsvm_text_counts {
    int64_t lines;   /* lines begun, examples or not */
    int64_t rows;    /* examples */
    int64_t entries; /* index:value pairs */
    int64_t width;   /* columns that the largest index asks for, at most INT32_MAX */
};

/* Where a mistake is, counted in bytes: line and column from 1, offset from 0, all from the start of the buffer. */
struct lsvm_text_place {
    int64_t line, column, offset;
};

/* Where rows are read to. The readers set `row` and `entry` to the rows and sparse entries written, after an error
 * too. */
struct lsvm_text_sink {
    int zero_based;
    int64_t rows;     /* room for rows */
    int64_t width;    /* columns kept, at most INT32_MAX; entries beyond are checked and dropped */
    int64_t capacity; /* room for entries (sparse) */
    double *labels;   /* (rows) */
    float *values;    /* dense: (rows, width), every element is written; sparse: (capacity) */
    int32_t *indices; /* sparse: (capacity) columns, from 0 */
    int64_t *lengths; /* sparse: (rows) entries kept in each row */
    int64_t row, entry;
    const int32_t *picked; /* picks: (width) columns, ascending */
    double *wide;          /* picks: (rows, width) */
};

/* Counts what a correct text holds, at several GB/s. Finds no mistakes: on an incorrect text the counts are bounds. */
void lsvm_text_count(const char *text, size_t size, int zero_based, struct lsvm_text_counts *counts);

/* Reads all rows. Values are float32, -0 becomes 0; the sparse form drops entries that are 0.
 * LSVM_OK, LSVM_NO_MEMORY, or the mistake (LSVM_TEXT_*) that stands at *place. */
int lsvm_text_read_dense(const char *text, size_t size, struct lsvm_text_sink *sink, struct lsvm_text_place *place);
int lsvm_text_read_sparse(const char *text, size_t size, struct lsvm_text_sink *sink, struct lsvm_text_place *place);

/* Picks some columns of the first rows, at most sink->rows, in float64; labels are written, too. As the readers else. */
int lsvm_text_pick(const char *text, size_t size, struct lsvm_text_sink *sink, struct lsvm_text_place *place);

/* The most bytes that the writers need for a nonzero entry, and for a row besides its label and entries */
enum { LSVM_TEXT_ENTRY_BYTES = 32, LSVM_TEXT_ROW_BYTES = 1 };

/*
 * Write rows of finite floats to `out`, which has room for the bytes above, and return the number of bytes written.
 * labels: (rows, label_width) characters, padded with NUL. Zeros are skipped. digits: 0 for the shortest text that
 * reads back as the same float32, or 1 to 9 significant digits.
 */
struct lsvm_text_style {
    int zero_based, digits;
    int64_t label_width;
    const char *labels;
};

size_t lsvm_text_write_dense(const float *x, int64_t rows, int64_t width, const struct lsvm_text_style *style,
                             char *out);

/* values, indices: the whole matrix; indptr: (rows + 1) bounds of the rows to write */
size_t lsvm_text_write_sparse(const float *values, const int32_t *indices, const int64_t *indptr, int64_t rows,
                              const struct lsvm_text_style *style, char *out);

#endif
