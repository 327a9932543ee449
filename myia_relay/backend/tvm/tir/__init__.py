"""Expressions and statements of tirx: exact arithmetic, vector transcendentals, code generation."""
