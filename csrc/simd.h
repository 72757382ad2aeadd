/* simd.h - the choice of a SIMD level at run time.
 *
 * The hot loops are written once, in *_hot.h, and compiled once a level, each time into one table of functions (ops.h):
 * level.h has those over vectors of LSVM_LANES floats (level_baseline.c, level_avx2.c, level_avx512.c), level_unfused.h
 * those whose bits are the same at every level (level_*_unfused.c). What these files define besides the tables is
 * static, so its names need no prefix. The caller asks lsvm_ops_at(level) for a table and hands it down: there is no
 * global state and no cpuid behind anyone's back. Nothing here allocates or fails, but for the NULL of lsvm_ops_at.
 */
#ifndef LSVM_SIMD_H
#define LSVM_SIMD_H

#include <stddef.h>
#include <stdint.h>

enum { LSVM_BASELINE = 0, LSVM_AVX2 = 1, LSVM_AVX512 = 2 };

/* Rows of every matrix handed to the core are LSVM_ALIGN bytes aligned and padded to a multiple of LSVM_PAD elements,
 * whatever the level, so that no loop has a remainder. */
#define LSVM_ALIGN 128
#define LSVM_PAD 32

struct lsvm_ops; /* level.h */

/* Highest level that this processor runs. */
int lsvm_simd_best(void);

/* Table of a level, or NULL where the processor or the build lacks it. The table is static: nobody frees it. */
const struct lsvm_ops *lsvm_ops_at(int level);

#endif
