"""Reading and writing LIBSVM text, rows in memory and in shared memory, scaling, synthetic data sets."""
