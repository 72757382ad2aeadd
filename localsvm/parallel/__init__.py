"""Worker processes of this machine, which run the work units."""
