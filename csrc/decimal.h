/* decimal.h - decimal text to binary floating point and back, the same in every locale.
 *
 * Reading: lsvm_decimal_scan() cuts a number out of a text, lsvm_decimal_to_float() and lsvm_decimal_to_double()
 * convert it when that takes a few operations, and lsvm_decimal_slow() converts the rare rest. A float is always the
 * float32 nearest to the correctly rounded double of the text: what (float)strtod(text, NULL) gives in the C locale.
 * Writing: lsvm_decimal_write() gives the shortest text that reads back as the same float.
 *
 * Only lsvm_decimal_slow() allocates, and frees again.
 * A text handed in must hold, after the number, a byte that cannot be part of one (the reader's newline).
 * All functions are static; the file that includes this one defines _GNU_SOURCE first (for strtod_l).
 */
#ifndef LSVM_DECIMAL_H
#define LSVM_DECIMAL_H

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#include "status.h"

/* 10^22 is the last power of ten that a double holds exactly; 19 digits always fit 64 bits */
enum { LSVM_EXACT_POWER = 22, LSVM_DIGITS = 19 };

static const double lsvm_power10[LSVM_EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

struct lsvm_decimal {
    uint64_t digits;  /* the first 19 significant digits */
    int64_t exponent; /* |value| = digits * 10^exponent */
    int negative;
    int cut; /* 1 when a digit other than 0 beyond the 19th was cut off */
};

static inline unsigned lsvm_digit(char c) { return (unsigned)(unsigned char)c - '0'; }

/* More than 19 digits: keep the first significant ones. `first` is the first digit or point, `count` the digits in
 * all. */
static __attribute__((noinline)) void lsvm_decimal_cut(const char *first, int64_t count, struct lsvm_decimal *out)
{
    int kept = 0;
    out->digits = 0;
    for (; count > 0; first++) {
        unsigned digit = lsvm_digit(*first);
        if (digit > 9) /* the point */
            continue;
        count--;
        if (kept < LSVM_DIGITS) {
            out->digits = 10 * out->digits + digit;
            kept += out->digits != 0;
        } else {
            out->exponent++;
            out->cut |= digit != 0;
        }
    }
}

/* Adds the [eE][+-]digits at p to *exponent; returns its end, or p when it is not a whole exponent. */
static inline const char *lsvm_decimal_exponent(const char *p, int64_t *exponent)
{
    const char *q = p + 1;
    int negative = *q == '-';
    int64_t value = 0;
    q += *q == '-' || *q == '+';
    if (lsvm_digit(*q) > 9)
        return p;
    for (; lsvm_digit(*q) <= 9; q++)
        if (value < INT64_C(1) << 50) /* beyond any text's length times ten: the sum cannot overflow or come back */
            value = 10 * value + lsvm_digit(*q);
    *exponent += negative ? -value : value;
    return q;
}

/* Cuts [+-]digits[.digits][e[+-]digits] out of the text at p. Returns the number's end, or NULL when there is none. */
static inline const char *lsvm_decimal_scan(const char *p, struct lsvm_decimal *out)
{
    const char *first, *point;
    uint64_t digits = 0;
    int64_t count;
    out->negative = *p == '-';
    out->cut = 0;
    out->exponent = 0;
    p += *p == '-' || *p == '+';
    first = p;
    for (; lsvm_digit(*p) <= 9; p++)
        digits = 10 * digits + lsvm_digit(*p);
    count = p - first;
    if (*p == '.') {
        point = ++p;
        for (; lsvm_digit(*p) <= 9; p++)
            digits = 10 * digits + lsvm_digit(*p);
        out->exponent = point - p;
        count += p - point;
    }
    if (count == 0)
        return NULL;
    out->digits = digits;
    if (*p == 'e' || *p == 'E')
        p = lsvm_decimal_exponent(p, &out->exponent);
    if (count > LSVM_DIGITS)
        lsvm_decimal_cut(first, count, out);
    return p;
}

/* value * 10^exponent, with one rounding for every 22 powers */
static inline double lsvm_scale10(double value, int64_t exponent)
{
    for (; exponent > LSVM_EXACT_POWER; exponent -= LSVM_EXACT_POWER)
        value *= lsvm_power10[LSVM_EXACT_POWER];
    for (; exponent < -LSVM_EXACT_POWER; exponent += LSVM_EXACT_POWER)
        value /= lsvm_power10[LSVM_EXACT_POWER];
    return exponent < 0 ? value / lsvm_power10[-exponent] : value * lsvm_power10[exponent];
}

/* Digits and power are exact doubles, so that their one product or quotient is correctly rounded (Clinger 1990). */
static inline int lsvm_decimal_exact(const struct lsvm_decimal *v)
{
    return v->digits <= UINT64_C(1) << 53 && v->exponent >= -LSVM_EXACT_POWER && v->exponent <= LSVM_EXACT_POWER &&
           !v->cut;
}

/*
 * Up to five roundings, each within half an ulp: a double that far from the value rounds to the same float as the
 * correct double does, unless a border between two floats lies within the error. 1e-15 is 9 half-ulps, the error of
 * the correct double included. Returns 0 when a border is that near (about once in 10^7 numbers).
 */
static inline int lsvm_decimal_near(const struct lsvm_decimal *v, float *out)
{
    double value;
    float below, above;
    if (v->exponent < -3 * LSVM_EXACT_POWER || v->exponent > 3 * LSVM_EXACT_POWER)
        return 0;
    value = lsvm_scale10((double)v->digits, v->exponent);
    below = (float)(value * (1 - 1e-15));
    above = (float)(value * (1 + 1e-15));
    *out = v->negative ? -below : below;
    return below == above;
}

/* Returns 1 with the float in *out (infinite when too large), or 0 when lsvm_decimal_slow() has to decide. */
static inline int lsvm_decimal_to_float(const struct lsvm_decimal *v, float *out)
{
    double value;
    if (!lsvm_decimal_exact(v))
        return lsvm_decimal_near(v, out);
    value = (double)(int64_t)v->digits;
    value = v->exponent <= 0 ? value / lsvm_power10[-v->exponent] : value * lsvm_power10[v->exponent];
    *out = (float)copysign(value, 0.5 - v->negative);
    return 1;
}

/* As lsvm_decimal_to_float, for the correctly rounded double. 1.000000000000000000e+00 is exact without its zeros. */
static inline int lsvm_decimal_to_double(const struct lsvm_decimal *number, double *out)
{
    struct lsvm_decimal v = *number;
    double value;
    for (; v.digits > UINT64_C(1) << 53 && v.digits % 10 == 0; v.exponent++)
        v.digits /= 10;
    if (!lsvm_decimal_exact(&v))
        return 0;
    value = lsvm_scale10((double)v.digits, v.exponent);
    *out = v.negative ? -value : value;
    return 1;
}

/* The correctly rounded double of the number in [begin, end), by the C library in the C locale. LSVM_OK or
 * LSVM_NO_MEMORY. */
static __attribute__((noinline)) int lsvm_decimal_slow(const char *begin, const char *end, double *out)
{
    char small[128], *copy = small;
    size_t size = (size_t)(end - begin);
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    int code = LSVM_NO_MEMORY;
    if (size >= sizeof small)
        copy = malloc(size + 1);
    if (!copy || !plain)
        goto out;
    memcpy(copy, begin, size);
    copy[size] = '\0';
    *out = strtod_l(copy, NULL, plain);
    code = LSVM_OK;
out:
    if (plain)
        freelocale(plain);
    if (copy != small)
        free(copy);
    return code;
}

/* floor(log10(value)) of a positive float, or one less: 1233/4096 is log10(2) from below */
static inline int lsvm_decimal_power(float value)
{
    double wide = value; /* no float is subnormal as a double */
    uint64_t bits;
    memcpy(&bits, &wide, sizeof bits);
    return (int)(((int64_t)(bits >> 52) - 1023 + 4096) * 1233 / 4096) - 1233;
}

/* The decimal with `places` (1 to 9) significant digits nearest to value > 0, whose lsvm_decimal_power() is `power`. */
static inline struct lsvm_decimal lsvm_decimal_round(float value, int power, int places)
{
    struct lsvm_decimal out = {0, power - places + 1, 0, 0};
    double scaled = lsvm_scale10((double)value, -out.exponent);
    if (scaled + 0.5 >= lsvm_power10[places])
        scaled = lsvm_scale10((double)value, -++out.exponent);
    out.digits = (uint64_t)(scaled + 0.5);
    return out;
}

/* Writes at least `minimum` digits of value, with leading zeros. */
static inline char *lsvm_digits_write(uint64_t value, int minimum, char *out)
{
    char buffer[20];
    int n = 0;
    for (; value || n < minimum; value /= 10)
        buffer[n++] = (char)('0' + value % 10);
    while (n)
        *out++ = buffer[--n];
    return out;
}

/* 123.4 or 0.00123 or 1.234e-9: fixed between 10^-5 and 10^9, with an exponent outside */
static inline char *lsvm_decimal_layout(uint64_t digits, int exponent, char *out)
{
    int places = 1, power;
    while (places < LSVM_EXACT_POWER && (double)digits >= lsvm_power10[places])
        places++;
    power = exponent + places - 1;
    if (power < -5 || power >= 9) {
        out = lsvm_decimal_layout(digits, 1 - places, out);
        *out++ = 'e';
        if (power < 0)
            *out++ = '-';
        return lsvm_digits_write((uint64_t)abs(power), 1, out);
    }
    if (exponent >= 0)
        return lsvm_digits_write(digits * (uint64_t)lsvm_power10[exponent], 1, out);
    out = lsvm_digits_write(digits / (uint64_t)lsvm_power10[-exponent], 1, out);
    *out++ = '.';
    return lsvm_digits_write(digits % (uint64_t)lsvm_power10[-exponent], -exponent, out);
}

/*
 * Writes a finite float to `out` (up to 20 bytes, no terminator) and returns the end. places = 0: the shortest text
 * that reads back as the same float (below 1e-38, where fewer than six digits might do, up to six); 1 to 9: that many
 * significant digits, less trailing zeros, cut off where rounding would exceed the largest float.
 */
static inline char *lsvm_decimal_write(float value, int places, char *out)
{
    struct lsvm_decimal v;
    float back;
    int power, p = places ? places : FLT_DIG;
    if (value == 0) {
        *out++ = '0';
        return out;
    }
    if (value < 0) {
        *out++ = '-';
        value = -value;
    }
    power = lsvm_decimal_power(value);
    v = lsvm_decimal_round(value, power, p);
    while (!places && p < 9 && !(lsvm_decimal_to_float(&v, &back) && back == value))
        v = lsvm_decimal_round(value, power, ++p);
    if (lsvm_decimal_to_float(&v, &back) && back > FLT_MAX)
        v.digits--;
    for (; v.digits % 10 == 0; v.exponent++)
        v.digits /= 10;
    return lsvm_decimal_layout(v.digits, (int)v.exponent, out);
}

#endif
