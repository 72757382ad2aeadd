"""Neighbours, and what decides by them."""
