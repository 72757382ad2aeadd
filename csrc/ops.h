/* ops.h - the tables of hot loops that each SIMD level provides: how csrc chooses its level, and the only way. Internal
 * to csrc: callers get a table from simd.h and hand it to the functions of the other headers, which say what each loop
 * does, in which units, on whose memory, and which codes it returns.
 */
#ifndef LSVM_OPS_H
#define LSVM_OPS_H

#include "conjugate.h"
#include "kernels.h"
#include "linear.h"
#include "local_maps.h"
#include "mixture.h"
#include "ml3.h"
#include "nearest.h"
#include "sdca.h"
#include "sag.h"
#include "sgd.h"
#include "smo.h"

enum { LSVM_TILE_ROWS = 6 };

/* The loops of level_unfused.h: the same bits at every level. */
struct lsvm_unfused_ops {
    int (*nearest_project)(const struct lsvm_rows *m, const int64_t *rows, int64_t n, const double *direction,
                           double *out);
    int (*nearest_apart)(const struct lsvm_rows *m, const int64_t *rows, int64_t n, const double *pair, double *out);
    int (*nearest_squares)(const struct lsvm_rows *m, const int64_t *rows, int64_t n, double *out);
    int (*nearest_total)(const struct lsvm_rows *m, const int64_t *rows, int64_t n, double *total);
    int (*nearest_pair)(const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                        const struct lsvm_nearest_steps *steps, double *far, double *pair, double *work);
    int (*nearest_choose)(const struct lsvm_rows *m, const int64_t *rows, int64_t n,
                          const struct lsvm_nearest_children *children, int32_t *child);
    int (*nearest_route)(const struct lsvm_rows *m, int64_t begin, int64_t n, const struct lsvm_nearest_tree *tree,
                         int32_t *cell);
    int (*nearest_hash)(const struct lsvm_rows *m, int64_t begin, int64_t n, uint64_t seed, uint64_t *out);
    int (*ml3_steps)(struct lsvm_ml3_model *model, struct lsvm_ml3_training *training, const struct lsvm_rows *rows,
                     const int64_t *order, int64_t n);
    void (*ml3_fold_scale)(struct lsvm_ml3_model *model, struct lsvm_ml3_training *training);
    int (*ml3_scores)(const struct lsvm_ml3_model *model, const struct lsvm_rows *rows, int64_t begin, int64_t n,
                      double *out);
};

struct lsvm_ops {
    const struct lsvm_unfused_ops *unfused;
    int panel; /* rows of b in one packed panel */
    void (*products)(const struct lsvm_points *a, const struct lsvm_panels *b, float *out, int64_t ldo, int base);
    void (*transform)(const struct lsvm_kernel *kernel, const float *in, float *out, int64_t n);
    void (*matrix)(const struct lsvm_points *a, const struct lsvm_panels *b, const struct lsvm_kernel *kernel,
                   float *out, int64_t ldo);
    void (*norms)(const struct lsvm_rows *a, float *out);
    void (*expansions)(const struct lsvm_points *a, const struct lsvm_expansion *e, float *scratch, double *out);
    void (*accumulate)(const struct lsvm_points *a, const struct lsvm_panels *b, const struct lsvm_kernel *kernel,
                       const double *coef, double *out);
    void (*weighted_sums)(const float *w, int64_t ld, const float *x, int64_t m, const float *columns, int64_t n,
                          int64_t d, double *out);
    void (*symmetric_products)(const float *k, int64_t n, int64_t first, int64_t last, const float *x, int64_t m,
                               float *out);
    void (*conjugate_look)(struct lsvm_conjugate *p);
    void (*conjugate_turn)(struct lsvm_conjugate *p, int anew);
    void (*conjugate_step)(struct lsvm_conjugate *p, const float *image);
    void (*local_values)(const struct lsvm_rows *a, const struct lsvm_local_maps *maps, float *out, int64_t ldo);
    double (*holdout_row)(float *row, const float *by_kernel, float times, int64_t t, double *columns);
    int (*cholesky)(const float *k, float ridge, float *u, int64_t n, int64_t ld);
    lsvm_smo_loop smo_f32, smo_f64, smo_terms_f32, smo_terms_f64, smo_ridge_f32, smo_ridge_f64;
    void (*multiply_f32)(const struct lsvm_smo *problem, const double *c, double *out);
    void (*multiply_f64)(const struct lsvm_smo *problem, const double *c, double *out);
    void (*linear_values)(const struct lsvm_linear *p, int64_t first, int64_t last, const double *w, double *out);
    void (*linear_add)(const struct lsvm_linear *p, const double *coef, double *w);
    void (*linear_curve)(const struct lsvm_linear *p, const double *curvature, const double *v, double *out);
    void (*linear_hessian)(const struct lsvm_linear *p, const double *curvature, struct lsvm_hessian *out);
    void (*mixture_decide)(const struct lsvm_mixture *m, const float *x, int64_t n, double *scratch, double *out);
    void (*sdca_pass)(const struct lsvm_linear *p, struct lsvm_sdca_pass *pass);
    void (*sgd_pass)(const struct lsvm_linear *p, const double *y, const double *cost, const int64_t *order, int64_t n,
                     struct lsvm_sgd *s);
    double (*sag_pass)(const struct lsvm_linear *p, const double *y, const double *cost, const int64_t *order,
                       int64_t n, struct lsvm_sag *s);
};

#endif
