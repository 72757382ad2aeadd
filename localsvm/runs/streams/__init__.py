"""Training on rows that are not held: in passes over a file."""
