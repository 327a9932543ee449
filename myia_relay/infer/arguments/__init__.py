"""Conversion of Python values to arguments of compiled code, and annotations."""
