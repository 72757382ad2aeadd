/* conjugate.h - conjugate gradients of kernel ridge regressions on one kernel matrix K, preconditioned by landmarks.
 *
 * Each of m systems is (K + diag(ridge)) a = y on the rows of its mask; solvers/least_squares.py has the search, of
 * which these are the parts between two products with K. With G (landmarks x n), K nearly G'G, the preconditioner is
 *
 *     1 - M G' (level + G M G')^-1 G M,    M = diag(mask),
 *
 * level times the inverse of M G'G M + level. The caller factors level + G M G' = L L' for each system.
 *
 * Matrices are row-major float32, n is a multiple of LSVM_PAD, and what is beyond the rows of a system is 0 in y, mask
 * and G, and 1 in `ridge`. Sums over rows are float64 of float32 ones over some of them. The caller owns all arrays.
 * Nothing here allocates or fails.
 */
#ifndef LSVM_CONJUGATE_H
#define LSVM_CONJUGATE_H

#include <stdint.h>

#include "simd.h"

struct lsvm_conjugate {
    int64_t m, n, landmarks;       /* landmarks: a multiple of LSVM_PAD, with rows of 0 in G */
    const float *y, *ridge, *mask; /* m x n */
    const float *factor;           /* landmarks x n: G */
    const float *triangles;        /* m x landmarks x landmarks: L, with 0 on its diagonal */
    const float *inverses;         /* m x landmarks: 1 over the diagonal of L */
    float *a, *f;                  /* m x n: coefficients, and their products with K */
    float *rho, *direction;        /* m x n: y - Ka - ridge a, 0 outside the mask; where the next step goes */
    float *z, *share;              /* m x n, m x landmarks: scratch */
    double *size;                  /* m: rho times the preconditioner times rho */
    double *curvature;             /* m: of the direction, which a step is divided by; 0 and below lose a system */
    double *excess, *loss;         /* m: sum rho^2 / ridge, and sum ridge a^2, over the rows */
};

/* Finds rho, excess and loss from a and f. */
void lsvm_conjugate_look(const struct lsvm_ops *ops, struct lsvm_conjugate *p);

/* Finds size and the next direction from rho; with `anew` the direction before does not count. */
void lsvm_conjugate_turn(const struct lsvm_ops *ops, struct lsvm_conjugate *p, int anew);

/* Goes along the direction, given its product with K (m x n), and looks. A system whose curvature is not positive stays. */
void lsvm_conjugate_step(const struct lsvm_ops *ops, struct lsvm_conjugate *p, const float *image);

#endif
