#include "mixture.h"

#include "ops.h"

int64_t lsvm_mixture_scratch(int64_t components, int64_t d)
{
    return 2 * LSVM_MIXTURE_ROWS * d + components * (LSVM_MIXTURE_BLOCK / 2 + 1) + 1;
}

void lsvm_mixture_decide(const struct lsvm_ops *ops, const struct lsvm_mixture *m, const float *x, int64_t n,
                         double *scratch, double *out)
{
    ops->mixture_decide(m, x, n, scratch, out);
}
