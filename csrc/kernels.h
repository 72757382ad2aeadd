/* kernels.h - inner products, distances, kernels of them, and kernel expansions. Single precision, dense rows.
 *
 * Matrices are row-major float32. "Packed" means that rows are interleaved in panels of lsvm_panel_width(ops) rows,
 * feature by feature, so that one vector load yields the same feature of neighbouring rows.
 * Every value depends on its two rows alone: not on the block they came in, nor on their place in it.
 * Kernel values and products are in units of the features, which the caller has scaled.
 * Nothing here allocates or fails; the caller owns every buffer.
 */
#ifndef LSVM_KERNELS_H
#define LSVM_KERNELS_H

#include "rows.h"
#include "simd.h"

enum { LSVM_GAUSSIAN = 0, LSVM_LAPLACIAN = 1, LSVM_POLYNOMIAL = 2, LSVM_LINEAR = 3, LSVM_MANHATTAN = 4 };

/* What a kernel is a function of: x.y, |x-y|^2, or sum_k |x_k-y_k|. */
enum { LSVM_PRODUCTS = 0, LSVM_SQUARES = 1, LSVM_SUMS = 2 };

/* gaussian: exp(-gamma |x-y|^2); laplacian: exp(-gamma |x-y|); polynomial: (gamma x.y + coef0)^degree; linear: x.y;
 * manhattan: exp(-gamma sum_k |x_k-y_k|) */
struct lsvm_kernel {
    int kind;
    int degree; /* polynomial, >= 0 */
    float gamma;
    float coef0;
};

/* Dense rows and, for distances, what they add to each of them by themselves: squared norms for LSVM_SQUARES, and for
 * LSVM_SUMS zeros, or the sums over features that are left out because the other rows are zero there. */
struct lsvm_points {
    struct lsvm_rows rows;
    const float *norm; /* rows.n; NULL for LSVM_PRODUCTS */
};

struct lsvm_panels {
    const float *packed; /* panels * d * width floats, LSVM_ALIGN aligned */
    const float *norm;   /* panels * width, as above, zero in the padding; NULL as above */
    int64_t panels, d;
};

/* The kernel matrix of n rows with themselves, for a kernel of distances, whose rows are computed when they are first read:
 * a solution of few support vectors needs few. For one thread at a time. */
struct lsvm_kernel_rows {
    struct lsvm_points a; /* the n rows */
    struct lsvm_panels b; /* the same */
    struct lsvm_kernel kernel;
    float *k;             /* the matrix, LSVM_ALIGN aligned */
    int64_t ld;           /* floats from row to row, at least panels * width; zeros right of these */
    unsigned char *there; /* of each row: whether it has been computed, or is padding, which nobody reads */
};

/* f_m(x) = sum_j coef_m[j] k_g(x, b_j) for the models m in [group_ptr[g], group_ptr[g+1]) of each kernel g. Of a
 * model's coefficients only the panels with a nonzero are kept: one of many pairs of classes uses few of all support
 * vectors. */
struct lsvm_expansion {
    struct lsvm_panels b;
    int64_t groups;
    const struct lsvm_kernel *kernels; /* one a group */
    const int64_t *group_ptr;          /* groups + 1 */
    const int64_t *used_ptr;           /* models + 1 */
    const int32_t *used;               /* panels that model m uses: used_ptr[m] to used_ptr[m+1] - 1, ascending */
    const double *coef;                /* width for each entry of `used`, LSVM_ALIGN aligned */
};

int64_t lsvm_panel_width(const struct lsvm_ops *ops);

/* Interleave n rows of d features (ld apart) into panels; `out` holds ceil(n / width) * width * d floats. */
void lsvm_pack(const struct lsvm_ops *ops, const float *x, int64_t n, int64_t d, int64_t ld, float *out);

/* Squared Euclidean norms, rounded exactly as the products of this level, so that |x-x|^2 comes out as zero. */
void lsvm_norms(const struct lsvm_ops *ops, const struct lsvm_rows *a, float *out);

/* The base of a kernel: LSVM_PRODUCTS, LSVM_SQUARES or LSVM_SUMS. */
static inline int lsvm_base(const struct lsvm_kernel *kernel)
{
    if (kernel->kind == LSVM_MANHATTAN)
        return LSVM_SUMS;
    return kernel->kind == LSVM_GAUSSIAN || kernel->kind == LSVM_LAPLACIAN ? LSVM_SQUARES : LSVM_PRODUCTS;
}

/* out[i*ldo + j] for all j < panels * width: a_i . b_j for LSVM_PRODUCTS, max(0, |a_i|^2 + |b_j|^2 - 2 a_i . b_j) for
 * LSVM_SQUARES, sum_k |a_ik - b_jk| and both norms for LSVM_SUMS. */
void lsvm_products(const struct lsvm_ops *ops, const struct lsvm_points *a, const struct lsvm_panels *b, float *out,
                   int64_t ldo, int base);

/* Kernel values from what the kernel is a function of; n a multiple of LSVM_PAD. `in` and `out` may be the same. */
void lsvm_transform(const struct lsvm_ops *ops, const struct lsvm_kernel *kernel, const float *in, float *out,
                    int64_t n);

/* out[i*ldo + j] = k(a_i, b_j) for all j < panels * width: the products and the transformation at once, bit for bit;
 * norms of both where the kernel is one of distances. */
void lsvm_kernel_matrix(const struct lsvm_ops *ops, const struct lsvm_points *a, const struct lsvm_panels *b,
                        const struct lsvm_kernel *kernel, float *out, int64_t ldo);

/* Floats of scratch that lsvm_expansions needs. */
int64_t lsvm_expansion_scratch(const struct lsvm_ops *ops, const struct lsvm_expansion *e);

/* out[i*models + m] = f_m(a_i), accumulated in double precision. */
void lsvm_expansions(const struct lsvm_ops *ops, const struct lsvm_points *a, const struct lsvm_expansion *e,
                     float *scratch, double *out);

/* out[i] += sum_j coef[j] k(a_i, b_j), summed in double precision; coef holds panels * width doubles, LSVM_ALIGN
 * aligned, zero in the padding. No kernel value is stored: this is how a kernel too large for the memory is
 * multiplied. */
void lsvm_accumulate(const struct lsvm_ops *ops, const struct lsvm_points *a, const struct lsvm_panels *b,
                     const struct lsvm_kernel *kernel, const double *coef, double *out);

/* out[k] = sum_ij w_ij |a_ik - b_jk| for the d features of m rows a, x (m x d), and n rows b, whose columns are n floats
 * each, one after the other. w (m x n) has ld floats from row to row; a few rows are summed in single precision, lane by
 * lane, all of these in double. */
void lsvm_weighted_sums(const struct lsvm_ops *ops, const float *w, int64_t ld, const float *x, int64_t m,
                        const float *columns, int64_t n, int64_t d, double *out);

/* Adds to out (m, n) what the rows first .. last - 1 of the upper triangle of a symmetric K (n, n) give to X K, for X
 * (m, n): all of these rows together give it whole. n, first and last are multiples of LSVM_PAD, and all three arrays
 * LSVM_ALIGN aligned. Half of K is read: where m is small, reading takes the time. Denormal numbers count as 0. */
void lsvm_symmetric_products(const struct lsvm_ops *ops, const float *k, int64_t n, int64_t first, int64_t last,
                             const float *x, int64_t m, float *out);

#endif
