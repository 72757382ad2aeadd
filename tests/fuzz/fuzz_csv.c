/* fuzz_csv.c - a fuzzer of the reader of delimited text; see fuzzing.h. Each input has to obey:
 *
 *   - a mistake is inside the text, and no row is read behind it;
 *   - codes are those of levels that are there; numbers are finite, or nan for no value;
 *   - what is read as numbers is read as levels, too: the same rows, the same gaps, and texts of the same numbers;
 *   - two parts, cut where a row ends, have the rows of the whole.
 */
#include <math.h>

#include "csv_text.h"

static const char NAME[] = "table reader";
static const char *const WORDS[] = {
    ",",   "\t",  "\"",    "\"\"", ",\"a\nb\",", "\r\n", "\n",           "NA",  "?",      "-1.5", "1e400",
    "inf", "nan", "0x1p3", "1e",   "12,5",       " ",    "\xef\xbb\xbf", "\"x", "\"x\"y", "\xff", "a,b,c\n1,2,3\n",
    "\r",  "+.5", "1_0"};

#include "fuzzing.h"

enum { COLUMNS = 16 };

struct table {
    struct lsvm_csv_sink sink;
    struct lsvm_csv_place place;
    struct lsvm_csv_levels levels[COLUMNS];
    int code;
};

static const struct lsvm_csv_word MISSING[] = {{"NA", 2}, {"?", 1}};

/* Rows of a text, all columns of one kind. The text is copied between the bytes that the reader may look at. */
static struct table *read(const uint8_t *text, size_t size, char delimiter, int64_t columns, uint8_t kind)
{
    struct table *one = allocate(sizeof *one);
    char *buffer = allocate(LSVM_CSV_BEFORE + size + LSVM_CSV_AFTER), *begin = buffer + LSVM_CSV_BEFORE;
    uint8_t kinds[COLUMNS];
    memset(one, 0, sizeof *one);
    memset(kinds, kind, sizeof kinds);
    memset(buffer, 0, LSVM_CSV_BEFORE + size + LSVM_CSV_AFTER);
    memcpy(begin, text, size);
    begin[size] = '\n';
    one->sink = (struct lsvm_csv_sink){.delimiter = delimiter, .columns = columns, .kinds = kinds};
    one->sink.words = 2;
    one->sink.missing = MISSING;
    one->sink.rows = lsvm_csv_bound(begin, size);
    one->sink.numbers = kind == LSVM_CSV_NUMBER ? columns : 0;
    one->sink.texts = kind == LSVM_CSV_LEVEL ? columns : 0;
    one->sink.values = allocate((size_t)(one->sink.rows * one->sink.numbers) * sizeof(double));
    one->sink.codes = allocate((size_t)(one->sink.rows * one->sink.texts) * sizeof(int32_t));
    one->sink.levels = one->levels;
    one->code = lsvm_csv_read(begin, size, &one->sink, &one->place);
    require(one->code != LSVM_NO_MEMORY && one->code != LSVM_TEXT_CHANGED, "no memory, or more rows than the bound");
    require(one->sink.row <= one->sink.rows, "more rows than the bound");
    if (one->code != LSVM_OK) {
        require(one->place.offset >= 0 && (size_t)one->place.offset <= size, "a mistake outside of the text");
        require(one->place.line >= 0 && one->place.line <= one->sink.rows, "a mistake in a line that is not there");
    }
    one->sink.kinds = NULL;
    free(buffer);
    return one;
}

static void release(struct table *one)
{
    for (int i = 0; i < COLUMNS; i++)
        lsvm_csv_forget(&one->levels[i]);
    free(one->sink.values);
    free(one->sink.codes);
    free(one);
}

static void check_levels(const struct table *one)
{
    for (int64_t i = 0; i < one->sink.row; i++)
        for (int64_t k = 0; k < one->sink.texts; k++) {
            int32_t code = one->sink.codes[k * one->sink.rows + i];
            require(code >= -1 && code < one->levels[k].count, "a code of no level");
        }
}

/* Numbers against the texts of the same fields */
static void check_numbers(const struct table *numbers, const struct table *texts)
{
    require(texts->code == LSVM_OK && texts->sink.row == numbers->sink.row, "other rows as levels than as numbers");
    for (int64_t i = 0; i < numbers->sink.row; i++)
        for (int64_t k = 0; k < numbers->sink.columns; k++) {
            double value = numbers->sink.values[k * numbers->sink.rows + i];
            int32_t code = texts->sink.codes[k * texts->sink.rows + i];
            char text[LARGEST + 1];
            require(!isinf(value), "a number is infinite");
            require(isnan(value) == (code < 0), "a value is missing as a number, or as a level, alone");
            if (code >= 0) {
                const struct lsvm_csv_levels *of = &texts->levels[k];
                int64_t from = code ? of->ends[code - 1] : 0, size = of->ends[code] - from;
                memcpy(text, of->bytes + from, (size_t)size);
                text[size] = 0;
                require(strtod(text, NULL) == value, "a number is not that of its text");
            }
        }
}

static void check_parts(const struct table *whole, char delimiter)
{
    size_t cut = lsvm_csv_cut((const char *)current.data, current.size, delimiter);
    require(cut <= current.size, "cut behind the end");
    if (whole->code != LSVM_OK || cut == 0 || cut == current.size)
        return;
    struct table *a = read(current.data, cut, delimiter, whole->sink.columns, LSVM_CSV_LEVEL);
    struct table *b = read(current.data + cut, current.size - cut, delimiter, whole->sink.columns, LSVM_CSV_LEVEL);
    require(a->code == LSVM_OK && b->code == LSVM_OK, "parts of a correct text are not");
    require(a->sink.row + b->sink.row == whole->sink.row, "parts have other rows than the whole");
    release(a);
    release(b);
}

static void try(int way)
{
    char delimiter = way ? '\t' : ',';
    struct table *texts = read(current.data, current.size, delimiter, 1, LSVM_CSV_LEVEL);
    int64_t columns = 1;
    if (texts->code == LSVM_CSV_RAGGED && texts->place.fields <= COLUMNS && texts->place.fields > 0) {
        columns = texts->place.fields; /* of the first row that has not one */
        release(texts);
        texts = read(current.data, current.size, delimiter, columns, LSVM_CSV_LEVEL);
    }
    struct table *numbers = read(current.data, current.size, delimiter, columns, LSVM_CSV_NUMBER);
    check_levels(texts);
    if (numbers->code == LSVM_OK)
        check_numbers(numbers, texts);
    check_parts(texts, delimiter);
    release(texts);
    release(numbers);
}
