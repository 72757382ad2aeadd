#define _GNU_SOURCE /* strtod_l */
#include "libsvm_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "decimal.h"
#include "libsvm_quick.h"
#include "libsvm_tokens.h"

#define EXACT_INTEGERS 9007199254740992.0 /* 2^53: below this, every whole number is a double */
#define COLD static __attribute__((noinline, cold))

/* Times in a row that the quick way may take nothing before the rest of the line goes the plain way */
enum { TRIES = 2 };

/*
 * The reader runs over texts that end with a newline, so that no loop has to compare with the end: every scan stops at
 * a newline. lsvm_text_read_*() sees to that.
 */
COLD int spells(const char *p, const char *word)
{
    for (; *word; p++, word++)
        if ((*p | 0x20) != *word)
            return 0;
    return ends_token(p);
}

/* nan, inf or infinity, signed or not, any case */
COLD int names_no_number(const char *p)
{
    p += *p == '-' || *p == '+';
    return spells(p, "nan") || spells(p, "inf") || spells(p, "infinity");
}

/* `end`: where the number at p ends, NULL when there is none */
COLD int label_mistake(const char *p, const char *end)
{
    if (end && *end == ':')
        return LSVM_TEXT_LABEL_MISSING;
    if (end && *end == ',')
        return LSVM_TEXT_LABEL_LIST;
    if (*(end ? end : p) == '\r')
        return LSVM_TEXT_LONE_RETURN;
    return names_no_number(p) ? LSVM_TEXT_LABEL_NOT_FINITE : LSVM_TEXT_LABEL_NOT_NUMBER;
}

COLD int value_mistake(const char *p, const char *end)
{
    if (ends_token(p))
        return LSVM_TEXT_VALUE_MISSING;
    if (*(end ? end : p) == '\r')
        return LSVM_TEXT_LONE_RETURN;
    return names_no_number(p) ? LSVM_TEXT_VALUE_NOT_FINITE : LSVM_TEXT_VALUE_NOT_NUMBER;
}

/* `end`: where the digits at p end */
COLD int index_mistake(const char *p, const char *end)
{
    if (*end == '\r')
        return LSVM_TEXT_LONE_RETURN;
    if (end != p && ends_token(end))
        return LSVM_TEXT_COLON_MISSING;
    if (*p == '-' && lsvm_digit(p[1]) <= 9)
        return LSVM_TEXT_INDEX_NEGATIVE;
    return LSVM_TEXT_INDEX_NOT_NUMBER;
}

/* The index at p, whose digits go beyond any int64: too large, unless they are leading zeros. */
COLD int64_t long_index(const char *p)
{
    int64_t index = 0;
    for (; lsvm_digit(*p) <= 9 && index <= INT32_MAX; p++)
        index = 10 * index + lsvm_digit(*p);
    return index;
}

/* Whether a large label, written from p to end, is what was written. Whole numbers are names of classes, and two of them
 * must not become one; those with a point or an exponent are rounded, as all such numbers are. */
COLD int exact_label(const char *p, const char *end, double label)
{
    char whole[DBL_MAX_10_EXP + 2];
    int length = snprintf(whole, sizeof whole, "%.0f", fabs(label));
    p += *p == '-' || *p == '+';
    while (*p == '0')
        p++;
    for (const char *q = p; q < end; q++)
        if (lsvm_digit(*q) > 9)
            return 1;
    return end - p == length && !memcmp(p, whole, (size_t)length);
}

LSVM_INLINE int read_label(const char **cursor, double *label)
{
    struct lsvm_decimal number;
    const char *end = lsvm_decimal_scan(*cursor, &number);
    if (!end || !ends_token(end))
        return label_mistake(*cursor, end);
    if (!lsvm_decimal_to_double(&number, label) && lsvm_decimal_slow(*cursor, end, label))
        return LSVM_NO_MEMORY;
    if (!isfinite(*label))
        return LSVM_TEXT_LABEL_TOO_LARGE;
    if (fabs(*label) >= EXACT_INTEGERS && !exact_label(*cursor, end, *label))
        return LSVM_TEXT_LABEL_INEXACT;
    *label += 0.0; /* no -0 */
    *cursor = skip_blanks(end);
    return LSVM_OK;
}

LSVM_INLINE int skip_query(const char **cursor)
{
    const char *p = *cursor;
    if (*p != 'q' || p[1] != 'i' || p[2] != 'd' || p[3] != ':')
        return LSVM_OK;
    p += 4;
    p += *p == '-' || *p == '+';
    while (lsvm_digit(*p) <= 9)
        p++;
    if (lsvm_digit(p[-1]) > 9 || !ends_token(p))
        return LSVM_TEXT_QUERY_NOT_NUMBER;
    *cursor = p;
    return LSVM_OK;
}

/* `last`: the column before on this line. Stops after the colon. */
LSVM_INLINE int read_index(const char **cursor, int zero_based, int64_t last, int64_t *column)
{
    const char *p = *cursor;
    uint64_t digits = 0;
    int64_t index;
    for (; lsvm_digit(*p) <= 9; p++)
        digits = 10 * digits + lsvm_digit(*p);
    if (*p != ':' || p == *cursor)
        return index_mistake(*cursor, p);
    index = p - *cursor <= 18 ? (int64_t)digits : long_index(*cursor);
    *column = index - !zero_based;
    if (*column < 0)
        return LSVM_TEXT_INDEX_ZERO;
    if (*column >= INT32_MAX) /* the width has to fit int32 too */
        return LSVM_TEXT_INDEX_TOO_LARGE;
    if (*column <= last)
        return *column == last ? LSVM_TEXT_INDEX_REPEATED : LSVM_TEXT_INDEX_DESCENDING;
    *cursor = p + 1;
    return LSVM_OK;
}

COLD int slow_value(const char *p, const char *end, float *value)
{
    double exact;
    if (lsvm_decimal_slow(p, end, &exact))
        return LSVM_NO_MEMORY;
    *value = (float)exact;
    return LSVM_OK;
}

LSVM_INLINE int read_value(const char **cursor, float *value)
{
    struct lsvm_decimal number;
    const char *end = lsvm_decimal_scan(*cursor, &number);
    if (!end || !ends_token(end))
        return value_mistake(*cursor, end);
    if (!lsvm_decimal_to_float(&number, value) && slow_value(*cursor, end, value))
        return LSVM_NO_MEMORY;
    if (!isfinite(*value))
        return LSVM_TEXT_VALUE_TOO_LARGE;
    *value += 0.0f; /* no -0: rows that are equal are equal byte for byte */
    *cursor = end;
    return LSVM_OK;
}

LSVM_INLINE int keep(struct lsvm_text_sink *sink, int sparse, float *x, int64_t column, float value)
{
    if (sparse)
        return keep_sparse(sink, column, value);
    if (column < sink->width)
        x[column] = value;
    return LSVM_OK;
}

/* One example; *cursor stands on the label's first byte and stops at the end of the line or on the mistake. */
LSVM_INLINE int read_row(const char **cursor, struct lsvm_text_sink *sink, int sparse, struct lsvm_quick *q)
{
    const int64_t width = sink->width, begin = sink->entry;
    float *x = sparse ? NULL : sink->values + sink->row * width;
    int64_t last = -1, column = 0;
    float value = 0;
    int code, tries = TRIES;
    if (sink->row == sink->rows)
        return LSVM_TEXT_CHANGED;
    if ((code = read_label(cursor, &sink->labels[sink->row])) || (code = skip_query(cursor)))
        return code;
    if (!sparse && width)
        memset(x, 0, (size_t)width * sizeof *x);
    for (;;) {
        *cursor = skip_blanks(*cursor);
        if (tries) {
            const int64_t before = last;
            *cursor = skip_blanks(quick_entries(*cursor, q, sink, sparse, x, &last));
            tries = before < last ? TRIES : tries - 1;
        }
        if (at_line_end(*cursor))
            break;
        if ((code = read_index(cursor, sink->zero_based, last, &column)) || (code = read_value(cursor, &value)) ||
            (code = keep(sink, sparse, x, column, value)))
            return code;
        last = column;
    }
    if (sparse)
        sink->lengths[sink->row] = sink->entry - begin;
    sink->row++;
    return LSVM_OK;
}

LSVM_INLINE int read_double(const char **cursor, double *value)
{
    struct lsvm_decimal number;
    const char *end = lsvm_decimal_scan(*cursor, &number);
    if (!end || !ends_token(end))
        return value_mistake(*cursor, end);
    if (!lsvm_decimal_to_double(&number, value) && lsvm_decimal_slow(*cursor, end, value))
        return LSVM_NO_MEMORY;
    *cursor = end;
    return LSVM_OK;
}

/* The picked columns of one example, which begins at *cursor; `next` goes along the columns, as both ascend. */
static int pick_row(const char **cursor, struct lsvm_text_sink *sink)
{
    double *x = sink->wide + sink->row * sink->width, value = 0;
    int64_t last = -1, column = 0, next = 0;
    int code = read_label(cursor, &sink->labels[sink->row]);
    if (code || (code = skip_query(cursor)))
        return code;
    for (int64_t i = 0; i < sink->width; i++)
        x[i] = 0;
    for (*cursor = skip_blanks(*cursor); !at_line_end(*cursor); *cursor = skip_blanks(*cursor), last = column) {
        if ((code = read_index(cursor, sink->zero_based, last, &column)) || (code = read_double(cursor, &value)))
            return code;
        while (next < sink->width && sink->picked[next] < column)
            next++;
        if (next < sink->width && sink->picked[next] == column)
            x[next] = value;
    }
    sink->row++;
    return LSVM_OK;
}

/* All lines of [text, end), the last byte of which is a newline; *place goes on from where it is. */
LSVM_INLINE int read_lines(const char *text, const char *end, struct lsvm_text_sink *sink, int sparse,
                           struct lsvm_text_place *place)
{
    const char *line = text, *p = text;
    int code = LSVM_OK;
    struct lsvm_quick q;
    quick_prepare(&q, text, end, sink);
    for (; line < end; line = ++p, place->line++) {
        p = skip_blanks(line);
        if (!at_line_end(p) && (code = read_row(&p, sink, sparse, &q)))
            goto out;
        if (*p != '\n')
            p = memchr(p, '\n', (size_t)(end - p));
    }
out:
    place->column = p - line + 1;
    place->offset += p - text;
    return code;
}

typedef int lines_reader(const char *text, const char *end, struct lsvm_text_sink *sink, struct lsvm_text_place *place);

static int dense_lines(const char *text, const char *end, struct lsvm_text_sink *sink, struct lsvm_text_place *place)
{
    return read_lines(text, end, sink, 0, place);
}

static int sparse_lines(const char *text, const char *end, struct lsvm_text_sink *sink, struct lsvm_text_place *place)
{
    return read_lines(text, end, sink, 1, place);
}

static int picked_lines(const char *text, const char *end, struct lsvm_text_sink *sink, struct lsvm_text_place *place)
{
    const char *line = text, *p = text;
    int code = LSVM_OK;
    for (; line < end && sink->row < sink->rows; line = ++p, place->line++) {
        p = skip_blanks(line);
        if (!at_line_end(p) && (code = pick_row(&p, sink)))
            break;
        if (*p != '\n')
            p = memchr(p, '\n', (size_t)(end - p));
    }
    place->column = p - line + 1;
    place->offset += p - text;
    return code;
}

/* The lines that end with a newline in place, and a last one that does not as a copy that does. */
static int read_text(const char *text, size_t size, lines_reader *lines, struct lsvm_text_sink *sink,
                     struct lsvm_text_place *place)
{
    size_t tail = size;
    char *copy = NULL;
    int code;
    sink->row = sink->entry = 0;
    place->line = 1;
    place->offset = 0;
    while (tail > 0 && text[tail - 1] != '\n')
        tail--;
    code = lines(text, text + tail, sink, place);
    if (code || tail == size)
        goto out;
    copy = malloc(size - tail + 1);
    if (!copy) {
        code = LSVM_NO_MEMORY;
        goto out;
    }
    memcpy(copy, text + tail, size - tail);
    copy[size - tail] = '\n';
    code = lines(copy, copy + (size - tail) + 1, sink, place);
out:
    free(copy);
    return code;
}

int lsvm_text_read_dense(const char *text, size_t size, struct lsvm_text_sink *sink, struct lsvm_text_place *place)
{
    return read_text(text, size, dense_lines, sink, place);
}

int lsvm_text_read_sparse(const char *text, size_t size, struct lsvm_text_sink *sink, struct lsvm_text_place *place)
{
    return read_text(text, size, sparse_lines, sink, place);
}

int lsvm_text_pick(const char *text, size_t size, struct lsvm_text_sink *sink, struct lsvm_text_place *place)
{
    return read_text(text, size, picked_lines, sink, place);
}

static char *write_label(const struct lsvm_text_style *style, int64_t row, char *out)
{
    const char *label = style->labels + row * style->label_width;
    size_t length = strnlen(label, (size_t)style->label_width);
    memcpy(out, label, length);
    return out + length;
}

static inline char *write_entry(int64_t column, float value, const struct lsvm_text_style *style, char *out)
{
    *out++ = ' ';
    out = lsvm_digits_write((uint64_t)column + !style->zero_based, 1, out);
    *out++ = ':';
    return lsvm_decimal_write(value, style->digits, out);
}

size_t lsvm_text_write_dense(const float *x, int64_t rows, int64_t width, const struct lsvm_text_style *style,
                             char *out)
{
    char *p = out;
    for (int64_t row = 0; row < rows; row++, x += width) {
        p = write_label(style, row, p);
        for (int64_t column = 0; column < width; column++)
            if (x[column] != 0)
                p = write_entry(column, x[column], style, p);
        *p++ = '\n';
    }
    return (size_t)(p - out);
}

size_t lsvm_text_write_sparse(const float *values, const int32_t *indices, const int64_t *indptr, int64_t rows,
                              const struct lsvm_text_style *style, char *out)
{
    char *p = out;
    for (int64_t row = 0; row < rows; row++) {
        p = write_label(style, row, p);
        for (int64_t entry = indptr[row]; entry < indptr[row + 1]; entry++)
            if (values[entry] != 0)
                p = write_entry(indices[entry], values[entry], style, p);
        *p++ = '\n';
    }
    return (size_t)(p - out);
}
