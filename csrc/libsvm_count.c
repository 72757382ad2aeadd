/* What a LIBSVM text holds, found without reading its numbers: lsvm_text_count() of libsvm_text.h. */
#include <string.h>

#include "libsvm_text.h"
#include "libsvm_tokens.h"

/* Columns that the index before the last colon of [p, end) asks for */
static int64_t last_width(const char *p, const char *end, int zero_based)
{
    int64_t index = 0;
    while (end > p && end[-1] != ':')
        end--;
    if (end == p)
        return 0;
    for (end--; end > p && end[-1] >= '0' && end[-1] <= '9'; end--)
        ;
    for (; *end != ':' && index <= INT32_MAX; end++)
        index = 10 * index + (*end - '0');
    index += zero_based != 0;
    return index > INT32_MAX ? INT32_MAX : index; /* a width has to fit int32: readers refuse what is beyond */
}

/* Blocks short enough to be counted in a byte, so that the compiler adds 16 bytes at a time. */
static int64_t count_colons(const char *p, const char *end)
{
    enum { BLOCK = 240 };
    int64_t colons = 0;
    for (; end - p >= BLOCK; p += BLOCK) {
        uint8_t some = 0;
        for (int i = 0; i < BLOCK; i++)
            some = (uint8_t)(some + (p[i] == ':'));
        colons += some;
    }
    for (; p < end; p++)
        colons += *p == ':';
    return colons;
}

/* The first such byte of [p, end), or the end */
static const char *find(const char *p, const char *end, char byte)
{
    const char *found = p < end ? memchr(p, byte, (size_t)(end - p)) : NULL;
    return found ? found : end;
}

/*
 * All colons of the text belong to entries, but for those in comments and of queries. Most texts have neither, and one
 * search that runs ahead of the lines shows it.
 */
void lsvm_text_count(const char *text, size_t size, int zero_based, struct lsvm_text_counts *counts)
{
    const char *end = text + size, *comment = find(text, end, '#'), *query = find(text, end, 'q'), *line_end;
    *counts = (struct lsvm_text_counts){.entries = count_colons(text, end)};
    for (const char *p = text; p < end; p = line_end + 1) {
        const char *last = line_end = find(p, end, '\n');
        int64_t width;
        counts->lines++;
        if (comment < line_end) {
            last = comment;
            counts->entries -= count_colons(comment, line_end);
            comment = find(line_end, end, '#');
        } else if (last > p && last[-1] == '\r') {
            last--;
        }
        while (p < last && is_blank(*p))
            p++;
        if (p == last)
            continue;
        counts->rows++;
        while (p < last && !is_blank(*p)) /* the label */
            p++;
        if (query < line_end) {
            while (p < last && is_blank(*p))
                p++;
            if (last - p > 3 && memcmp(p, "qid:", 4) == 0) {
                counts->entries--;
                p += 4;
            }
            query = find(line_end, end, 'q');
        }
        width = last_width(p, last, zero_based);
        counts->width = width > counts->width ? width : counts->width;
    }
}
