"""Kernels of a cell, their dual problems, and expansions that decide."""
