/* level_unfused.h - the loops whose bits must not depend on the level, and the table of them. Included by
 * level_*_unfused.c only, which set a target without fused multiply-add and define LSVM_UNFUSED_OPS (name of the
 * table).
 *
 * A fused multiply-add rounds once where a product and a sum round twice, and setup.py lets the compiler fuse wherever
 * the target can. AVX2 by itself cannot, so it gives the bits of the baseline.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

/* What a pass calls for every row, or every value of one. */
#define INLINE static inline __attribute__((always_inline))

#include "nearest_hot.h"

#include "nearest_pair_hot.h"

#include "ml3_hot.h"

const struct lsvm_unfused_ops LSVM_UNFUSED_OPS = {
    .nearest_project = nearest_project,
    .nearest_apart = nearest_apart,
    .nearest_squares = nearest_squares,
    .nearest_total = nearest_total,
    .nearest_pair = nearest_pair,
    .nearest_choose = nearest_choose,
    .nearest_route = nearest_route,
    .nearest_hash = nearest_hash,
    .ml3_steps = ml3_steps,
    .ml3_fold_scale = ml3_fold_scale,
    .ml3_scores = ml3_scores,
};
