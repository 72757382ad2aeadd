"""Kernel SVMs: one expansion over support vectors a problem."""
