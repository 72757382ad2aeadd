"""The harness of the experiments: what the scripts of `bench`, `reproduce` and `develop` share.

experiment   one command: measure the cases that its log lacks, keep each run in the log, write the page
comparison   an experiment of contestants (ours and the peers), in rounds, each run in a process of its own
options      the command-line options that all experiments have
runlog       finished runs as lines of JSON, so that a command can be interrupted and goes on
machine      processor, cores and commit, which each run carries
datasets     real data sets from a folder, generated ones, and LIBSVM text of both
commands     whole `lsvm` commands with what they cost; processes with pinned threads
timing       seconds of a call; memory (in `memory`) of a process and its children
cell_models  models in cells of 2 000 rows, for the scripts that train and predict with whole commands
peers        the other libraries
library      what the scripts use of localsvm's internals
summaries    medians and ratios of a comparison, and its page
tables       numbers and tables in Markdown
pictures     colours, axes and legends
"""
