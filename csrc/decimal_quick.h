/* decimal_quick.h - short decimals and indices of a text, without a branch on how many digits they have.
 *
 * The loops of decimal.h end where the digits end. Whether a value has eight digits or nine is what no processor can
 * predict, and a wrong guess costs as much as all the arithmetic. Here a load of 16 bytes shows the point and the end,
 * and two loads that end where the number ends bring its digits. Needs SSE2, which every x86-64 has; elsewhere
 * LSVM_QUICK is 0, and the functions say that they know no number. What they refuse, decimal.h decides.
 */
#ifndef LSVM_DECIMAL_QUICK_H
#define LSVM_DECIMAL_QUICK_H

#include <stddef.h>
#include <stdint.h>

#include "decimal.h"

/* Bytes before and from a number's first byte on that these functions may look at */
enum { LSVM_QUICK_BEFORE = 15, LSVM_QUICK_AFTER = 32 };

#ifdef __x86_64__
#include <emmintrin.h>
enum { LSVM_QUICK = 1 };

/* The 16 bytes from the n-th on are 0 but for the last n */
static const unsigned char lsvm_last[32] = {[16] = 255, 255, 255, 255, 255, 255, 255, 255,
                                            255,        255, 255, 255, 255, 255, 255, 255};

static inline __m128i lsvm_bytes(const void *p) { return _mm_loadu_si128((const __m128i *)p); }

/* Bit i: byte i is a digit. '0' to '9' become the ten smallest signed bytes. */
static inline unsigned lsvm_digits_at(__m128i text)
{
    __m128i moved = _mm_add_epi8(text, _mm_set1_epi8((char)(128 - '0')));
    return (unsigned)_mm_movemask_epi8(_mm_cmplt_epi8(moved, _mm_set1_epi8(10 - 128)));
}

static inline unsigned lsvm_equal(__m128i text, char c)
{
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8(c)));
}

/* Two numbers of eight digits in the lower half: the last `count` of these 16 characters, and zeros before them */
static inline __m128i lsvm_join_digits(__m128i characters, size_t count)
{
    __m128i digits = _mm_and_si128(_mm_sub_epi8(characters, _mm_set1_epi8('0')), lsvm_bytes(lsvm_last + count));
    __m128i factor = _mm_set1_epi16(10 << 8 | 1), pairs, fours;
    __asm__("" : "+x"(factor)); /* GCC would make four shifts and sums of this multiplication */
    /* (first + 256 second) (2560 + 1) = first + 256 (10 first + second) modulo 2^16 */
    pairs = _mm_srli_epi16(_mm_mullo_epi16(digits, factor), 8);
    fours = _mm_madd_epi16(pairs, _mm_set1_epi32(1 << 16 | 100));
    return _mm_madd_epi16(_mm_packs_epi32(fours, fours), _mm_set1_epi32(1 << 16 | 10000));
}

/*
 * The number of `count` digits, `fraction` of them after a point, before `end`. Digits in front of the point come from
 * a load that ends one byte earlier. A number without a point ends one byte after its digits: 12 is read as 12.
 */
static inline double lsvm_quick_double(const char *end, size_t count, size_t fraction, unsigned negative)
{
    static const double parts[2][2] = {{1e8, 1}, {-1e8, -1}};
    __m128i before = lsvm_bytes(end - 17), after = lsvm_bytes(end - 16);
    __m128d value;
    after = _mm_and_si128(_mm_xor_si128(after, before), lsvm_bytes(lsvm_last + fraction));
    value = _mm_cvtepi32_pd(lsvm_join_digits(_mm_xor_si128(after, before), count));
    value = _mm_mul_pd(value, _mm_loadu_pd(parts[negative]));
    /* Below 10^15, as the power is: both are exact, and so their quotient is correctly rounded. */
    return (_mm_cvtsd_f64(value) + _mm_cvtsd_f64(_mm_unpackhi_pd(value, value))) / lsvm_power10[fraction];
}

/*
 * The number [-]digits[.digits] at p, less than 16 bytes in all: *out is its correctly rounded double. Returns its end,
 * where the caller has to find the end of a token; NULL for what is no such number.
 */
static inline const char *lsvm_decimal_quick(const char *p, double *out)
{
    const __m128i text = lsvm_bytes(p);
    const unsigned points = lsvm_equal(text, '.'), negative = *p == '-';
    const unsigned others = lsvm_digits_at(text) ^ (negative ^ 0xffff); /* that are no digits, but the sign */
    const unsigned rest = others ^ (points & -points);                  /* but the first point */
    size_t point, end, last;
    if (!rest)
        return NULL;
    point = (unsigned)__builtin_ctz(others); /* the end, if there is none */
    end = (unsigned)__builtin_ctz(rest);
    last = end + (end == point); /* a sum, which no compiler makes a branch of */
    if (last == negative + 1)    /* no digit */
        return NULL;
    *out = lsvm_quick_double(p + last, last - negative - 1, last - point - 1, negative);
    return p + end;
}

/* As lsvm_decimal_quick, for digits:[-]digits[.digits] of less than 32 bytes, 15 digits at most on either side */
static inline const char *lsvm_entry_quick(const char *p, int64_t *index, double *out)
{
    const __m128i text = lsvm_bytes(p), more = lsvm_bytes(p + 16);
    const unsigned points = lsvm_equal(text, '.') | lsvm_equal(more, '.') << 16;
    const unsigned others = ~(lsvm_digits_at(text) | lsvm_digits_at(more) << 16);
    const unsigned colon = others & -others, sign = colon << 1 & others & ~points;
    const unsigned values = others ^ (colon | sign), rest = values ^ (points & -points);
    size_t middle, point, end, last, count;
    unsigned negative;
    int64_t halves;
    if (!rest || !values)
        return NULL;
    middle = (unsigned)__builtin_ctz(colon);
    point = (unsigned)__builtin_ctz(values);
    end = (unsigned)__builtin_ctz(rest);
    last = end + (end == point);
    negative = p[middle + 1] == '-';
    count = last - middle - negative - 2;
    if (p[middle] != ':' || negative != (sign != 0) || middle - 1 >= 15 || count - 1 >= 15)
        return NULL;
    halves = _mm_cvtsi128_si64(lsvm_join_digits(lsvm_bytes(p + middle - 16), middle));
    *index = (halves & UINT32_MAX) * 100000000 + (halves >> 32);
    *out = lsvm_quick_double(p + last, count, last - point - 1, negative);
    return p + end;
}
#else
enum { LSVM_QUICK = 0 };

static inline const char *lsvm_decimal_quick(const char *p, double *out)
{
    (void)p;
    (void)out;
    return NULL;
}

static inline const char *lsvm_entry_quick(const char *p, int64_t *index, double *out)
{
    (void)index;
    return lsvm_decimal_quick(p, out);
}
#endif

#endif
