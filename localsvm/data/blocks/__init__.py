"""Rows in memory, in shared memory and in scratch files, and what is said of their columns and numbers."""
