"""Primitives of LAPACK: systems of equations and factorisations."""
