"""Representations that methods compute from rows before they solve: clusters, local coordinates, projections."""
