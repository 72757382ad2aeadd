#include "ml3.h"

#include "ops.h"

int lsvm_ml3_steps(const struct lsvm_ops *ops, struct lsvm_ml3_model *model, struct lsvm_ml3_training *training,
                   const struct lsvm_rows *rows, const int64_t *order, int64_t n)
{
    return ops->unfused->ml3_steps(model, training, rows, order, n);
}

void lsvm_ml3_fold_scale(const struct lsvm_ops *ops, struct lsvm_ml3_model *model, struct lsvm_ml3_training *training)
{
    ops->unfused->ml3_fold_scale(model, training);
}

int lsvm_ml3_scores(const struct lsvm_ops *ops, const struct lsvm_ml3_model *model, const struct lsvm_rows *rows,
                    int64_t begin, int64_t n, double *out)
{
    return ops->unfused->ml3_scores(model, rows, begin, n, out);
}
