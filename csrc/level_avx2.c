#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#define LSVM_BYTES 32
#define LSVM_OPS lsvm_ops_avx2
#define LSVM_UNFUSED_OPS lsvm_unfused_ops_avx2
#include "level.h"
#else
typedef int lsvm_no_avx2_here;
#endif
