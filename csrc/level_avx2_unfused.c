/* AVX2 without fma, for the levels avx2 and avx512: see level_unfused.h. */
#if defined(__x86_64__)
#pragma GCC target("avx2")
#define LSVM_UNFUSED_OPS lsvm_unfused_ops_avx2
#include "level_unfused.h"
#else
typedef int lsvm_no_unfused_avx2_here;
#endif
