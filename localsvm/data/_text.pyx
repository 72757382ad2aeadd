# cython: language_level=3
"""Parsing and writing LIBSVM text in byte buffers, over csrc/libsvm_text.h. Arguments are checked here, and the GIL is
released while C works.
"""
from libc.stdint cimport int32_t, int64_t

from localsvm._core cimport LSVM_OK, raise_for


cdef extern from "libsvm_text.h" nogil:
    enum:
        LSVM_TEXT_CHANGED, LSVM_TEXT_LABEL_NOT_NUMBER, LSVM_TEXT_LABEL_MISSING
        LSVM_TEXT_LABEL_LIST, LSVM_TEXT_LABEL_NOT_FINITE, LSVM_TEXT_LABEL_TOO_LARGE, LSVM_TEXT_LABEL_INEXACT
        LSVM_TEXT_QUERY_NOT_NUMBER
        LSVM_TEXT_INDEX_NOT_NUMBER, LSVM_TEXT_INDEX_ZERO, LSVM_TEXT_INDEX_NEGATIVE, LSVM_TEXT_INDEX_TOO_LARGE
        LSVM_TEXT_INDEX_REPEATED, LSVM_TEXT_INDEX_DESCENDING, LSVM_TEXT_COLON_MISSING, LSVM_TEXT_VALUE_MISSING
        LSVM_TEXT_VALUE_NOT_NUMBER, LSVM_TEXT_VALUE_NOT_FINITE, LSVM_TEXT_VALUE_TOO_LARGE, LSVM_TEXT_LONE_RETURN
        LSVM_TEXT_ENTRY_BYTES, LSVM_TEXT_ROW_BYTES
    cdef struct lsvm_text_counts:
        int64_t lines, rows, entries, width
    cdef struct lsvm_text_place:
        int64_t line, column, offset
    cdef struct lsvm_text_sink:
        int zero_based
        int64_t rows, width, capacity
        double *labels
        float *values
        int32_t *indices
        int64_t *lengths
        int64_t row, entry
        const int32_t *picked
        double *wide
    cdef struct lsvm_text_style:
        int zero_based, digits
        int64_t label_width
        const char *labels
    void lsvm_text_count(const char *text, size_t size, int zero_based, lsvm_text_counts *counts)
    int lsvm_text_read_dense(const char *text, size_t size, lsvm_text_sink *sink, lsvm_text_place *place)
    int lsvm_text_read_sparse(const char *text, size_t size, lsvm_text_sink *sink, lsvm_text_place *place)
    int lsvm_text_pick(const char *text, size_t size, lsvm_text_sink *sink, lsvm_text_place *place)
    size_t lsvm_text_write_dense(const float *x, int64_t rows, int64_t width, const lsvm_text_style *style, char *out)
    size_t lsvm_text_write_sparse(const float *values, const int32_t *indices, const int64_t *indptr, int64_t rows,
                                  const lsvm_text_style *style, char *out)

FAULTS = {
    LSVM_TEXT_CHANGED: "changed",
    LSVM_TEXT_LABEL_NOT_NUMBER: "label_not_number",
    LSVM_TEXT_LABEL_MISSING: "label_missing",
    LSVM_TEXT_LABEL_LIST: "label_list",
    LSVM_TEXT_LABEL_NOT_FINITE: "label_not_finite",
    LSVM_TEXT_LABEL_TOO_LARGE: "label_too_large",
    LSVM_TEXT_LABEL_INEXACT: "label_inexact",
    LSVM_TEXT_QUERY_NOT_NUMBER: "query_not_number",
    LSVM_TEXT_INDEX_NOT_NUMBER: "index_not_number",
    LSVM_TEXT_INDEX_ZERO: "index_zero",
    LSVM_TEXT_INDEX_NEGATIVE: "index_negative",
    LSVM_TEXT_INDEX_TOO_LARGE: "index_too_large",
    LSVM_TEXT_INDEX_REPEATED: "index_repeated",
    LSVM_TEXT_INDEX_DESCENDING: "index_descending",
    LSVM_TEXT_COLON_MISSING: "colon_missing",
    LSVM_TEXT_VALUE_MISSING: "value_missing",
    LSVM_TEXT_VALUE_NOT_NUMBER: "value_not_number",
    LSVM_TEXT_VALUE_NOT_FINITE: "value_not_finite",
    LSVM_TEXT_VALUE_TOO_LARGE: "value_too_large",
    LSVM_TEXT_LONE_RETURN: "lone_return",
}
ENTRY_BYTES = LSVM_TEXT_ENTRY_BYTES
ROW_BYTES = LSVM_TEXT_ROW_BYTES


class TextFault(Exception):
    """A mistake in a text: its name (a value of FAULTS), line and column from 1, and offset in bytes from 0."""

    def __init__(self, name, line, column, offset):
        super().__init__(name, line, column, offset)
        self.name, self.line, self.column, self.offset = name, line, column, offset


cdef int check(int code, const lsvm_text_sink *sink, const lsvm_text_place *place) except -1:
    if code == LSVM_OK and sink.row < sink.rows:
        code = LSVM_TEXT_CHANGED
    if code in FAULTS:
        raise TextFault(FAULTS[code], place.line, place.column, place.offset)
    return raise_for(code)


def count(const unsigned char[::1] text, bint zero_based):
    """(lines, rows, entries, width) of a text; if it holds a mistake, upper bounds for what is read before it."""
    cdef lsvm_text_counts counts
    cdef size_t size = text.shape[0]
    cdef const char *p = <const char *>&text[0] if size else NULL
    with nogil:
        lsvm_text_count(p, size, zero_based, &counts)
    return counts.lines, counts.rows, counts.entries, counts.width


def read_dense(const unsigned char[::1] text, float[:, ::1] values, double[::1] labels, bint zero_based):
    """Parse all rows into values (rows, width) and labels (rows,). Indices beyond the width are dropped."""
    cdef lsvm_text_sink sink
    cdef lsvm_text_place place
    cdef size_t size = text.shape[0]
    cdef int code
    if values.shape[0] != labels.shape[0]:
        raise ValueError("values and labels differ in rows")
    if size == 0 or labels.shape[0] == 0:
        raise ValueError("nothing to read")
    sink.zero_based, sink.rows, sink.width, sink.capacity = zero_based, labels.shape[0], values.shape[1], 0
    sink.labels, sink.lengths, sink.indices = &labels[0], NULL, NULL
    sink.values = &values[0, 0] if sink.width else NULL
    with nogil:
        code = lsvm_text_read_dense(<const char *>&text[0], size, &sink, &place)
    check(code, &sink, &place)


def read_sparse(
    const unsigned char[::1] text, float[::1] values, int32_t[::1] indices, int64_t[::1] lengths, double[::1] labels,
    int64_t width, bint zero_based,
):
    """Parse all rows into values and indices (capacity,), labels and lengths (rows,), the entries of each row.

    Returns the number of entries kept; zeros and indices beyond `width` are dropped.
    """
    cdef lsvm_text_sink sink
    cdef lsvm_text_place place
    cdef size_t size = text.shape[0]
    cdef int code
    if values.shape[0] != indices.shape[0] or lengths.shape[0] != labels.shape[0]:
        raise ValueError("arrays of different lengths")
    if size == 0 or labels.shape[0] == 0 or not 0 <= width <= 2147483647:
        raise ValueError("nothing to read")
    sink.zero_based, sink.rows, sink.width, sink.capacity = zero_based, labels.shape[0], width, values.shape[0]
    sink.labels, sink.lengths = &labels[0], &lengths[0]
    sink.values = &values[0] if sink.capacity else NULL
    sink.indices = &indices[0] if sink.capacity else NULL
    with nogil:
        code = lsvm_text_read_sparse(<const char *>&text[0], size, &sink, &place)
    check(code, &sink, &place)
    return sink.entry


def pick(
    const unsigned char[::1] text, const int32_t[::1] columns, double[:, ::1] values, double[::1] labels,
    bint zero_based,
):
    """Parse some columns, ascending, of the first rows into values (rows, columns), in float64; labels (rows,).

    The text has at least as many rows.
    """
    cdef lsvm_text_sink sink
    cdef lsvm_text_place place
    cdef size_t size = text.shape[0]
    cdef int64_t i
    cdef int code
    if values.shape[0] != labels.shape[0] or values.shape[1] != columns.shape[0]:
        raise ValueError("arrays of different lengths")
    if size == 0 or labels.shape[0] == 0 or columns.shape[0] == 0:
        raise ValueError("nothing to read")
    for i in range(1, columns.shape[0]):
        if columns[i - 1] >= columns[i]:
            raise ValueError("columns must ascend")
    sink.zero_based, sink.rows, sink.width, sink.capacity = zero_based, labels.shape[0], columns.shape[0], 0
    sink.labels, sink.lengths, sink.indices, sink.values = &labels[0], NULL, NULL, NULL
    sink.picked, sink.wide = &columns[0], &values[0, 0]
    with nogil:
        code = lsvm_text_pick(<const char *>&text[0], size, &sink, &place)
    check(code, &sink, &place)


cdef lsvm_text_style style_of(const unsigned char[:, ::1] labels, int64_t rows, bint zero_based, int digits) except *:
    if labels.shape[0] != rows or rows == 0 or labels.shape[1] == 0:
        raise ValueError("one label a row, and at least one row")
    if not 0 <= digits <= 9:
        raise ValueError("digits must be 0 to 9")
    return lsvm_text_style(
        zero_based=zero_based, digits=digits, label_width=labels.shape[1], labels=<const char *>&labels[0, 0]
    )


def write_dense(
    const float[:, ::1] values, const unsigned char[:, ::1] labels, unsigned char[::1] out, bint zero_based, int digits
):
    """Write rows of finite values as text into `out`; returns the number of bytes.

    labels : (rows, width) uint8, texts padded with NUL. digits : significant digits, 0 for as few as read back exactly.
    """
    cdef int64_t rows = values.shape[0], width = values.shape[1]
    cdef lsvm_text_style style = style_of(labels, rows, zero_based, digits)
    cdef const float *x = &values[0, 0] if width else NULL
    cdef size_t size
    if out.shape[0] < rows * (ROW_BYTES + labels.shape[1] + width * ENTRY_BYTES):
        raise ValueError("out is too small")
    with nogil:
        size = lsvm_text_write_dense(x, rows, width, &style, <char *>&out[0])
    return size


def write_sparse(
    const float[::1] values, const int32_t[::1] indices, const int64_t[::1] indptr, const unsigned char[:, ::1] labels,
    unsigned char[::1] out, bint zero_based, int digits,
):
    """As `write_dense`, for CSR rows: row i has the entries indptr[i] .. indptr[i + 1] - 1 of values and indices."""
    cdef int64_t rows = indptr.shape[0] - 1, entries = indptr[rows] - indptr[0]
    cdef lsvm_text_style style = style_of(labels, rows, zero_based, digits)
    cdef const float *x = &values[0] if entries else NULL
    cdef const int32_t *columns = &indices[0] if entries else NULL
    cdef size_t size
    cdef int64_t row
    cdef bint ordered = indptr[0] >= 0 and indptr[rows] <= values.shape[0]
    for row in range(rows):
        ordered = ordered and indptr[row] <= indptr[row + 1]
    if not ordered or values.shape[0] != indices.shape[0]:
        raise ValueError("indptr does not fit values and indices")
    if out.shape[0] < rows * (ROW_BYTES + labels.shape[1]) + entries * ENTRY_BYTES:
        raise ValueError("out is too small")
    with nogil:
        size = lsvm_text_write_sparse(x, columns, &indptr[0], rows, &style, <char *>&out[0])
    return size
