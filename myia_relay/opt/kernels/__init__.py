"""Passes that prepare special kernels: structures of arrays, blocks of rows, triangular matrices."""
