/* count_instructions.c - every kernel of csrc once, at the AVX2 level, on one generated cell: the work that
 * count_instructions.py counts under callgrind.
 *
 * Each measure_NAME is one kernel NAME of the table; callgrind starts a new count at the end of each and of `between`,
 * so that what a kernel needs is not counted. They run in the order of KERNELS, and a later one may use what an earlier
 * one made. One line a kernel goes to stdout: its name and the iterations it took, 0 where it has none.
 * Exit codes: 0 done, 1 a kernel failed, 3 the processor has no AVX2.
 */
#include "count_cell.h"

#include <math.h>

#include "ops.h"

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
    const struct lsvm_points rows = points_of(c);
    const struct lsvm_panels panels = panels_of(c);
    lsvm_products(c->ops, &rows, &panels, c->other, ROWS, LSVM_PRODUCTS);
}

MEASURE(distances)
{
    const struct lsvm_points rows = points_of(c);
    const struct lsvm_panels panels = panels_of(c);
    lsvm_products(c->ops, &rows, &panels, c->distances, ROWS, LSVM_SQUARES);
}

MEASURE(sums)
{
    const struct lsvm_points rows = points_of(c);
    const struct lsvm_panels panels = panels_of(c);
    lsvm_products(c->ops, &rows, &panels, c->other, ROWS, LSVM_SUMS);
}

MEASURE(gaussian) { lsvm_transform(c->ops, &GAUSSIAN, c->distances, c->k, MATRIX); }

MEASURE(laplacian) { lsvm_transform(c->ops, &LAPLACIAN, c->distances, c->other, MATRIX); }

MEASURE(multiply)
{
    const struct lsvm_smo problem = problem_of(c, 0, 0);
    lsvm_smo_multiply(c->ops, &problem, c->b, c->unit);
}

static void follow(struct cell *c, const struct lsvm_dual *dual, const double *unit)
{
    static const double costs[COSTS] = {0.01, 0.04, 0.16, 0.64, 2.56, 10.24, 40.96, 163.84};
    const struct lsvm_smo problem = problem_of(c, 0, 0);
    struct lsvm_report reports[COSTS];
    const struct lsvm_path path = {c->weight, dual, unit, NULL, costs, COSTS};
    int64_t tried = 0;
    c->code = lsvm_smo_path(c->ops, &problem, &path, 1e-3, c->b, c->f, reports, &tried);
    for (int64_t i = 0; i < tried && !c->code; i++) {
        c->iterations += reports[i].iterations;
        c->code = !reports[i].converged;
    }
}

MEASURE(smo_path) { follow(c, NULL, c->unit); }

MEASURE(smo_squared)
{
    static const struct lsvm_dual squared_hinge = {-INFINITY, INFINITY, 0, 0.5, 0.5, 1};
    static const double nothing[ROWS];
    follow(c, &squared_hinge, nothing);
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
    const struct lsvm_points rows = points_of(c);
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
    const struct lsvm_rows rows = rows_of(c);
    c->code = lsvm_nearest_project(c->ops, &rows, c->row, ROWS, c->directions, c->projections);
}

MEASURE(route)
{
    static const int32_t children[NODES] = {CHILDREN, CHILDREN, CHILDREN, CHILDREN, CHILDREN};
    static const int32_t first[NODES] = {1, 5, 9, 13, 17}, cells[NODES] = {0};
    const struct lsvm_rows rows = rows_of(c);
    const struct lsvm_nearest_tree tree = {c->directions, c->thresholds, first, children, cells, NODES, 0};
    c->code = lsvm_nearest_route(c->ops, &rows, 0, ROWS, &tree, c->routed);
}

MEASURE(hash)
{
    const struct lsvm_rows rows = rows_of(c);
    c->code = lsvm_nearest_hash(c->ops, &rows, 0, ROWS, 1, c->hashes);
}

MEASURE(pair)
{
    static const struct lsvm_nearest_steps steps = {.halves = 2, .nearest = 3, .least = ROWS / 8};
    const struct lsvm_rows rows = rows_of(c);
    double *far = c->work + lsvm_nearest_pair_work(ROWS, FEATURES), *pair = far + 2 * FEATURES;
    c->code = lsvm_nearest_pair(c->ops, &rows, c->row, ROWS, &steps, far, pair, c->work);
}

MEASURE(linear_dense)
{
    const struct lsvm_linear p = linear_of(rows_of(c));
    lsvm_linear_curve(c->ops, &p, c->weight, c->directions, c->work);
}

MEASURE(linear_sparse)
{
    const struct lsvm_linear p = linear_of(sparse_of(c));
    lsvm_linear_curve(c->ops, &p, c->labels, c->directions, c->work);
}

MEASURE(sdca)
{
    const struct lsvm_linear p = linear_of(rows_of(c));
    const struct lsvm_sdca s = {.y = c->y, .cost = c->weight, .tolerance = 1e-2, .max_passes = 1000};
    struct lsvm_sdca_report report;
    c->code = lsvm_sdca_solve(c->ops, &p, &s, c->b, c->work, &report);
    c->iterations = report.steps;
    c->code = c->code ? c->code : !report.converged;
}

/* Weights before the round are anything: the points. */
MEASURE(ml3_steps)
{
    const struct lsvm_rows rows = rows_of(c);
    struct lsvm_ml3_training training = {
        .codes = c->codes, .weight = c->weight, .lambda = 0.01, .radius = 10, .p = 1.5, .before = c->x};
    c->code = lsvm_ml3_steps(c->ops, &c->ml3, &training, &rows, c->row, ROWS);
    lsvm_ml3_fold_scale(c->ops, &c->ml3, &training);
}

MEASURE(ml3_scores)
{
    const struct lsvm_rows rows = rows_of(c);
    c->code = lsvm_ml3_scores(c->ops, &c->ml3, &rows, 0, ROWS, c->decisions);
}

MEASURE(cholesky) { c->code = c->ops->cholesky(c->k, 0.3f, c->other, ROWS, ROWS); }

#define ENTRY(before, kernel) {#kernel, before, measure_##kernel}

static const struct {
    const char *name;
    void (*before)(struct cell *); /* may be NULL */
    void (*run)(struct cell *);
} KERNELS[] = {
    ENTRY(make_cell, pack),     ENTRY(NULL, norms),          ENTRY(NULL, products),     ENTRY(NULL, distances),
    ENTRY(NULL, sums),          ENTRY(NULL, gaussian),       ENTRY(NULL, laplacian),    ENTRY(weigh, multiply),
    ENTRY(NULL, smo_path),      ENTRY(NULL, smo_squared),    ENTRY(prepare, smo_solve), ENTRY(prepare, smo_offset),
    ENTRY(prepare, smo_double), ENTRY(prepare, expansions),  ENTRY(NULL, text_count),   ENTRY(NULL, read_dense),
    ENTRY(NULL, read_sparse),   ENTRY(NULL, write_dense),    ENTRY(NULL, project),      ENTRY(NULL, route),
    ENTRY(NULL, hash),          ENTRY(NULL, pair),           ENTRY(NULL, linear_dense), ENTRY(point, linear_sparse),
    ENTRY(prepare, sdca),       ENTRY(begin_ml3, ml3_steps), ENTRY(NULL, ml3_scores),   ENTRY(NULL, cholesky),
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
