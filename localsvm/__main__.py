"""`python -m localsvm` is `lsvm`."""

from localsvm.cli.group import lsvm

lsvm(prog_name="lsvm")
