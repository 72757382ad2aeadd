"""Files on disk: models, partitions, the journal of a running training, output files."""
