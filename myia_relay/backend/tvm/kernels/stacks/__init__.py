"""Kernels of stacks: of matrices by LAPACK, of vectors that are transformed."""
