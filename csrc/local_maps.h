/* local_maps.h - values of locally linear functions with a map for each feature. Single precision, dense rows.
 *
 * For row x and function m, with anchor c, weights w and gamma g,
 *
 *     value_m(x) = sum_j h(|x_j - c_j|) (x_j - c_j) w_j,
 *
 * h one of the maps below. All functions of a call have one kind of map; each has its own gamma. What a row gets from a
 * function depends on the two alone, not on the block they came in. Anchors are in units of the features, gamma in
 * those of the map. Nothing here allocates or fails; the caller owns every buffer.
 */
#ifndef LSVM_LOCAL_MAPS_H
#define LSVM_LOCAL_MAPS_H

#include "rows.h"
#include "simd.h"

/* 2^(-g r), 2^(-g r^2), max(0, 1 - g r), max(0, 1 - g r^2), 1 */
enum { LSVM_MAP_EXPONENTIAL = 0, LSVM_MAP_GAUSSIAN = 1, LSVM_MAP_LINEAR = 2, LSVM_MAP_SQUARE = 3, LSVM_MAP_PLAIN = 4 };

struct lsvm_local_maps {
    int kind;
    int64_t panels, d;
    const float *anchors; /* panels of lsvm_panel_width functions, as lsvm_pack makes them, LSVM_ALIGN aligned */
    const float *weights; /* likewise */
    const float *gamma;   /* panels * width, LSVM_ALIGN aligned; any finite number in the padding */
};

/* out[i*ldo + m] = value_m(row i of a), for all m < panels * width: 0 in the padding. out: LSVM_ALIGN aligned. */
void lsvm_local_values(const struct lsvm_ops *ops, const struct lsvm_rows *a, const struct lsvm_local_maps *maps,
                       float *out, int64_t ldo);

#endif
