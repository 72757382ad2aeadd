/* libsvm_quick.h - the quick way through the entries of a row: short numbers after single blanks, as programs write
 * them. Whatever it does not take, and the mistakes among it, are left where they stand to the plain way of
 * libsvm_text.c, which says the same of every text; so do the first and the last bytes of a text, around which quick
 * loads would leave it.
 */
#ifndef LSVM_LIBSVM_QUICK_H
#define LSVM_LIBSVM_QUICK_H

#include <string.h>

#include "decimal_quick.h"
#include "libsvm_text.h"
#include "libsvm_tokens.h"

/*
 * LSVM_GUESSES: the columns whose text, "1:" to "999:", is kept to be compared with what comes after an entry: where
 * that is the next column, its value is read without waiting for where its index ends. LSVM_STREAK: consecutive columns
 * after which the next one is guessed, as a wrong guess costs more than a right one gains. LSVM_SAMPLE: bytes of a text
 * that show how long its entries are.
 */
enum { LSVM_GUESSES = 999, LSVM_STREAK = 8, LSVM_SAMPLE = 4096 };

struct lsvm_guess {
    uint32_t text, mask;
    int64_t length;
};

struct lsvm_quick {
    const char *begin, *end;                  /* entries may be read quickly that begin here */
    int64_t guesses;                          /* columns that have a guess */
    int64_t streak;                           /* consecutive columns seen last */
    struct lsvm_guess next[LSVM_GUESSES + 1]; /* the one after the last fits no text */
};

/* The plain way foresees entries as short as 123:1, in fewer instructions. At 13/2 bytes an entry the two are even. */
static int has_long_entries(const char *p, const char *end)
{
    const char *stop = end - p > LSVM_SAMPLE ? p + LSVM_SAMPLE : end;
    ptrdiff_t colons = 0, size = stop - p;
    for (; p < stop; p++)
        colons += *p == ':';
    return 2 * size > 13 * colons;
}

/* The first bytes of "17:", and a mask of those that count */
static struct lsvm_guess guess_of(int64_t index)
{
    char text[24] = {0}, mask[24] = {0};
    struct lsvm_guess g;
    g.length = lsvm_digits_write((uint64_t)index, 1, text) - text + 1;
    text[g.length - 1] = ':';
    memset(mask, 255, (size_t)g.length);
    memcpy(&g.text, text, sizeof g.text);
    memcpy(&g.mask, mask, sizeof g.mask);
    return g;
}

static void quick_prepare(struct lsvm_quick *q, const char *text, const char *end, const struct lsvm_text_sink *sink)
{
    const ptrdiff_t after = LSVM_QUICK_AFTER + (ptrdiff_t)sizeof(uint32_t);
    q->begin = q->end = end;
    q->streak = q->guesses = 0;
    if (!LSVM_QUICK || end - text <= LSVM_QUICK_BEFORE + after || !has_long_entries(text, end))
        return;
    q->begin = text + LSVM_QUICK_BEFORE;
    q->end = end - after;
    q->guesses = sink->width < LSVM_GUESSES ? sink->width : LSVM_GUESSES;
    for (int64_t column = 0; column < q->guesses; column++)
        q->next[column] = guess_of(column + !sink->zero_based);
    q->next[q->guesses] = (struct lsvm_guess){1, 0, 0};
}

LSVM_INLINE int keep_sparse(struct lsvm_text_sink *sink, int64_t column, float value)
{
    if (column >= sink->width || value == 0)
        return LSVM_OK;
    if (sink->entry == sink->capacity)
        return LSVM_TEXT_CHANGED;
    sink->indices[sink->entry] = (int32_t)column;
    sink->values[sink->entry++] = value;
    return LSVM_OK;
}

/* Keeps an entry that ends at `end` (NULL: none was read) if a token ends there. Where to go on, NULL if not kept. */
LSVM_INLINE const char *quick_keep(const char *end, struct lsvm_text_sink *sink, int sparse, float *x, int64_t column,
                                   double value)
{
    if (!end || (*end != ' ' && !ends_token(end)))
        return NULL;
    if (!sparse)
        x[column] = (float)value + 0.0f; /* no -0 */
    else if (keep_sparse(sink, column, (float)value + 0.0f))
        return NULL;
    return end + (*end == ' ');
}

/* Entries of consecutive columns, the first of them *last + 1 */
LSVM_INLINE const char *guessed_entries(const char *p, const struct lsvm_quick *q, struct lsvm_text_sink *sink,
                                        int sparse, float *x, int64_t *last)
{
    const struct lsvm_guess *g = q->next + *last + 1;
    double value = 0;
    for (; p < q->end; g++) {
        const char *next;
        uint32_t text;
        memcpy(&text, p, sizeof text);
        if ((text & g->mask) != g->text)
            break;
        next = lsvm_decimal_quick(p + g->length, &value);
        next = quick_keep(next, sink, sparse, x, g - q->next, value);
        if (!next)
            break;
        p = next;
    }
    *last = g - q->next - 1;
    return p;
}

/* Entries of any columns within the width, up to a streak */
LSVM_INLINE const char *found_entries(const char *p, struct lsvm_quick *q, struct lsvm_text_sink *sink, int sparse,
                                      float *x, int64_t *last)
{
    const int64_t width = sink->width, from = !sink->zero_based;
    int64_t column = 0, before = *last, streak = q->streak;
    double value = 0;
    while (p < q->end) {
        const char *next = lsvm_entry_quick(p, &column, &value);
        column -= from;
        if (!next || column <= before || column >= width)
            break;
        next = quick_keep(next, sink, sparse, x, column, value);
        if (!next)
            break;
        p = next;
        streak = (streak + 1) & -(int64_t)(column == before + 1); /* or 0, without a branch */
        before = column;
        if (streak >= LSVM_STREAK && column + 1 < q->guesses)
            break;
    }
    *last = before;
    q->streak = streak;
    return p;
}

/* As many entries as go; *last becomes the column of the last one, x is the dense row. Returns where it stopped. */
LSVM_INLINE const char *quick_entries(const char *p, struct lsvm_quick *q, struct lsvm_text_sink *sink, int sparse,
                                      float *x, int64_t *last)
{
    int64_t before;
    if (p < q->begin)
        return p;
    do {
        before = *last;
        if (q->streak >= LSVM_STREAK && before + 1 < q->guesses)
            p = guessed_entries(p, q, sink, sparse, x, last);
        if (*p != '\n')
            p = found_entries(p, q, sink, sparse, x, last);
    } while (*last > before && *p != '\n');
    return p;
}

#endif
