"""Reading and writing examples, scaling, shared memory, synthetic sets."""
