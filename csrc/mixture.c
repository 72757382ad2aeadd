#include "mixture.h"

#include "ops.h"

void lsvm_mixture_values(const struct lsvm_ops *ops, const struct lsvm_mixture *m, const float *x, int64_t n,
                         double *scratch, double *logs, double *values)
{
    ops->mixture_values(m, x, n, scratch, logs, values);
}
