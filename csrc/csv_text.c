/* csv_text.c - see csv_text.h */
#define _GNU_SOURCE
#include "csv_text.h"

#include "decimal_quick.h"

#define INLINE static inline __attribute__((always_inline))

enum { SLACK = 8 }; /* bytes behind the texts of levels, which may be read */

/* A field: its text without quotes and blanks, and where it ended. `doubled`: there are "" in it. */
struct field {
    const char *begin, *end, *next;
    int doubled;
};

static const char *find(const char *p, const char *end, char c)
{
    const char *at = p < end ? memchr(p, c, (size_t)(end - p)) : NULL;
    return at ? at : end;
}

INLINE int is_blank(char c) { return c == ' ' || c == '\t'; }

/* Length of the line end at p: 0 where there is none */
INLINE int line_end(const char *p, const char *end)
{
    if (p < end && *p == '\n')
        return 1;
    return p + 1 < end && *p == '\r' && p[1] == '\n' ? 2 : 0;
}

/* End of the quoted field at p, behind its last quote; NULL where that does not come. */
static const char *quoted_end(const char *p, const char *end, int *doubled)
{
    for (p = find(p + 1, end, '"'); p < end; p = find(p + 2, end, '"')) {
        if (p + 1 == end || p[1] != '"')
            return p + 1;
        *doubled = 1;
    }
    return NULL;
}

int64_t lsvm_csv_bound(const char *text, size_t size)
{
    const char *p = text, *end = text + size;
    int64_t rows = 1;
    while ((p = find(p, end, '\n')) < end) {
        rows++;
        p++;
    }
    return rows;
}

size_t lsvm_csv_cut(const char *text, size_t size, char delimiter)
{
    const char *p = text, *end = text + size, *last = text, *quote;
    int doubled;
    if (!memchr(text, '"', size)) {
        p = memrchr(text, '\n', size);
        return p ? (size_t)(p + 1 - text) : 0;
    }
    while (p < end) { /* a row */
        const char *newline = find(p, end, '\n');
        quote = find(p, newline, '"');
        if (quote == newline) { /* the usual line: no quote */
            p = newline;
        } else {
            for (;;) { /* a field */
                while (p < end && is_blank(*p) && *p != delimiter)
                    p++;
                if (p < end && *p == '"') {
                    p = quoted_end(p, end, &doubled);
                    if (!p)
                        return (size_t)(last - text);
                }
                while (p < end && *p != delimiter && *p != '\n')
                    p++;
                if (p == end || *p == '\n')
                    break;
                p++;
            }
        }
        if (p < end)
            last = ++p;
    }
    return (size_t)(last - text);
}

void lsvm_csv_forget(struct lsvm_csv_levels *levels)
{
    free(levels->bytes);
    free(levels->ends);
    free(levels->places);
    memset(levels, 0, sizeof *levels);
}

/* The first `size` bytes at p, at most 8, others 0. Eight bytes can be read: of a text, those behind it; of levels, SLACK. */
INLINE uint64_t word_at(const char *p, size_t size)
{
    uint64_t word;
    memcpy(&word, p, 8);
    return size >= 8 ? word : word & ((UINT64_C(1) << 8 * size) - 1);
}

INLINE uint64_t hash_of(const char *p, size_t size)
{
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15) ^ size;
    for (; size >= 8; size -= 8, p += 8) {
        h = (h ^ word_at(p, 8)) * UINT64_C(0xff51afd7ed558ccd);
        h ^= h >> 32;
    }
    h = (h ^ word_at(p, size)) * UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 29;
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ h >> 32;
}

INLINE int is_same(const char *p, const char *q, size_t size)
{
    for (; size > 8; size -= 8, p += 8, q += 8)
        if (word_at(p, 8) != word_at(q, 8))
            return 0;
    return word_at(p, size) == word_at(q, size);
}

INLINE const char *level_text(const struct lsvm_csv_levels *levels, int64_t number, size_t *size)
{
    int64_t begin = number ? levels->ends[number - 1] : 0;
    *size = (size_t)(levels->ends[number] - begin);
    return levels->bytes + begin;
}

/* Twice the slots; LSVM_OK or LSVM_NO_MEMORY */
static int grow_table(struct lsvm_csv_levels *levels)
{
    int64_t slots = levels->slots ? 2 * levels->slots : 64, i, at;
    int64_t *places = calloc((size_t)slots, sizeof *places);
    if (!places)
        return LSVM_NO_MEMORY;
    for (i = 0; i < levels->count; i++) {
        size_t size;
        const char *text = level_text(levels, i, &size);
        at = (int64_t)(hash_of(text, size) & (uint64_t)(slots - 1));
        while (places[at])
            at = (at + 1) & (slots - 1);
        places[at] = i + 1;
    }
    free(levels->places);
    levels->places = places;
    levels->slots = slots;
    return LSVM_OK;
}

/* Room for one more level of `size` bytes; LSVM_OK or LSVM_NO_MEMORY */
static int make_room(struct lsvm_csv_levels *levels, size_t size)
{
    if (2 * (levels->count + 1) > levels->slots && grow_table(levels) != LSVM_OK)
        return LSVM_NO_MEMORY;
    if (levels->count == levels->room) {
        int64_t room = levels->room ? 2 * levels->room : 32;
        int64_t *ends = realloc(levels->ends, (size_t)room * sizeof *ends);
        if (!ends)
            return LSVM_NO_MEMORY;
        levels->ends = ends;
        levels->room = room;
    }
    if (levels->size < levels->used + size + SLACK) {
        size_t bytes = 2 * levels->size + size + 256;
        char *larger = realloc(levels->bytes, bytes);
        if (!larger)
            return LSVM_NO_MEMORY;
        levels->bytes = larger;
        levels->size = bytes;
    }
    return LSVM_OK;
}

/* The text without its doubled quotes, behind the texts of the levels, for which there is room; its size */
static size_t undoubled(char *out, const char *p, const char *end)
{
    char *q = out;
    for (; p < end; p++) {
        *q++ = *p;
        p += *p == '"';
    }
    return (size_t)(q - out);
}

/* The number of a level in *code; LSVM_OK, LSVM_NO_MEMORY, also for 2^31 - 1 levels, or LSVM_CSV_NUL */
static int find_level(struct lsvm_csv_levels *levels, const struct field *field, int32_t *code)
{
    const char *text = field->begin, *other;
    size_t size = (size_t)(field->end - field->begin), length;
    int64_t at;
    if (levels->slots == 0 || field->doubled) {
        if (make_room(levels, size) != LSVM_OK)
            return LSVM_NO_MEMORY;
        if (field->doubled) {
            size = undoubled(levels->bytes + levels->used, text, field->end);
            text = levels->bytes + levels->used;
        }
    }
    at = (int64_t)(hash_of(text, size) & (uint64_t)(levels->slots - 1));
    for (; levels->places[at]; at = (at + 1) & (levels->slots - 1)) {
        other = level_text(levels, levels->places[at] - 1, &length);
        if (length == size && is_same(other, text, size)) {
            *code = (int32_t)(levels->places[at] - 1);
            return LSVM_OK;
        }
    }
    if (levels->count == INT32_MAX)
        return LSVM_NO_MEMORY;
    if (memchr(text, '\0', size))
        return LSVM_CSV_NUL;
    if (!field->doubled) {
        int64_t slots = levels->slots;
        if (make_room(levels, size) != LSVM_OK)
            return LSVM_NO_MEMORY;
        memcpy(levels->bytes + levels->used, text, size);
        if (slots != levels->slots) {
            at = (int64_t)(hash_of(text, size) & (uint64_t)(levels->slots - 1));
            while (levels->places[at])
                at = (at + 1) & (levels->slots - 1);
        }
    }
    levels->used += size;
    levels->ends[levels->count] = (int64_t)levels->used;
    *code = (int32_t)levels->count;
    levels->places[at] = ++levels->count;
    return LSVM_OK;
}

/* The first delimiter or line feed from p on, or `end`: eight bytes at once, of which some may lie behind the end. */
INLINE const char *field_end(const char *p, const char *end, char delimiter)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = UINT64_C(0x8080808080808080);
    const uint64_t breaks = ones * (uint8_t)'\n', delimiters = ones * (uint8_t)delimiter;
    for (; p < end; p += 8) {
        uint64_t word = word_at(p, 8), a = word ^ breaks, b = word ^ delimiters;
        uint64_t hits = (((a - ones) & ~a) | ((b - ones) & ~b)) & high;
        if (hits) {
            p += __builtin_ctzll(hits) / 8;
            return p < end ? p : end;
        }
    }
    return end;
}

/* Cuts out the field at p, of a row that goes to `end` at most. LSVM_OK, LSVM_CSV_OPEN_QUOTE or LSVM_CSV_AFTER_QUOTE. */
INLINE int cut_field(const char *p, const char *end, char delimiter, struct field *out)
{
    const char *q = p;
    out->doubled = 0;
    while (p < end && is_blank(*p) && *p != delimiter)
        p++;
    if (p < end && *p == '"') {
        out->begin = p + 1;
        q = quoted_end(p, end, &out->doubled);
        if (!q)
            return LSVM_CSV_OPEN_QUOTE;
        out->end = q - 1;
        while (out->begin < out->end && is_blank(*out->begin))
            out->begin++;
        while (out->begin < out->end && is_blank(out->end[-1]))
            out->end--;
        while (q < end && is_blank(*q) && *q != delimiter)
            q++;
        out->next = q;
        return q == end || *q == delimiter || line_end(q, end) ? LSVM_OK : LSVM_CSV_AFTER_QUOTE;
    }
    q = field_end(p, end, delimiter);
    out->next = q;
    if (q > p && q < end && *q == '\n' && q[-1] == '\r')
        out->next = --q;
    while (q > p && is_blank(q[-1]))
        q--;
    out->begin = p;
    out->end = q;
    return LSVM_OK;
}

/* sizes : of the words that mean "missing", a bit each; the last one for all from 63 on */
INLINE int is_missing(const struct lsvm_csv_sink *sink, const struct field *field, uint64_t sizes)
{
    size_t size = (size_t)(field->end - field->begin);
    int64_t i;
    if (size == 0)
        return 1;
    if (!(sizes >> (size < 63 ? size : 63) & 1))
        return 0;
    for (i = 0; i < sink->words; i++)
        if (sink->missing[i].size == size && memcmp(sink->missing[i].text, field->begin, size) == 0)
            return 1;
    return 0;
}

/* The number in [begin, end) and nothing else: 1, 0 for no number, or -1 without memory. The text goes on behind it. */
static int number_of(const char *begin, const char *end, double *out)
{
    struct lsvm_decimal parts;
    const char *p = lsvm_decimal_scan(begin, &parts);
    if (p != end)
        return 0;
    if (lsvm_decimal_to_double(&parts, out))
        return 1;
    return lsvm_decimal_slow(begin, end, out) == LSVM_OK ? 1 : -1;
}

int lsvm_csv_read(const char *text, size_t size, struct lsvm_csv_sink *sink, struct lsvm_csv_place *place)
{
    const char *p = text, *const end = text + size, *row, *quick;
    const char delimiter = sink->delimiter;
    double *value;
    int32_t *level;
    struct field field = {text, text, text, 0};
    int64_t column = 0, numbers, texts;
    int code = LSVM_OK, step, plain = 1;
    int64_t i;
    uint64_t sizes = 0;
    for (i = 0; i < sink->words; i++) /* a number that stands for no value */
        plain &= !sink->missing[i].size || !memchr("+-.0123456789", sink->missing[i].text[0], 13);
    for (i = 0; i < sink->words; i++)
        sizes |= UINT64_C(1) << (sink->missing[i].size < 63 ? sink->missing[i].size : 63);
    sink->row = 0;
    while (p < end) {
        row = p;
        while (p < end && is_blank(*p) && *p != delimiter)
            p++;
        if (p == end)
            break;
        if ((step = line_end(p, end))) {
            p += step;
            continue;
        }
        p = row;
        if (sink->row == sink->rows) {
            code = LSVM_TEXT_CHANGED;
            goto out;
        }
        numbers = texts = 0;
        for (column = 0;; column++) {
            int kind = column < sink->columns ? sink->kinds[column] : LSVM_CSV_SKIP;
            field.begin = p;
            value = kind == LSVM_CSV_NUMBER ? sink->values + numbers++ * sink->rows + sink->row : NULL;
            if (value && plain && (quick = lsvm_decimal_quick(p, value)) && quick < end &&
                (*quick == delimiter || *quick == '\n')) {
                p = quick;
            } else {
                if ((code = cut_field(p, end, delimiter, &field)) != LSVM_OK)
                    goto out;
                p = field.next;
                if (value) {
                    int is = 1;
                    if (is_missing(sink, &field, sizes))
                        *value = NAN;
                    else
                        is = number_of(field.begin, field.end, value);
                    if (is < 1 || isinf(*value)) {
                        code = is < 0 ? LSVM_NO_MEMORY : LSVM_CSV_NOT_NUMBER;
                        goto out;
                    }
                } else if (kind == LSVM_CSV_LEVEL) {
                    level = sink->codes + texts * sink->rows + sink->row;
                    *level = -1;
                    if (!is_missing(sink, &field, sizes))
                        code = find_level(&sink->levels[texts], &field, level);
                    if (code != LSVM_OK)
                        goto out;
                    texts++;
                }
            }
            if (p < end && *p == delimiter) {
                p++;
                continue;
            }
            break;
        }
        p += line_end(p, end);
        if (column + 1 != sink->columns) {
            field.begin = row;
            code = LSVM_CSV_RAGGED;
            goto out;
        }
        sink->row++;
    }
out:
    if (code != LSVM_OK) {
        place->offset = field.begin - text;
        place->column = column;
        place->fields = column + 1;
        place->line = lsvm_csv_bound(text, (size_t)place->offset) - 1;
    }
    return code;
}
