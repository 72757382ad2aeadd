/* ops.h - the table of hot loops that each SIMD level provides. Internal to csrc: callers use kernels.h and smo.h. */
#ifndef LSVM_OPS_H
#define LSVM_OPS_H

#include "kernels.h"
#include "linear.h"
#include "sdca.h"
#include "sgd.h"
#include "smo.h"

enum { LSVM_TILE_ROWS = 6 };

struct lsvm_ops {
    int panel; /* rows of b in one packed panel */
    void (*products)(const struct lsvm_rows *a, const struct lsvm_panels *b, float *out, int64_t ldo, int squared);
    void (*transform)(const struct lsvm_kernel *kernel, const float *in, float *out, int64_t n);
    void (*matrix)(const struct lsvm_rows *a, const struct lsvm_panels *b, const struct lsvm_kernel *kernel, float *out,
                   int64_t ldo);
    void (*norms)(const struct lsvm_rows *a, float *out);
    void (*expansions)(const struct lsvm_rows *a, const struct lsvm_expansion *e, float *scratch, double *out);
    void (*accumulate)(const struct lsvm_rows *a, const struct lsvm_panels *b, const struct lsvm_kernel *kernel,
                       const double *coef, double *out);
    int (*smo_f32)(const struct lsvm_smo *problem, struct lsvm_smo_state *state, double tolerance);
    int (*smo_f64)(const struct lsvm_smo *problem, struct lsvm_smo_state *state, double tolerance);
    void (*multiply_f32)(const struct lsvm_smo *problem, const double *c, double *out);
    void (*multiply_f64)(const struct lsvm_smo *problem, const double *c, double *out);
    void (*linear_values)(const struct lsvm_linear *p, int64_t first, int64_t last, const double *w, double *out);
    void (*linear_add)(const struct lsvm_linear *p, const double *coef, double *w);
    void (*linear_curve)(const struct lsvm_linear *p, const double *curvature, const double *v, double *out);
    void (*linear_hessian)(const struct lsvm_linear *p, const double *curvature, struct lsvm_hessian *out);
    void (*sdca_pass)(const struct lsvm_linear *p, struct lsvm_sdca_pass *pass);
    void (*sgd_pass)(const struct lsvm_linear *p, const double *y, const double *cost, const int64_t *order, int64_t n,
                     struct lsvm_sgd *s);
};

#endif
