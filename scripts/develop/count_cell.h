/* count_cell.h - the generated cell that count_instructions.c works on, and the room for results. Everything is
 * allocated once and lives as long as the program.
 */
#ifndef COUNT_CELL_H
#define COUNT_CELL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "libsvm_text.h"
#include "linear.h"
#include "ml3.h"
#include "nearest.h"
#include "sdca.h"
#include "smo.h"

enum { ROWS = 512, FEATURES = 12, COSTS = 8, MODELS = 3, NODES = 21, CHILDREN = 4, TEXT_ROWS = 2000, LINE = 256 };
enum { CLASSES = 2, WIDTH = CLASSES * LSVM_ML3_LANES / 2, LINES = (FEATURES + 1) * WIDTH + LSVM_ML3_LANES };
enum { FAILED = 1, NO_AVX2 = 3, MATRIX = ROWS * ROWS, POINTS = ROWS * FEATURES };

static const struct lsvm_kernel GAUSSIAN = {.kind = LSVM_GAUSSIAN, .gamma = 0.1f};
static const struct lsvm_kernel LAPLACIAN = {.kind = LSVM_LAPLACIAN, .gamma = 0.3f};

struct cell {
    const struct lsvm_ops *ops;
    uint64_t random; /* state of the generator */
    int64_t width;   /* of a panel */
    float *x, *packed, *norm, *distances, *k, *other, *scratch;
    double *k_double, *y, *weight, *unit, *lo, *hi, *b, *f, *coef, *decisions;
    int32_t *used, *routed;
    int64_t *row;
    double *directions, *thresholds, *projections, *work;
    uint64_t *hashes;
    char *text, *written;
    size_t text_size;
    struct lsvm_text_counts counts;
    double *labels;
    float *values;
    int32_t *indices;
    int64_t *lengths, *indptr;
    int32_t *codes;
    float *lines;
    struct lsvm_ml3_model ml3;
    int64_t iterations; /* of the last kernel */
    int code;           /* of the last kernel, 0 where it did its work */
};

static void *room(size_t count, size_t size)
{
    void *block = NULL;
    if (posix_memalign(&block, LSVM_ALIGN, count * size)) {
        fputs("out of memory\n", stderr);
        exit(FAILED);
    }
    memset(block, 0, count * size);
    return block;
}

#define ROOM(pointer, count) ((pointer) = room((count), sizeof *(pointer)))

/* Uniform in [0, 1): Knuth's linear congruential generator, the upper 24 bits. */
static float uniform(struct cell *c)
{
    c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(c->random >> 40) / 16777216.0f;
}

/* Nearly normal: the sum of four uniforms, of variance one third. */
static float bell(struct cell *c) { return uniform(c) + uniform(c) + uniform(c) + uniform(c) - 2.0f; }

static void make_points(struct cell *c)
{
    for (int i = 0; i < POINTS; i++)
        c->x[i] = 1.7f * bell(c);
    for (int i = 0; i < ROWS; i++) { /* two classes that overlap; every fifth row is held out */
        const float *x = c->x + i * FEATURES;
        c->y[i] = x[0] * x[1] + x[2] + bell(c) > 0 ? 1 : -1;
        c->weight[i] = i % 5 ? 1 : 0;
        c->row[i] = (i * 211) % ROWS;
        c->codes[i] = c->y[i] > 0;
    }
}

static void make_models(struct cell *c)
{
    for (int m = 0; m < MODELS; m++)
        for (int j = 0; j < ROWS; j++)
            c->coef[m * ROWS + j] = bell(c);
    for (int m = 0; m < MODELS; m++)
        for (int p = 0; p < ROWS / c->width; p++)
            c->used[m * ROWS / c->width + p] = p;
}

/* A root with four children of four leaves each. */
static void make_tree(struct cell *c)
{
    for (int i = 0; i < NODES * FEATURES; i++)
        c->directions[i] = bell(c);
    for (int i = 0; i < NODES; i++)
        c->thresholds[i] = 0.3 * bell(c);
}

static void make_text(struct cell *c)
{
    char *at = c->text;
    for (int i = 0; i < TEXT_ROWS; i++) {
        at += sprintf(at, "%s", uniform(c) < 0.5f ? "+1" : "-1");
        for (int j = 1; j <= FEATURES; j++)
            if (uniform(c) < 0.8f)
                at += sprintf(at, " %d:%.*g", j, 3 + (int)(6 * uniform(c)), (double)bell(c));
        *at++ = '\n';
    }
    c->text_size = (size_t)(at - c->text);
}

static void make_room(struct cell *c)
{
    ROOM(c->x, POINTS), ROOM(c->packed, POINTS), ROOM(c->norm, ROWS);
    ROOM(c->distances, MATRIX), ROOM(c->k, MATRIX), ROOM(c->other, MATRIX), ROOM(c->k_double, MATRIX);
    ROOM(c->y, ROWS), ROOM(c->weight, ROWS), ROOM(c->unit, ROWS), ROOM(c->lo, ROWS), ROOM(c->hi, ROWS);
    ROOM(c->b, COSTS * ROWS), ROOM(c->f, COSTS * ROWS), ROOM(c->row, ROWS);
    ROOM(c->coef, MODELS * ROWS), ROOM(c->decisions, MODELS * ROWS), ROOM(c->used, MODELS * ROWS);
    ROOM(c->directions, NODES * FEATURES), ROOM(c->thresholds, NODES), ROOM(c->routed, ROWS);
    ROOM(c->projections, ROWS), ROOM(c->hashes, ROWS), ROOM(c->text, TEXT_ROWS * LINE);
    ROOM(c->written, TEXT_ROWS * (FEATURES + 1) * LSVM_TEXT_ENTRY_BYTES), ROOM(c->labels, TEXT_ROWS);
    ROOM(c->values, TEXT_ROWS * FEATURES), ROOM(c->indices, TEXT_ROWS * FEATURES), ROOM(c->lengths, TEXT_ROWS);
    ROOM(c->work, 4 * ROWS), ROOM(c->indptr, TEXT_ROWS + 1), ROOM(c->codes, ROWS), ROOM(c->lines, LINES);
}

static void make_cell(struct cell *c)
{
    c->random = 1;
    c->width = lsvm_panel_width(c->ops);
    make_room(c);
    make_points(c);
    make_models(c);
    make_tree(c);
    make_text(c);
}

static struct lsvm_rows rows_of(const struct cell *c)
{
    return (struct lsvm_rows){.n = ROWS, .d = FEATURES, .values = c->x, .ld = FEATURES};
}

/* The rows of the text. */
static struct lsvm_rows sparse_of(const struct cell *c)
{
    return (struct lsvm_rows){
        .n = TEXT_ROWS, .d = FEATURES, .values = c->values, .indices = c->indices, .indptr = c->indptr};
}

static struct lsvm_points points_of(const struct cell *c) { return (struct lsvm_points){rows_of(c), c->norm}; }

static struct lsvm_linear linear_of(struct lsvm_rows rows)
{
    return (struct lsvm_linear){.rows = rows, .tasks = 1, .bias = 1, .shared_bias = 1};
}

static struct lsvm_panels panels_of(const struct cell *c)
{
    return (struct lsvm_panels){c->packed, c->norm, ROWS / c->width, FEATURES};
}

/* What the next kernels start from: coefficients for the product, its result for the path, zero for the solves. */
static void prepare(struct cell *c)
{
    struct lsvm_expansion e = {.b = panels_of(c)};
    free(c->scratch);
    ROOM(c->scratch, (size_t)lsvm_expansion_scratch(c->ops, &e));
    for (int i = 0; i < MATRIX; i++)
        c->k_double[i] = (double)c->k[i];
    for (int i = 0; i < ROWS; i++) {
        c->lo[i] = c->y[i] < 0 ? -10 : 0;
        c->hi[i] = c->y[i] > 0 ? 10 : 0;
    }
    memset(c->b, 0, ROWS * sizeof *c->b);
}

/* Row pointers of the text's rows. */
static void point(struct cell *c)
{
    for (int i = 0; i < TEXT_ROWS; i++)
        c->indptr[i + 1] = c->indptr[i] + c->lengths[i];
}

static void begin_ml3(struct cell *c)
{
    c->ml3 = (struct lsvm_ml3_model){.classes = CLASSES,
                                     .models = WIDTH / CLASSES,
                                     .features = FEATURES,
                                     .width = WIDTH,
                                     .q = 3,
                                     .weights = c->lines,
                                     .scale = 1};
}

static void weigh(struct cell *c)
{
    for (int i = 0; i < ROWS; i++)
        c->b[i] = c->weight[i] * c->y[i];
}

#endif
