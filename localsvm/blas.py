"""Threads of the libraries for linear algebra: one in each process, as threads and processes of ours work side by side.

With more, the threads of OpenBLAS wait for each other in loops that take processor time, and results depend in their
last bits on the number of cores of the machine.
"""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # environment variables
