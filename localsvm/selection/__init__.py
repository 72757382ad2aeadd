"""Choice of a point in a cell: folds, the search of the grid, and the one cross-validation loop of all methods."""
