"""Passes that find work for special kernels: rows as structures of arrays, blocks of rows, triangular matrices."""
