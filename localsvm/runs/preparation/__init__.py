"""Preparation of a run: what it learns of all rows before any cell is trained, and where they lie."""
