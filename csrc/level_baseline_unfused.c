#define LSVM_UNFUSED_OPS lsvm_unfused_ops_baseline
#include "level_unfused.h"
