"""Transforms of a row before a method sees it: fitted, in a chain, which the model keeps."""
