/* fuzz_text.c - a coverage-guided fuzzer of the text reader: fuzz_text SECONDS SEED FOUND CORPUS...
 *
 * csrc is compiled with gcc's -fsanitize-coverage=trace-pc, whose callback is below: an input that takes a new way
 * through the code is kept and changed further. Besides what the sanitizers see, each input has to obey:
 *
 *   - counts are exact for a correct text, and bounds for an incorrect one;
 *   - the dense and the sparse reader say the same: the same mistake at the same place, or the same numbers;
 *   - columns that are picked hold the same numbers in float64;
 *   - numbers are finite, indices ascend inside the width;
 *   - what was read, written and read again is the same.
 *
 * The first input that does not is written to the file FOUND, and the program ends with exit code 1 (or as the
 * sanitizers have it). Inputs follow from SEED alone; how many there are, from the time.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libsvm_text.h"

enum { MAP = 1 << 14, LARGEST = 512, DENSE_WIDTH = 64, MOST = 1 << 16 };

struct input {
    uint8_t *data;
    size_t size;
};

static uint8_t taken[MAP], seen[MAP];
static uintptr_t previous;
static struct input corpus[MOST], current;
static size_t kept;
static uint64_t state;
static const char *found_path;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_set_death_callback(void (*callback)(void));

void __sanitizer_cov_trace_pc(void)
{
    uintptr_t place = (uintptr_t)__builtin_return_address(0) * 0x9E3779B97F4A7C15u >> 48;
    taken[(place ^ previous) % MAP]++;
    previous = place >> 1;
}

static void write_found(void)
{
    FILE *file = fopen(found_path, "wb");
    if (file != NULL) {
        fwrite(current.data, 1, current.size, file);
        fclose(file);
        fprintf(stderr, "the input is in %s\n", found_path);
    }
}

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "fuzz_text: %s\n", what);
        write_found();
        _Exit(1);
    }
}

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static void *allocate(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (memory == NULL)
        abort();
    return memory;
}

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

static void change(void)
{
    uint8_t *p = current.data;
    size_t at = draw(current.size + 1), length, words = sizeof WORDS / sizeof *WORDS;
    const struct input *other = &corpus[draw(kept)];
    switch (draw(7)) {
    case 0: /* a bit */
        if (at < current.size)
            p[at] ^= (uint8_t)(1u << draw(8));
        return;
    case 1: /* a byte */
        if (at < current.size)
            p[at] = (uint8_t)draw(256);
        return;
    case 2: /* a word of the format */
        other = NULL;
        break;
    case 3: /* a part of another input */
        break;
    case 4: /* a part twice */
        other = &current;
        break;
    case 5: /* a part less */
        length = draw(1 + (current.size - at) % 32);
        memmove(p + at, p + at + length, current.size - at - length);
        current.size -= length;
        return;
    default: /* the end less */
        current.size = at;
        return;
    }
    const uint8_t *from;
    uint8_t part[32];
    if (other == NULL) {
        const char *word = WORDS[draw(words)];
        from = (const uint8_t *)word;
        length = strlen(word);
    } else {
        size_t begin = draw(other->size + 1);
        length = draw(sizeof part) % (other->size - begin + 1);
        memcpy(part, other->data + begin, length);
        from = part;
    }
    if (current.size + length <= LARGEST) {
        memmove(p + at + length, p + at, current.size - at);
        memcpy(p + at, from, length);
        current.size += length;
    }
}

/* Whether the ways taken hold one that no input before has taken, or not as often: powers of two count as one. */
static int is_new(void)
{
    int found = 0;
    for (size_t i = 0; i < MAP; i++) {
        uint8_t often = taken[i] > 31 ? 128 : taken[i] > 7 ? 64 : taken[i] > 3 ? 32 : (uint8_t)(taken[i] * taken[i]);
        found |= often & ~seen[i];
        seen[i] |= often;
    }
    return found != 0;
}

static void run(void)
{
    memset(taken, 0, sizeof taken);
    previous = 0;
    try(0);
    try(1);
    if (is_new() && kept < MOST) {
        corpus[kept] = (struct input){allocate(current.size), current.size};
        memcpy(corpus[kept++].data, current.data, current.size);
    }
}

static void load(const char *folder)
{
    struct dirent **names;
    int n = scandir(folder, &names, NULL, alphasort); /* in one order, so that a seed means one thing */
    char path[4096];
    for (int i = 0; i < n; i++) {
        FILE *file;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        file = names[i]->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (file != NULL) {
            current.size = fread(current.data, 1, LARGEST, file);
            fclose(file);
            run();
        }
        free(names[i]);
    }
    if (n > 0)
        free(names);
}

int main(int argc, char **argv)
{
    time_t end;
    long tried = 0;
    int ways = 0;
    if (argc < 5) {
        fprintf(stderr, "usage: fuzz_text SECONDS SEED FOUND CORPUS...\n");
        return 2;
    }
    found_path = argv[3];
    state = strtoull(argv[2], NULL, 10) * 2 + 0x9E3779B97F4A7C15u;
    current.data = allocate(LARGEST);
    __sanitizer_set_death_callback(write_found);
    run(); /* the empty text */
    for (int i = 4; i < argc; i++)
        load(argv[i]);
    end = time(NULL) + strtol(argv[1], NULL, 10);
    for (; time(NULL) < end; tried++) {
        const struct input *base = &corpus[draw(kept)];
        current.size = base->size;
        memcpy(current.data, base->data, base->size);
        for (uint64_t changes = 1 + draw(6); changes > 0; changes--)
            change();
        run();
    }
    for (size_t i = 0; i < MAP; i++)
        ways += seen[i] != 0;
    printf("text reader: %ld inputs, %d ways through the code, nothing found\n", tried, ways);
    return 0;
}
