/* status.h - what a function of csrc that can fail returns, and how a long one asks whether to stop.
 *
 * Such a function returns int: LSVM_OK, or another code below; its comment says which. After a failure the output
 * arrays hold no meaning unless the comment says so. In Cython a code becomes an exception in one place,
 * localsvm/_core.pyx. Only the mistakes in a text, which have a place as well, become theirs in
 * localsvm/data/_text.pyx.
 */
#ifndef LSVM_STATUS_H
#define LSVM_STATUS_H

enum lsvm_status {
    LSVM_OK = 0,
    LSVM_NO_MEMORY,   /* the working arrays could not be allocated */
    LSVM_INTERRUPTED, /* an lsvm_poll asked to stop */
    LSVM_BAD_ROW,     /* a row index is outside the matrix */
    LSVM_BAD_CHILD,   /* a child index is outside 0 .. n_children - 1 */
    LSVM_BAD_TREE,    /* a node's children do not lie behind it inside the tree */
    LSVM_SINGULAR,    /* a matrix is not positive definite */

    LSVM_TEXT_CHANGED, /* more rows or entries than the arrays hold: not the text that was counted */
    LSVM_TEXT_LABEL_NOT_NUMBER,
    LSVM_TEXT_LABEL_MISSING, /* the line begins with index:value */
    LSVM_TEXT_LABEL_LIST,    /* 1,2 */
    LSVM_TEXT_LABEL_NOT_FINITE,
    LSVM_TEXT_LABEL_TOO_LARGE, /* beyond the largest double */
    LSVM_TEXT_LABEL_INEXACT,   /* a whole number that no double is */
    LSVM_TEXT_QUERY_NOT_NUMBER,
    LSVM_TEXT_INDEX_NOT_NUMBER,
    LSVM_TEXT_INDEX_ZERO,
    LSVM_TEXT_INDEX_NEGATIVE,
    LSVM_TEXT_INDEX_TOO_LARGE, /* a column beyond 2^31 - 2 */
    LSVM_TEXT_INDEX_REPEATED,
    LSVM_TEXT_INDEX_DESCENDING,
    LSVM_TEXT_COLON_MISSING,
    LSVM_TEXT_VALUE_MISSING,
    LSVM_TEXT_VALUE_NOT_NUMBER,
    LSVM_TEXT_VALUE_NOT_FINITE,
    LSVM_TEXT_VALUE_TOO_LARGE, /* beyond the largest float */
    LSVM_TEXT_LONE_RETURN,     /* a carriage return that no newline follows */

    LSVM_CSV_RAGGED,      /* a row with more or fewer fields than there are columns */
    LSVM_CSV_OPEN_QUOTE,  /* a quoted field without an end */
    LSVM_CSV_AFTER_QUOTE, /* text between the quote that ends a field and the delimiter */
    LSVM_CSV_NOT_NUMBER,  /* a field of a column of numbers is none */
    LSVM_CSV_NUL          /* a NUL byte in a text */
};

/* Asked now and then by the solvers, with the caller's `context` and the steps so far; nonzero ends the solve with
 * LSVM_INTERRUPTED. */
typedef int (*lsvm_poll)(void *context, int64_t steps);

#endif
