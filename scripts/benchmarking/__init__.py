"""What the benchmarks share: jobs and their contestants (running), what runs inside a contestant (inside), the peers,
the data sets (sets) and the tables (report)."""
