# cython: language_level=3
"""Parsing delimited text in byte buffers, over csrc/csv_text.h. Arguments are checked here, and the GIL is released
while C works.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free

import numpy as np

from localsvm._core cimport LSVM_OK, raise_for


cdef extern from "csv_text.h" nogil:
    enum:
        LSVM_CSV_BEFORE, LSVM_CSV_AFTER, LSVM_CSV_SKIP, LSVM_CSV_NUMBER, LSVM_CSV_LEVEL
        LSVM_TEXT_CHANGED, LSVM_CSV_RAGGED, LSVM_CSV_OPEN_QUOTE, LSVM_CSV_AFTER_QUOTE, LSVM_CSV_NOT_NUMBER, LSVM_CSV_NUL
    cdef struct lsvm_csv_levels:
        char *bytes
        int64_t *ends
        int64_t count
        size_t used
    cdef struct lsvm_csv_word:
        const char *text
        size_t size
    cdef struct lsvm_csv_sink:
        char delimiter
        int64_t columns
        const uint8_t *kinds
        int64_t words
        const lsvm_csv_word *missing
        int64_t rows, numbers, texts
        double *values
        int32_t *codes
        lsvm_csv_levels *levels
        int64_t row
    cdef struct lsvm_csv_place:
        int64_t line, column, offset, fields
    void lsvm_csv_forget(lsvm_csv_levels *levels)
    int64_t lsvm_csv_bound(const char *text, size_t size)
    size_t lsvm_csv_cut(const char *text, size_t size, char delimiter)
    int lsvm_csv_read(const char *text, size_t size, lsvm_csv_sink *sink, lsvm_csv_place *place)

BEFORE, AFTER = LSVM_CSV_BEFORE, LSVM_CSV_AFTER
SKIP, NUMBER, LEVEL = LSVM_CSV_SKIP, LSVM_CSV_NUMBER, LSVM_CSV_LEVEL
FAULTS = {
    LSVM_TEXT_CHANGED: "changed",
    LSVM_CSV_RAGGED: "ragged",
    LSVM_CSV_OPEN_QUOTE: "open_quote",
    LSVM_CSV_AFTER_QUOTE: "after_quote",
    LSVM_CSV_NOT_NUMBER: "not_number",
    LSVM_CSV_NUL: "nul",
}


class CSVFault(Exception):
    """A mistake in a text: its name (a value of FAULTS), line and column of the table and offset in bytes from 0.

    `fields`: how many fields the row has, for "ragged".
    """

    def __init__(self, name, line, column, offset, fields):
        super().__init__(name, line, column, offset, fields)
        self.name, self.line, self.column, self.offset, self.fields = name, line, column, offset, fields


def cut(const unsigned char[::1] text, size_t begin, size_t end, unsigned char delimiter):
    """End of the last whole row in bytes begin .. end - 1 of a buffer, where a row begins; `begin` if there is none."""
    if not begin < end <= <size_t>text.shape[0]:
        raise ValueError("no such bytes")
    cdef size_t size
    with nogil:
        size = lsvm_csv_cut(<const char *>&text[begin], end - begin, <char>delimiter)
    return begin + size


def read(
    unsigned char[::1] text, size_t begin, size_t end, unsigned char delimiter, const uint8_t[::1] kinds,
    tuple missing,
):
    """Parse the rows in bytes begin .. end - 1 of a buffer.

    Returns values (numbers, rows) float64, codes (texts, rows) int32, a list of the levels of each text column, as bytes,
    in the order of their codes, and how many line ends there are. nan and -1 are missing values: empty fields, and the
    words `missing`.

    A byte behind the text becomes a newline. BEFORE bytes in front of it and AFTER behind it are in the buffer.
    """
    cdef lsvm_csv_sink sink
    cdef lsvm_csv_place place
    cdef lsvm_csv_word *words = NULL
    cdef int64_t rows, i, j, first, columns = kinds.shape[0]
    cdef double[:, ::1] values
    cdef int32_t[:, ::1] codes
    cdef int code
    if not LSVM_CSV_BEFORE <= begin < end or end + LSVM_CSV_AFTER > <size_t>text.shape[0] or columns == 0:
        raise ValueError("no such bytes, or nothing around them")
    text[end] = 10
    of_kind = np.bincount(np.asarray(kinds), minlength=3)
    with nogil:
        rows = lsvm_csv_bound(<const char *>&text[begin], end - begin)
    numbers, texts = np.empty((of_kind[NUMBER], rows)), np.empty((of_kind[LEVEL], rows), np.int32)
    values, codes = numbers, texts
    sink.delimiter, sink.columns, sink.kinds = <char>delimiter, columns, &kinds[0]
    sink.rows, sink.numbers, sink.texts = rows, values.shape[0], codes.shape[0]
    sink.values = &values[0, 0] if sink.numbers else NULL
    sink.codes = &codes[0, 0] if sink.texts else NULL
    sink.words = len(missing)
    words = <lsvm_csv_word *>calloc(<size_t>sink.words + 1, sizeof(lsvm_csv_word))
    sink.levels = <lsvm_csv_levels *>calloc(<size_t>sink.texts + 1, sizeof(lsvm_csv_levels))
    try:
        if not words or not sink.levels:
            raise MemoryError
        for i in range(sink.words):
            words[i].text, words[i].size = <const char *><bytes>missing[i], <size_t>len(missing[i])
        sink.missing = words
        with nogil:
            code = lsvm_csv_read(<const char *>&text[begin], end - begin, &sink, &place)
        if code in FAULTS:
            raise CSVFault(FAULTS[code], place.line, place.column, place.offset, place.fields)
        raise_for(code)
        levels = []
        for i in range(sink.texts):
            of_column = []
            first = 0
            for j in range(sink.levels[i].count):
                of_column.append(sink.levels[i].bytes[first : sink.levels[i].ends[j]])
                first = sink.levels[i].ends[j]
            levels.append(of_column)
    finally:
        if sink.levels:
            for i in range(sink.texts):
                lsvm_csv_forget(&sink.levels[i])
        free(sink.levels)
        free(words)
    return numbers[:, : sink.row], texts[:, : sink.row], levels, rows - 1
