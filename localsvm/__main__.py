"""`python -m localsvm`, which is `lsvm`."""

from localsvm.cli.group import lsvm

lsvm(prog_name="lsvm")
