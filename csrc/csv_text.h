/* csv_text.h - delimited text: one row a line, fields between delimiters, quoted as RFC 4180 has it.
 *
 * A field that begins with a quote ends at the next single one; "" in it is a quote, and line ends in it are part of it.
 * A quote elsewhere is a character like others. Blanks around a field that is not quoted are no part of it, unless the
 * delimiter is a blank or a tab. Lines end with LF or CR LF; an empty line is no row.
 *
 * A text is a byte buffer that begins at the start of a row. Before it LSVM_CSV_BEFORE bytes and behind it
 * LSVM_CSV_AFTER bytes belong to the caller's buffer, too, and are read, with any content but for a newline just behind
 * the text. Nothing is written to it. Different buffers may be parsed by different threads.
 */
#ifndef LSVM_CSV_TEXT_H
#define LSVM_CSV_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

enum { LSVM_CSV_BEFORE = 16, LSVM_CSV_AFTER = 64 };

/* What becomes of a column */
enum { LSVM_CSV_SKIP = 0, LSVM_CSV_NUMBER = 1, LSVM_CSV_LEVEL = 2 };

/* The different texts of a column, numbered in the order in which they come. Its memory is its own: begin with zeros,
 * end with lsvm_csv_forget. */
struct lsvm_csv_levels {
    char *bytes;     /* all texts, one after the other */
    int64_t *ends;   /* (count) where each ends */
    int64_t *places; /* (slots) a number + 1, or 0: a hash table; slots is 0 or a power of 2 */
    int64_t count, room, slots;
    size_t used, size; /* bytes that are used, and that there are */
};

void lsvm_csv_forget(struct lsvm_csv_levels *levels);

/* Text between two others of the caller's, for the words that mean "missing" */
struct lsvm_csv_word {
    const char *text;
    size_t size;
};

struct lsvm_csv_sink {
    char delimiter;
    int64_t columns;      /* of each row */
    const uint8_t *kinds; /* (columns) LSVM_CSV_* */
    int64_t words;
    const struct lsvm_csv_word *missing; /* (words) besides the empty field, which is always missing */
    int64_t rows;                        /* room for rows */
    int64_t numbers, texts;              /* columns of these kinds */
    double *values;                      /* (numbers, rows), nan where missing */
    int32_t *codes;                      /* (texts, rows), -1 where missing */
    struct lsvm_csv_levels *levels;      /* (texts) */
    int64_t row;                         /* rows written, after an error, too */
};

/* Where a mistake is: line, column of the table and offset, from 0; `fields` of the row for a wrong number of these */
struct lsvm_csv_place {
    int64_t line, column, offset, fields;
};

/* Upper bound for the rows of a text: the line ends, and one more. */
int64_t lsvm_csv_bound(const char *text, size_t size);

/*
 * The end of the last whole row of a text that begins at the start of a row, 0 where there is none. Rows end outside
 * of quotes alone.
 */
size_t lsvm_csv_cut(const char *text, size_t size, char delimiter);

/*
 * Reads all rows. LSVM_OK, LSVM_NO_MEMORY, or a mistake at *place: LSVM_TEXT_CHANGED for more rows than there is room
 * for, LSVM_CSV_RAGGED, LSVM_CSV_OPEN_QUOTE, LSVM_CSV_AFTER_QUOTE, LSVM_CSV_NOT_NUMBER, LSVM_CSV_NUL.
 */
int lsvm_csv_read(const char *text, size_t size, struct lsvm_csv_sink *sink, struct lsvm_csv_place *place);

#endif
