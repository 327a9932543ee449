"""Kernels: loop nests over arrays, products, convolutions, pooling."""
