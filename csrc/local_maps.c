#include "local_maps.h"

#include "ops.h"

void lsvm_local_values(const struct lsvm_ops *ops, const struct lsvm_rows *a, const struct lsvm_local_maps *maps,
                       float *out, int64_t ldo)
{
    ops->local_values(a, maps, out, ldo);
}
