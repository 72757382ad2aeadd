/* level.h - one SIMD level: the vector types, every hot loop, and the table of them. Included by level_*.c only, which
 * define LSVM_BYTES (vector width), LSVM_OPS (name of the table) and LSVM_UNFUSED_OPS (of the one that goes with it,
 * see level_unfused.h) after setting the compiler's target. */
#include <float.h>
#include <string.h>

#include "ops.h"

#define LSVM_LANES (LSVM_BYTES / 4)

typedef float vfloat __attribute__((vector_size(LSVM_BYTES), may_alias));
typedef int32_t vint __attribute__((vector_size(LSVM_BYTES), may_alias));
typedef double vdouble __attribute__((vector_size(LSVM_BYTES), may_alias));
typedef int64_t vlong __attribute__((vector_size(LSVM_BYTES), may_alias));
typedef float vhalf __attribute__((vector_size(LSVM_BYTES / 2), may_alias)); /* as many floats as a vdouble has lanes */

#include "vec.h"

#include "kernels_hot.h"

#include "conjugate_hot.h"

#include "local_maps_hot.h"

#include "holdout_hot.h"

#include "cholesky_hot.h"

#define REAL float
#define VREAL vfloat
#define VMASK vint
#define NAME(stem) stem##_f32
#include "smo_hot.h"

#include "smo_terms_hot.h"
#undef REAL
#undef VREAL
#undef VMASK
#undef NAME

#define REAL double
#define VREAL vdouble
#define VMASK vlong
#define NAME(stem) stem##_f64
#include "smo_hot.h"

#include "smo_terms_hot.h"

#include "linear_hot.h"

#include "mixture_hot.h"

#include "sdca_hot.h"

#include "sag_hot.h"

#include "sgd_hot.h"

extern const struct lsvm_unfused_ops LSVM_UNFUSED_OPS;

const struct lsvm_ops LSVM_OPS = {
    .unfused = &LSVM_UNFUSED_OPS,
    .products = products,
    .transform = transform,
    .matrix = matrix,
    .norms = norms,
    .expansions = expansions,
    .accumulate = accumulate,
    .weighted_sums = weighted_sums,
    .symmetric_products = symmetric_products,
    .conjugate_look = conjugate_look,
    .conjugate_turn = conjugate_turn,
    .conjugate_step = conjugate_step,
    .local_values = local_values,
    .holdout_row = holdout_row,
    .cholesky = cholesky,
    .panel = 2 * LSVM_LANES,
    .smo_f32 = smo_f32,
    .smo_f64 = smo_f64,
    .smo_terms_f32 = smo_terms_f32,
    .smo_terms_f64 = smo_terms_f64,
    .smo_ridge_f32 = smo_ridge_f32,
    .smo_ridge_f64 = smo_ridge_f64,
    .multiply_f32 = multiply_f32,
    .multiply_f64 = multiply_f64,
    .linear_values = linear_values,
    .linear_add = linear_add,
    .linear_curve = linear_curve,
    .linear_hessian = linear_hessian,
    .mixture_decide = mixture_decide,
    .sdca_pass = sdca_pass,
    .sag_pass = sag_pass,
    .sgd_pass = sgd_pass,
};
