"""Mixtures of a cell, EM with labels, and components that decide."""
