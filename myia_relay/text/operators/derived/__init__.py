"""Operators that follow from a prefix of their names: `grad.NAME`, `prim.NAME`."""
