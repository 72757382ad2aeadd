"""Local support vector machines: cells, a small problem in each, hyper-parameters chosen cell by cell."""

__version__ = "0.1.0"
