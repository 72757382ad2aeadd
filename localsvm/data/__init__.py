"""Reading and writing examples, scaling, synthetic sets."""
