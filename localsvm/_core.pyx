"""What the wrappers of csrc share: its codes as exceptions, the SIMD level in use, and matrices as rows.h has them."""
import os

import numpy as np

from cpython.ref cimport PyObject, Py_XDECREF
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport getenv

from localsvm.errors import OptionError
from localsvm.pulse import beat


cdef extern from "Python.h":
    int check_signals "PyErr_CheckSignals"() noexcept
    PyObject *call "PyObject_CallFunction"(PyObject *function, const char *form, ...) noexcept

cdef extern from "simd.h":
    int lsvm_simd_best() nogil
    const lsvm_ops *lsvm_ops_at(int level) nogil

cdef object told = beat

LEVELS = ("baseline", "avx2", "avx512")


cdef int raise_for(int status) except -1:
    if status == LSVM_OK:
        return 0
    if status == LSVM_NO_MEMORY:
        raise MemoryError("no memory for working arrays")
    if status == LSVM_INTERRUPTED:
        return -1  # with the exception that `poll` has left
    if status == LSVM_BAD_ROW:
        raise IndexError("a row index is outside the matrix")
    if status == LSVM_BAD_CHILD:
        raise IndexError("a child index is outside the node")
    if status == LSVM_SINGULAR:
        raise ArithmeticError("a matrix is not positive definite")
    if status == LSVM_BAD_TREE:
        raise ValueError("a node's children must lie behind it inside the tree")
    raise SystemError(f"csrc returned the unknown code {status}")


cdef int end_call(int status) except -1:
    raise_for(status)
    return check_signals()


cdef int poll(void *context, int64_t steps) noexcept nogil:
    cdef PyObject *answer
    with gil:
        if check_signals() != 0:
            return 1
        answer = call(<PyObject *>told, b"L", <long long>steps)
        if answer == NULL:  # its exception is kept, that of Ctrl-C above all, which may come here, too
            return 1
        Py_XDECREF(answer)
        return 0


def simd_level() -> int:
    """The level in use: LOCALSVM_SIMD where it is set, else the best of this processor."""
    cdef int best = lsvm_simd_best()
    cdef const char *given = getenv("LOCALSVM_SIMD")  # os.environ takes a hundred times as long, and is as up to date
    if given == NULL or given[0] == 0:
        return best
    name = os.fsdecode(given)
    if name not in LEVELS[: best + 1]:
        raise OptionError(f"LOCALSVM_SIMD={name}: this machine runs {', '.join(LEVELS[: best + 1])}")
    return LEVELS.index(name)


cdef const lsvm_ops *ops_at(object level) except NULL:
    cdef const lsvm_ops *ops = lsvm_ops_at(simd_level() if level is None else level)
    if ops == NULL:
        raise OptionError("this machine does not run the SIMD level asked for")
    return ops


cdef tuple take_rows(object X, lsvm_rows *rows):
    if len(X.shape) != 2:
        raise ValueError("X must have two dimensions")
    if isinstance(X, np.ndarray):
        arrays = (X,)
    elif getattr(X, "format", None) != "csr":
        raise TypeError("X must be a dense array or a CSR array")
    else:
        arrays = (X.data, np.ascontiguousarray(X.indices, np.int32), np.ascontiguousarray(X.indptr, np.int64))
    if arrays[0].dtype != np.float32 or not arrays[0].flags.c_contiguous:
        raise TypeError("X must be C-contiguous float32, or a CSR array of such values")
    rows.n, rows.d = X.shape
    rows.ld = rows.d
    rows.values = <const float *>address(arrays[0])
    rows.indices = NULL
    rows.indptr = NULL
    if len(arrays) > 1:
        check_sparse(X, *arrays)
        rows.indices = <const int32_t *>address(arrays[1])
        rows.indptr = <const int64_t *>address(arrays[2])
    return arrays


def check_sparse(X, values, indices, indptr) -> None:
    """Raise where the arrays of a CSR array name what is outside it."""
    if len(X.indices) and (X.indices.min() < 0 or X.indices.max() >= min(X.shape[1], 2**31)):
        raise ValueError("a column index of X is outside the matrix")
    if len(indptr) != X.shape[0] + 1 or indptr[0] != 0 or np.any(np.diff(indptr) < 0):
        raise ValueError("X.indptr must ascend from 0, one entry a row")
    if indptr[X.shape[0]] > min(len(values), len(indices)):
        raise ValueError("X.indptr must end at the number of stored values")
