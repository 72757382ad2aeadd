"""The command line: one file for each command; `options`, `program` and `reporting` hold what commands share.

No module here imports numpy, scipy or h5py at its top, except `plotting`, so that `--help` answers at once.
"""
