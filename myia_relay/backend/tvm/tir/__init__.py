"""Expressions and statements of tirx: exact arithmetic, vector transcendentals, the way to machine code."""
