"""Solvers of the optimisation problems, most of them thin Cython over csrc."""
