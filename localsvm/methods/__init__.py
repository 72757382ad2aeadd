"""Learning methods, one file each."""
