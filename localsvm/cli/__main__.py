"""`python -m localsvm.cli` is `lsvm`."""

from localsvm.cli.group import lsvm

lsvm()
