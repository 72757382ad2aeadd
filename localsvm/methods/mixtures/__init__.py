"""Mixtures of linear SVMs, found by EM."""
