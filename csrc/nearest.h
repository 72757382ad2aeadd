/* nearest.h - the nearest of some centres: the passes over rows that grow a tree of centres and send rows down the
 * tree.
 *
 * Every inner product of a row, and every difference of distances, is summed in double, feature j in lane j modulo 8,
 * and the lanes are added in one fixed order, without fused operations. So a value depends on the row and the vector alone: not on blocks, threads or the
 * SIMD level, nor on whether the row is dense or sparse.
 *
 * Rows are float32 (rows.h), everything that is computed from them float64, in units of the features; indices and
 * counts are int64. The caller owns every array, and nothing is allocated here. A function that returns int returns
 * LSVM_OK or the code that its comment names; `rows` are indices of rows of m, and LSVM_BAD_ROW means that one of them
 * is no row. A call cannot be interrupted: callers cut n into blocks.
 */
#ifndef LSVM_NEAREST_H
#define LSVM_NEAREST_H

#include "rows.h"
#include "simd.h"
#include "status.h"

/* The children of one node: n vectors of m->d doubles, and n thresholds. A row x belongs to the child with the largest
 * score, where child 0 scores 0; ties go to the lower child. The score is <x, vectors[c]> - thresholds[c], vectors[c] =
 * centre c - centre 0; or, with `manhattan`, apart(x, vectors[0], vectors[c]) - thresholds[c], and the vectors are the
 * centres: apart(x, u, v) = sum_j (|x_j - u_j| - |u_j|) - (|x_j - v_j| - |v_j|), which is |x - u| - |x - v| in that
 * distance but for a constant, and to which zeros of x add nothing. vectors[0] is read with `manhattan` alone, and
 * thresholds[0] never. */
struct lsvm_nearest_children {
    const double *vectors;
    const double *thresholds;
    int64_t n;
    int manhattan;
};

/* A tree: node i has n_children[i] children (0: a leaf, whose cell is cell[i]) numbered from first_child[i], always
 * above i; row i of vectors and thresholds[i] belong to node i as a child. Node 0 is the root. */
struct lsvm_nearest_tree {
    const double *vectors;
    const double *thresholds;
    const int32_t *first_child;
    const int32_t *n_children;
    const int32_t *cell;
    int64_t n_nodes;
    int manhattan;
};

/* out[i] = <x, direction> of row rows[i]. LSVM_BAD_ROW. */
int lsvm_nearest_project(const struct lsvm_ops *ops, const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                         const double *direction, double *out);

/* out[i] = apart(x, pair[0], pair[1]) of row rows[i], see above; pair: 2 x m->d. LSVM_BAD_ROW. */
int lsvm_nearest_apart(const struct lsvm_ops *ops, const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                       const double *pair, double *out);

/* out[i] = <x, x> of row rows[i]. LSVM_BAD_ROW. */
int lsvm_nearest_squares(const struct lsvm_ops *ops, const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                         double *out);

/* Adds the n rows, in the order given, to total: m->d doubles that the caller has set. LSVM_BAD_ROW. */
int lsvm_nearest_total(const struct lsvm_ops *ops, const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                       double *total);

/* How two centres are found among n sampled rows: as many steps of Lloyd's algorithm between halves of the sample, then
 * at most as many between the rows nearest to each centre, of which neither gets fewer than least (1 .. n / 2). */
struct lsvm_nearest_steps {
    int64_t halves;
    int64_t nearest;
    int64_t least;
};

/* Two centres of the n >= 2 sampled rows: far holds the row farthest from their mean and the row farthest from that one
 * (the first of equally far ones), pair what the steps make of these; each 2 x m->d. In a step the rows of the lowest
 * projections on the difference of the centres, ties by order, give the mean pair[0], the others pair[1]. `work` holds
 * lsvm_nearest_pair_work(n, m->d) doubles. LSVM_BAD_ROW. */
int lsvm_nearest_pair(const struct lsvm_ops *ops, const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                      const struct lsvm_nearest_steps *steps, double *far, double *pair, double *work);

int64_t lsvm_nearest_pair_work(int64_t n, int64_t d);

/* child[i] = the child that row rows[i] belongs to. LSVM_BAD_ROW. */
int lsvm_nearest_choose(const struct lsvm_ops *ops, const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                        const struct lsvm_nearest_children *children, int32_t *child);

/* Sorts rows by child, stably; scratch holds n values, bounds n_children + 1: child c's rows end up at
 * bounds[c] .. bounds[c + 1] - 1. LSVM_BAD_CHILD, and then rows are as they were. */
int lsvm_nearest_group(int64_t *rows, const int32_t *child, int64_t n, int64_t n_children, int64_t *scratch,
                       int64_t *bounds);

/* cell[i] = the cell of row begin + i, for n rows. LSVM_BAD_ROW or LSVM_BAD_TREE. */
int lsvm_nearest_route(const struct lsvm_ops *ops, const struct lsvm_rows *m, int64_t begin, int64_t n,
                       const struct lsvm_nearest_tree *tree, int32_t *cell);

/* out[i] = a 64-bit hash of row begin + i: equal for rows of equal values (zeros of either sign, stored or not).
 * LSVM_BAD_ROW. */
int lsvm_nearest_hash(const struct lsvm_ops *ops, const struct lsvm_rows *m, int64_t begin, int64_t n, uint64_t seed,
                      uint64_t *out);

/* same[i] = 1 where rows a[i] and b[i] have equal values, else 0. LSVM_BAD_ROW. */
int lsvm_nearest_same(const struct lsvm_rows *m, const int64_t *a, const int64_t *b, int64_t n, uint8_t *same);

#endif
