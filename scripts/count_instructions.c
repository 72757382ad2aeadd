/* count_instructions.c - every kernel of csrc once, at the AVX2 level, on one generated cell: the work that
 * count_instructions.py counts under callgrind.
 *
 * Each measure_NAME is one kernel NAME of the table; callgrind starts a new count at the end of each and of `between`,
 * so that what a kernel needs is not counted. They run in the order of KERNELS, and a later one may use what an earlier
 * one made. One line a kernel goes to stdout: its name and the iterations it took, 0 where it has none.
 * Exit codes: 0 done, 1 a kernel failed, 3 the processor has no AVX2.
 *
 * The driver is also linked with the parent commit's csrc, so it calls what the headers declare and nothing else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "libsvm_text.h"
#include "nearest.h"
#include "smo.h"

enum { ROWS = 512, FEATURES = 12, COSTS = 8, MODELS = 3, NODES = 21, CHILDREN = 4, TEXT_ROWS = 2000, LINE = 256 };
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
    double *directions, *thresholds, *projections;
    uint64_t *hashes;
    char *text, *written;
    size_t text_size;
    struct lsvm_text_counts counts;
    double *labels;
    float *values;
    int32_t *indices;
    int64_t *lengths;
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
    return (struct lsvm_rows){c->x, c->norm, ROWS, FEATURES, FEATURES};
}

static struct lsvm_panels panels_of(const struct cell *c)
{
    return (struct lsvm_panels){c->packed, c->norm, ROWS / c->width, FEATURES};
}

static struct lsvm_smo problem_of(const struct cell *c, int is_double, int offset)
{
    const void *k = is_double ? (const void *)c->k_double : c->k;
    return (struct lsvm_smo){.n = ROWS,
                             .ld = ROWS,
                             .k = k,
                             .is_double = is_double,
                             .unit_diagonal = 1,
                             .offset = offset,
                             .y = c->y,
                             .max_iterations = 1000000};
}

static struct lsvm_nearest_matrix matrix_of(const struct cell *c)
{
    return (struct lsvm_nearest_matrix){.data = c->x, .n_rows = ROWS, .n_features = FEATURES};
}

static struct lsvm_text_sink sink_of(const struct cell *c)
{
    return (struct lsvm_text_sink){.rows = c->counts.rows,
                                   .width = FEATURES,
                                   .capacity = c->counts.entries,
                                   .labels = c->labels,
                                   .values = c->values,
                                   .indices = c->indices,
                                   .lengths = c->lengths};
}

/* A kernel's name is what callgrind knows it by: it must stay a function of its own. */
#define MEASURE(kernel) static __attribute__((noinline)) void measure_##kernel(struct cell *c)

MEASURE(pack) { lsvm_pack(c->ops, c->x, ROWS, FEATURES, FEATURES, c->packed); }

MEASURE(norms)
{
    const struct lsvm_rows rows = rows_of(c);
    lsvm_norms(c->ops, &rows, c->norm);
}

MEASURE(products)
{
    const struct lsvm_rows rows = rows_of(c);
    const struct lsvm_panels panels = panels_of(c);
    lsvm_products(c->ops, &rows, &panels, c->other, ROWS, 0);
}

MEASURE(distances)
{
    const struct lsvm_rows rows = rows_of(c);
    const struct lsvm_panels panels = panels_of(c);
    lsvm_products(c->ops, &rows, &panels, c->distances, ROWS, 1);
}

MEASURE(gaussian) { lsvm_transform(c->ops, &GAUSSIAN, c->distances, c->k, MATRIX); }

MEASURE(laplacian) { lsvm_transform(c->ops, &LAPLACIAN, c->distances, c->other, MATRIX); }

MEASURE(multiply)
{
    const struct lsvm_smo problem = problem_of(c, 0, 0);
    lsvm_smo_multiply(c->ops, &problem, c->b, c->unit);
}

MEASURE(smo_path)
{
    static const double costs[COSTS] = {0.01, 0.04, 0.16, 0.64, 2.56, 10.24, 40.96, 163.84};
    const struct lsvm_smo problem = problem_of(c, 0, 0);
    struct lsvm_report reports[COSTS];
    c->code = lsvm_smo_path(c->ops, &problem, c->weight, c->unit, NULL, costs, COSTS, 1e-3, c->b, c->f, reports);
    for (int i = 0; i < COSTS && !c->code; i++) {
        c->iterations += reports[i].iterations;
        c->code = !reports[i].converged;
    }
}

static void solve(struct cell *c, int is_double, int offset)
{
    const struct lsvm_smo problem = problem_of(c, is_double, offset);
    struct lsvm_report report;
    c->code = lsvm_smo_solve(c->ops, &problem, c->lo, c->hi, 1e-3, c->b, c->f, &report);
    c->iterations = report.iterations;
    c->code = c->code ? c->code : !report.converged;
}

MEASURE(smo_solve) { solve(c, 0, 0); }

MEASURE(smo_offset) { solve(c, 0, 1); }

MEASURE(smo_double) { solve(c, 1, 0); }

MEASURE(expansions)
{
    const struct lsvm_rows rows = rows_of(c);
    const int64_t groups[2] = {0, MODELS}, panels = ROWS / c->width;
    const int64_t used[MODELS + 1] = {0, panels, 2 * panels, 3 * panels};
    const struct lsvm_expansion e = {.b = panels_of(c),
                                     .groups = 1,
                                     .kernels = &GAUSSIAN,
                                     .group_ptr = groups,
                                     .used_ptr = used,
                                     .used = c->used,
                                     .coef = c->coef};
    lsvm_expansions(c->ops, &rows, &e, c->scratch, c->decisions);
}

MEASURE(text_count) { lsvm_text_count(c->text, c->text_size, 0, &c->counts); }

MEASURE(read_dense)
{
    struct lsvm_text_sink sink = sink_of(c);
    struct lsvm_text_place place;
    c->code = lsvm_text_read_dense(c->text, c->text_size, &sink, &place);
}

MEASURE(read_sparse)
{
    struct lsvm_text_sink sink = sink_of(c);
    struct lsvm_text_place place;
    c->code = lsvm_text_read_sparse(c->text, c->text_size, &sink, &place);
}

MEASURE(write_dense)
{
    static char labels[ROWS];
    const struct lsvm_text_style style = {.label_width = 1, .labels = memset(labels, '1', sizeof labels)};
    c->code = !lsvm_text_write_dense(c->x, ROWS, FEATURES, &style, c->written);
}

MEASURE(project)
{
    const struct lsvm_nearest_matrix m = matrix_of(c);
    c->code = lsvm_nearest_project(&m, c->row, ROWS, c->directions, c->projections);
}

MEASURE(route)
{
    static const int32_t children[NODES] = {CHILDREN, CHILDREN, CHILDREN, CHILDREN, CHILDREN};
    static const int32_t first[NODES] = {1, 5, 9, 13, 17}, cells[NODES] = {0};
    const struct lsvm_nearest_matrix m = matrix_of(c);
    const struct lsvm_nearest_tree tree = {c->directions, c->thresholds, first, children, cells, NODES};
    c->code = lsvm_nearest_route(&m, 0, ROWS, &tree, c->routed);
}

MEASURE(hash)
{
    const struct lsvm_nearest_matrix m = matrix_of(c);
    c->code = lsvm_nearest_hash(&m, 0, ROWS, 1, c->hashes);
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

static void weigh(struct cell *c)
{
    for (int i = 0; i < ROWS; i++)
        c->b[i] = c->weight[i] * c->y[i];
}

#define ENTRY(before, kernel) {#kernel, before, measure_##kernel}

static const struct {
    const char *name;
    void (*before)(struct cell *); /* may be NULL */
    void (*run)(struct cell *);
} KERNELS[] = {
    ENTRY(make_cell, pack),    ENTRY(NULL, norms),         ENTRY(NULL, products),      ENTRY(NULL, distances),
    ENTRY(NULL, gaussian),     ENTRY(NULL, laplacian),     ENTRY(weigh, multiply),     ENTRY(NULL, smo_path),
    ENTRY(prepare, smo_solve), ENTRY(prepare, smo_offset), ENTRY(prepare, smo_double), ENTRY(prepare, expansions),
    ENTRY(NULL, text_count),   ENTRY(NULL, read_dense),    ENTRY(NULL, read_sparse),   ENTRY(NULL, write_dense),
    ENTRY(NULL, project),      ENTRY(NULL, route),         ENTRY(NULL, hash),
};

enum { N_KERNELS = sizeof KERNELS / sizeof *KERNELS };

/* All that is not to be counted: it ends where the next kernel begins. */
static __attribute__((noinline)) void between(struct cell *c, size_t next)
{
    c->iterations = 0;
    if (KERNELS[next].before)
        KERNELS[next].before(c);
}

static int finished(const struct cell *c, const char *name)
{
    if (c->code)
        fprintf(stderr, "%s failed: code %d\n", name, c->code);
    else
        printf("%s %lld\n", name, (long long)c->iterations);
    return c->code;
}

int main(void)
{
    static struct cell c;
    c.ops = lsvm_ops_at(LSVM_AVX2);
    if (!c.ops)
        return NO_AVX2;
    for (size_t i = 0; i < N_KERNELS; i++) {
        between(&c, i);
        KERNELS[i].run(&c);
        if (finished(&c, KERNELS[i].name))
            return FAILED;
    }
    return 0;
}
