/* ml3.h - multiclass latent locally linear SVMs (Fornoni, Caputo, Orabona 2013): scores, and stochastic training.
 *
 * A class has m linear models W_r (m x (d + 1), the last column the bias: every row x has a 1 appended), and its score
 * is
 *
 *     s_r(x) = max { b'W_r x : b >= 0, |b|_p <= 1 } = |(W_r x)_+|_q,  1/p + 1/q = 1.
 *
 * Training lowers lambda/2 |W|^2 + 1/n sum_i w_i [1 + max_{r != y_i} s_r(x_i) - s_{y_i}(x_i)]_+ by rounds; in each of
 * them s_{y_i} is replaced by b'W_{y_i} x_i with the b that was best for the weights before the round, and the rows are
 * visited once by Pegasos.
 *
 * The weights of all models lie side by side, one line of `width` floats a feature, so that a row is multiplied with
 * all of them in one pass that reads only the lines of its nonzero features. Every sum runs over the features in
 * ascending order, in each model by itself, without fused operations: results depend neither on the SIMD level nor on
 * whether a row is dense or sparse.
 *
 * Rows and weights are float32, scores and losses float64. Indices of sparse rows ascend. The caller owns all arrays;
 * what a call needs to work it allocates and frees again. Functions that return int return a code of status.h, those
 * without a return code cannot fail.
 */
#ifndef LSVM_ML3_H
#define LSVM_ML3_H

#include "rows.h"
#include "simd.h"
#include "status.h"

enum { LSVM_ML3_LANES = 8 };

/* The weights are scale * weights; model k of class r is column r * models + k. */
struct lsvm_ml3_model {
    int64_t classes, models, features; /* at least 1, 1, 0; the bias is not counted */
    int64_t width;                     /* classes * models rounded up to LSVM_ML3_LANES */
    double q;                          /* at least 1; INFINITY: the largest of the models */
    float *weights;                    /* (features + 1) x width, and LSVM_ML3_LANES more that stay 0 */
    double scale;
};

/* What training needs besides the model, and where it stands. */
struct lsvm_ml3_training {
    const int32_t *codes;  /* class of every row */
    const double *weight;  /* w of every row */
    double lambda, radius; /* after every step |W| is at most radius */
    double steps;          /* done so far, as the step size 1 / (lambda (steps + 1)) counts them */
    double square;         /* |weights|^2, before scaling */
    double p;              /* of the initial epoch's random b */
    uint64_t random;       /* state of their generator */
    const float *before;   /* weights before the round, up to a positive factor: classes x (features + 1) x models, and
                            * 2 * LSVM_ML3_LANES more; NULL in the initial epoch, where every row has a random b for
                            * all classes */
    float *total, *late;   /* for the average, each of the shape of weights; NULL: no average is kept */
    double sum;            /* the sum over the steps of the scaled weights is total + sum * weights - late: all 0 where
                            * it begins, total alone after lsvm_ml3_fold_scale */
};

/* Visits rows order[0] .. order[n - 1], one Pegasos step each. LSVM_OK, LSVM_NO_MEMORY or LSVM_BAD_ROW. */
int lsvm_ml3_steps(const struct lsvm_ops *ops, struct lsvm_ml3_model *model, struct lsvm_ml3_training *training,
                   const struct lsvm_rows *rows, const int64_t *order, int64_t n);

/* Multiplies the scale into the weights, and brings the total up to date. */
void lsvm_ml3_fold_scale(const struct lsvm_ops *ops, struct lsvm_ml3_model *model, struct lsvm_ml3_training *training);

/* out (n x classes) = scores of rows begin .. begin + n - 1. LSVM_OK, LSVM_NO_MEMORY or LSVM_BAD_ROW. */
int lsvm_ml3_scores(const struct lsvm_ops *ops, const struct lsvm_ml3_model *model, const struct lsvm_rows *rows,
                    int64_t begin, int64_t n, double *out);

#endif
