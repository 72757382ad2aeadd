"""Ways to divide the space, one file each."""
