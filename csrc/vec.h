/* vec.h - the few vector operations of a level that GCC's C vector extensions cannot spell: select, minimum and maximum
 * (no vector ?: in C), any, and a fast reciprocal; and denormal numbers. Included by level.h only. */
static inline vfloat select_f32(vint mask, vfloat a, vfloat b)
{
    return (vfloat)((mask & (vint)a) | (~mask & (vint)b));
}
static inline vdouble select_f64(vlong mask, vdouble a, vdouble b)
{
    return (vdouble)((mask & (vlong)a) | (~mask & (vlong)b));
}

#if defined(__x86_64__)
#include <immintrin.h>
#if LSVM_BYTES == 64
#define VEC(op, type) _mm512_##op##_##type
static inline int any_f32(vint mask) { return _mm512_movepi32_mask((__m512i)mask) != 0; }
static inline int any_f64(vlong mask) { return _mm512_movepi64_mask((__m512i)mask) != 0; }
#elif LSVM_BYTES == 32
#define VEC(op, type) _mm256_##op##_##type
static inline int any_f32(vint mask) { return _mm256_movemask_ps((__m256)mask) != 0; }
static inline int any_f64(vlong mask) { return _mm256_movemask_pd((__m256d)mask) != 0; }
#else
#define VEC(op, type) _mm_##op##_##type
static inline int any_f32(vint mask) { return _mm_movemask_ps((__m128)mask) != 0; }
static inline int any_f64(vlong mask) { return _mm_movemask_pd((__m128d)mask) != 0; }
#endif
/* GCC takes three steps to convert these. */
#if LSVM_BYTES == 64
static inline vdouble widen_f32(vhalf a) { return (vdouble)_mm512_cvtps_pd((__m256)a); }
#else
static inline vdouble widen_f32(vhalf a) { return __builtin_convertvector(a, vdouble); }
#endif
/* Until `unflushed` gets what this returns, numbers below the least normal one are 0 in this thread, read and written:
 * the machine takes a hundred cycles for each of them. */
static inline unsigned flushed(void)
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
    return before;
}
static inline void unflushed(unsigned before) { _mm_setcsr(before); }
static inline vfloat min_f32(vfloat a, vfloat b) { return (vfloat)VEC(min, ps)(a, b); }
static inline vfloat max_f32(vfloat a, vfloat b) { return (vfloat)VEC(max, ps)(a, b); }
static inline vdouble min_f64(vdouble a, vdouble b) { return (vdouble)VEC(min, pd)(a, b); }
static inline vdouble max_f64(vdouble a, vdouble b) { return (vdouble)VEC(max, pd)(a, b); }
/* Relative error below 4e-4: enough to rank working-set partners, where a division would dominate the pass. */
#if LSVM_BYTES == 64
static inline vfloat reciprocal_f32(vfloat a) { return (vfloat)_mm512_rcp14_ps((__m512)a); }
#else
static inline vfloat reciprocal_f32(vfloat a) { return (vfloat)VEC(rcp, ps)(a); }
#endif
#else
static inline vdouble widen_f32(vhalf a) { return __builtin_convertvector(a, vdouble); }
static inline unsigned flushed(void) { return 0; }
static inline void unflushed(unsigned before) { (void)before; }
static inline vfloat min_f32(vfloat a, vfloat b) { return select_f32(a < b, a, b); }
static inline vfloat max_f32(vfloat a, vfloat b) { return select_f32(a > b, a, b); }
static inline vdouble min_f64(vdouble a, vdouble b) { return select_f64(a < b, a, b); }
static inline vdouble max_f64(vdouble a, vdouble b) { return select_f64(a > b, a, b); }
static inline vfloat reciprocal_f32(vfloat a) { return 1.0f / a; }
static inline int any_f32(vint mask)
{
    int any = 0;
    for (int l = 0; l < LSVM_LANES; l++)
        any |= mask[l];
    return any;
}
static inline int any_f64(vlong mask)
{
    int64_t any = 0;
    for (int l = 0; l < LSVM_LANES / 2; l++)
        any |= mask[l];
    return any != 0;
}
#endif
static inline vdouble reciprocal_f64(vdouble a) { return 1.0 / a; }
