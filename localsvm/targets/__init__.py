"""Meaning of the labels: the problems that are solved for them, and how decision values become labels."""
