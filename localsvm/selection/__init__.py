"""Folds, grids, and the cross-validation of one cell."""
