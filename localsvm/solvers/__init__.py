"""Solvers of the optimisation problems: thin Cython over csrc."""
