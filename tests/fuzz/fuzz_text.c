/* fuzz_text.c - a fuzzer of the reader of LIBSVM text; see fuzzing.h. Each input has to obey:
 *
 *   - counts are exact for a correct text, and bounds for an incorrect one;
 *   - the dense and the sparse reader say the same: the same mistake at the same place, or the same numbers;
 *   - columns that are picked hold the same numbers in float64;
 *   - numbers are finite, indices ascend inside the width;
 *   - what was read, written and read again is the same.
 */
#include <math.h>

#include "libsvm_text.h"

static const char NAME[] = "text reader";
static const char *const WORDS[] = {"1:1",
                                    " 2:-3.5",
                                    "qid:7 ",
                                    "#",
                                    "\r\n",
                                    "\n",
                                    ":",
                                    "1e",
                                    "e400",
                                    "inf",
                                    "nan",
                                    "-0",
                                    "0:1 ",
                                    "2147483647:1",
                                    "4294967296:1",
                                    "99999999999999999999",
                                    "0.000000000000000000000000001",
                                    "3.4028236e38",
                                    "+",
                                    "\t ",
                                    "\r",
                                    "\xef\xbb\xbf",
                                    "1e-46",
                                    "16777217",
                                    "9007199254740993"};

#include "fuzzing.h"

enum { DENSE_WIDTH = 64 };

struct rows {
    struct lsvm_text_sink sink;
    struct lsvm_text_place place;
    int code;
};

static struct rows room(const struct lsvm_text_counts *counts, int zero_based, int64_t width, int64_t elements)
{
    struct rows found = {.sink = {.zero_based = zero_based, .rows = counts->rows, .width = width}};
    found.sink.capacity = counts->entries;
    found.sink.labels = allocate((size_t)counts->rows * sizeof(double));
    found.sink.lengths = allocate((size_t)counts->rows * sizeof(int64_t));
    found.sink.indices = allocate((size_t)counts->entries * sizeof(int32_t));
    found.sink.values = allocate((size_t)elements * sizeof(float));
    return found;
}

static void release(struct rows *one)
{
    free(one->sink.labels);
    free(one->sink.lengths);
    free(one->sink.indices);
    free(one->sink.values);
}

static struct rows read_sparse(const char *text, size_t size, const struct lsvm_text_counts *counts, int zero_based)
{
    struct rows found = room(counts, zero_based, counts->width, counts->entries);
    found.code = lsvm_text_read_sparse(text, size, &found.sink, &found.place);
    return found;
}

static void check_entries(const struct rows *sparse, const struct lsvm_text_counts *counts)
{
    int64_t at = 0;
    require(sparse->sink.row == counts->rows, "a correct text has other rows than were counted");
    require(sparse->sink.entry <= counts->entries, "more entries than were counted");
    for (int64_t i = 0; i < sparse->sink.row; i++) {
        int64_t end = at + sparse->sink.lengths[i];
        require(isfinite(sparse->sink.labels[i]), "a label is not finite");
        require(sparse->sink.lengths[i] >= 0 && end <= sparse->sink.entry, "lengths exceed the entries");
        for (int64_t last = -1; at < end; at++) {
            require(isfinite(sparse->sink.values[at]) && sparse->sink.values[at] != 0, "a value is 0 or not finite");
            require(sparse->sink.indices[at] > last && sparse->sink.indices[at] < counts->width, "a wrong index");
            last = sparse->sink.indices[at];
        }
    }
    require(at == sparse->sink.entry, "lengths do not sum to the entries");
}

static void check_dense(const char *text, size_t size, const struct rows *sparse, const struct lsvm_text_counts *counts)
{
    int64_t width = counts->width < DENSE_WIDTH ? counts->width : DENSE_WIDTH, at = 0;
    struct rows dense = room(counts, sparse->sink.zero_based, width, counts->rows * width);
    dense.code = lsvm_text_read_dense(text, size, &dense.sink, &dense.place);
    require(dense.code == sparse->code, "the dense and the sparse reader disagree");
    if (dense.code != LSVM_OK)
        require(memcmp(&dense.place, &sparse->place, sizeof dense.place) == 0, "they see a mistake at two places");
    for (int64_t i = 0; dense.code == LSVM_OK && i < sparse->sink.row; i++) {
        float row[DENSE_WIDTH] = {0};
        for (int64_t end = at + sparse->sink.lengths[i]; at < end; at++)
            if (sparse->sink.indices[at] < width)
                row[sparse->sink.indices[at]] = sparse->sink.values[at];
        require(memcmp(&dense.sink.labels[i], &sparse->sink.labels[i], sizeof(double)) == 0, "labels differ");
        require(memcmp(row, dense.sink.values + i * width, (size_t)width * sizeof(float)) == 0, "values differ");
    }
    release(&dense);
}

/* The first, the third and the last column, in float64 */
static void check_picked(const char *text, size_t size, const struct rows *sparse,
                         const struct lsvm_text_counts *counts)
{
    int32_t columns[3] = {0, 2, (int32_t)counts->width - 1};
    int64_t width = counts->width > 3 ? 3 : counts->width > 0, at = 0;
    struct rows picked = room(counts, sparse->sink.zero_based, width, 0);
    picked.sink.picked = columns;
    picked.sink.wide = allocate((size_t)(counts->rows * width) * sizeof(double));
    picked.code = lsvm_text_pick(text, size, &picked.sink, &picked.place);
    /* what is too large for float32 may not be after the origin is taken away */
    if (sparse->code != LSVM_TEXT_VALUE_TOO_LARGE)
        require(picked.code == sparse->code, "the picker and the sparse reader disagree");
    for (int64_t i = 0; sparse->code == LSVM_OK && i < sparse->sink.row; i++) {
        float row[3] = {0};
        for (int64_t end = at + sparse->sink.lengths[i]; at < end; at++)
            for (int64_t k = 0; k < width; k++)
                if (sparse->sink.indices[at] == columns[k])
                    row[k] = sparse->sink.values[at];
        for (int64_t k = 0; k < width; k++)
            require((float)picked.sink.wide[i * width + k] == row[k], "a picked value differs");
    }
    free(picked.sink.wide);
    release(&picked);
}

static void check_written(const struct rows *sparse)
{
    int64_t rows = sparse->sink.row, *indptr = allocate((size_t)(rows + 1) * sizeof *indptr);
    char *labels = allocate((size_t)rows), *out;
    struct lsvm_text_style style = {.zero_based = sparse->sink.zero_based, .label_width = 1, .labels = labels};
    struct lsvm_text_counts counts;
    struct rows again;
    size_t size;
    memset(labels, '1', (size_t)rows);
    indptr[0] = 0;
    for (int64_t i = 0; i < rows; i++)
        indptr[i + 1] = indptr[i] + sparse->sink.lengths[i];
    out = allocate((size_t)(rows * (1 + LSVM_TEXT_ROW_BYTES) + indptr[rows] * LSVM_TEXT_ENTRY_BYTES));
    size = lsvm_text_write_sparse(sparse->sink.values, sparse->sink.indices, indptr, rows, &style, out);
    lsvm_text_count(out, size, style.zero_based, &counts);
    again = read_sparse(out, size, &counts, style.zero_based);
    require(again.code == LSVM_OK && again.sink.row == rows, "what was written is not read again");
    require(again.sink.entry == indptr[rows], "an entry was lost in writing");
    require(memcmp(again.sink.values, sparse->sink.values, (size_t)indptr[rows] * sizeof(float)) == 0,
            "a value was changed in writing");
    require(memcmp(again.sink.indices, sparse->sink.indices, (size_t)indptr[rows] * sizeof(int32_t)) == 0,
            "an index was changed in writing");
    release(&again);
    free(indptr);
    free(labels);
    free(out);
}

static void try(int zero_based)
{
    char *text = allocate(current.size); /* of exactly this size: a byte more is seen by the sanitizer */
    struct lsvm_text_counts counts;
    struct rows sparse;
    memcpy(text, current.data, current.size);
    lsvm_text_count(text, current.size, zero_based, &counts);
    sparse = read_sparse(text, current.size, &counts, zero_based);
    require(sparse.code != LSVM_NO_MEMORY, "no memory");
    if (sparse.code == LSVM_OK) {
        check_entries(&sparse, &counts);
        check_written(&sparse);
    } else {
        require(sparse.place.offset >= 0 && (size_t)sparse.place.offset <= current.size, "a mistake outside the text");
        require(sparse.place.line >= 1 && sparse.place.line <= counts.lines + 1,
                "a mistake in a line that is not there");
    }
    check_dense(text, current.size, &sparse, &counts);
    check_picked(text, current.size, &sparse, &counts);
    release(&sparse);
    free(text);
}
