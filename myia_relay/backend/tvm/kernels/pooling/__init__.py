"""Pooling: which kernel computes it (`calls`), and the kernels."""
