"""Kernels and squared distances: thin Cython over csrc."""
