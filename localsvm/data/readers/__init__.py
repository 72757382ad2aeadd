"""Readers: LIBSVM text, compressed or plain, and weights of rows."""
