#include "conjugate.h"

#include "ops.h"

void lsvm_conjugate_look(const struct lsvm_ops *ops, struct lsvm_conjugate *p) { ops->conjugate_look(p); }

void lsvm_conjugate_turn(const struct lsvm_ops *ops, struct lsvm_conjugate *p, int anew)
{
    ops->conjugate_turn(p, anew);
}

void lsvm_conjugate_step(const struct lsvm_ops *ops, struct lsvm_conjugate *p, const float *image)
{
    ops->conjugate_step(p, image);
}
