"""What the wrappers of csrc share: its codes as exceptions, the SIMD level in use, and matrices as rows.h has them."""

from cpython.buffer cimport PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t


cdef extern from "status.h":
    enum: LSVM_OK, LSVM_NO_MEMORY, LSVM_INTERRUPTED, LSVM_BAD_ROW, LSVM_BAD_CHILD, LSVM_BAD_TREE, LSVM_SINGULAR
    ctypedef int (*lsvm_poll)(void *context, int64_t steps) noexcept nogil

cdef extern from "simd.h":
    enum: LSVM_PAD, LSVM_ALIGN
    cdef struct lsvm_ops:
        pass

cdef extern from "rows.h":
    cdef struct lsvm_rows:
        int64_t n, d
        const float *values
        int64_t ld
        const int32_t *indices
        const int64_t *indptr

# Nothing for LSVM_OK; any other code of status.h raises. Not for the mistakes in a text: see data/_text.pyx.
cdef int raise_for(int status) except -1

# The same, and Ctrl-C raises: for calls that are short enough not to poll.
cdef int end_call(int status) except -1

# An lsvm_poll, whatever the context: tells the pulse, and is nonzero after Ctrl-C. The exception of it is then what
# raise_for raises.
cdef int poll(void *context, int64_t steps) noexcept nogil

# The table of a level, None: of the one in use. Raises OptionError where this machine does not run it.
cdef const lsvm_ops *ops_at(object level) except NULL

# Checks X, a C-order float32 matrix or a CSR array of float32, and points `rows` at it. Returns the arrays that have to
# be kept as long as `rows` is used; X must not change meanwhile.
cdef tuple take_rows(object X, lsvm_rows *rows)

# Where the first element of an array is. Its `ctypes.data` takes ten times as long.
cdef inline void *address(object array) except? NULL:
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_STRIDED_RO)
    cdef void *first = view.buf
    PyBuffer_Release(&view)
    return first
