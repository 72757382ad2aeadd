"""Where the rows of a run lie and its work is done: in memory, in scratch files, on a cluster (`base.Engine`)."""
