"""Runs: training, prediction, validation, streaming, and what they share."""
