#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma")
#define LSVM_BYTES 64
#define LSVM_OPS lsvm_ops_avx512
#define LSVM_UNFUSED_OPS lsvm_unfused_ops_avx2
#include "level.h"
#else
typedef int lsvm_no_avx512_here;
#endif
