/* simd.h - vector types of one SIMD level, and the choice of a level at run time.
 *
 * The hot loops are written once, over vectors of LSVM_LANES floats, in *_hot.h. level.h includes them all and is
 * compiled three times (level_baseline.c, level_avx2.c, level_avx512.c), each into one table of functions. The caller
 * asks lsvm_ops_at(level) for a table and hands it down: there is no global state and no cpuid behind anyone's back.
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

/* Return codes of all fallible functions. */
enum { LSVM_OK = 0, LSVM_NO_MEMORY = -1, LSVM_INTERRUPTED = -3 };

struct lsvm_ops; /* level.h */

/* Highest level that this processor runs. */
int lsvm_simd_best(void);

/* Table of a level, or NULL where the processor or the build lacks it. The table is static: nobody frees it. */
const struct lsvm_ops *lsvm_ops_at(int level);

#endif
