"""Training on rows that are not held in memory, in passes over a file."""
