/* The level that every processor of the architecture runs (SSE2 on x86-64, NEON on aarch64). */
#define LSVM_BYTES 16
#define LSVM_OPS lsvm_ops_baseline
#define LSVM_UNFUSED_OPS lsvm_unfused_ops_baseline
#include "level.h"
