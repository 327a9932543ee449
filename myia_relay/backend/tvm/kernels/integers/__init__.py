"""Kernels of small integers."""
