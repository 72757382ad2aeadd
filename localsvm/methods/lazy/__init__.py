"""Methods that keep the rows and solve when a row asks."""
