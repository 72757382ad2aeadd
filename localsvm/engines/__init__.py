"""Engines: they hold the rows of a run and do its work in memory, in scratch files, or on a cluster (`base.Engine`)."""
