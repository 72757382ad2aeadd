"""The command line: one file a command; what commands share is in `options`, `program` and `reporting`.

Nothing here imports numpy, scipy or h5py at its top, so that `--help` answers at once.
"""
