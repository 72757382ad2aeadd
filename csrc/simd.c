#include "simd.h"

extern const struct lsvm_ops lsvm_ops_baseline;
#if defined(__x86_64__)
extern const struct lsvm_ops lsvm_ops_avx2, lsvm_ops_avx512;
#endif

int lsvm_simd_best(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("fma"))
        return LSVM_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return LSVM_AVX2;
#endif
    return LSVM_BASELINE;
}

const struct lsvm_ops *lsvm_ops_at(int level)
{
    if (level < LSVM_BASELINE || level > lsvm_simd_best())
        return NULL;
#if defined(__x86_64__)
    if (level == LSVM_AVX512)
        return &lsvm_ops_avx512;
    if (level == LSVM_AVX2)
        return &lsvm_ops_avx2;
#endif
    return &lsvm_ops_baseline;
}
