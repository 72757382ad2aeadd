"""Path from coarse cells to trained cells: division, work units, records."""
