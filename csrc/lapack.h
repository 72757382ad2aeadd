/* lapack.h - the routines of BLAS and LAPACK that kernel ridge regression needs, in float32. The caller hands them in, and
 * keeps them on one thread. */
#ifndef LSVM_LAPACK_H
#define LSVM_LAPACK_H

/* Column-major: the lower triangle of a row-major matrix is the upper one of theirs. */
struct lsvm_lapack {
    void (*gemm)(char *transa, char *transb, int *m, int *n, int *k, float *alpha, float *a, int *lda, float *b,
                 int *ldb, float *beta, float *c, int *ldc);
    void (*gemv)(char *trans, int *m, int *n, float *alpha, float *a, int *lda, float *x, int *incx, float *beta,
                 float *y, int *incy);
    void (*trsv)(char *uplo, char *trans, char *diag, int *n, float *a, int *lda, float *x, int *incx);
    void (*potri)(char *uplo, int *n, float *a, int *lda, int *info);
    void (*potrs)(char *uplo, int *n, int *nrhs, float *a, int *lda, float *b, int *ldb, int *info);
};

#endif
