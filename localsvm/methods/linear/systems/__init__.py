"""Linear problems of a cell, and models that decide."""
