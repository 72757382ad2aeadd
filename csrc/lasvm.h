/* lasvm.h - one online epoch of LaSVM (Bordes, Ertekin, Weston, Bottou, JMLR 6, 2005) on the kernel dual of smo.h, with
 * an offset.
 *
 * An expansion S is a set of rows whose gradients g = y - Kb are kept up to date; all others have b = 0. Each row of the
 * epoch is processed: it enters S if it violates optimality together with a member of S, and the pair takes a step.
 * Then S is reprocessed: its most violating pair takes a step, and members that are 0 and cannot move leave it. Both
 * take time in proportion to |S|. What is left to do after the epochs is lsvm_smo_solve from there.
 *
 * The caller owns all arrays; working arrays are allocated and freed again.
 */
#ifndef LSVM_LASVM_H
#define LSVM_LASVM_H

#include "smo.h"

/* Rows to visit, in this order: indices below problem->n, with lo < hi. tolerance: pairs whose gradients differ by less
 * do not violate. */
struct lsvm_epoch {
    const int64_t *order;
    int64_t n;
    const double *lo, *hi; /* problem->n */
    double tolerance;
};

/* From b (feasible, sum b = 0; overwritten). S begins with the rows whose b is not 0, and the first LSVM_SEEDS rows of
 * either side in the order. *steps receives the steps on pairs. LSVM_OK, LSVM_NO_MEMORY or LSVM_INTERRUPTED. */
#define LSVM_SEEDS 5
int lsvm_lasvm_epoch(const struct lsvm_smo *problem, const struct lsvm_epoch *epoch, double *b, int64_t *steps);

#endif
