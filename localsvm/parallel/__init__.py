"""Places where work runs: worker processes of this machine, or Apache Spark."""
