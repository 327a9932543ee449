"""Lowering: a checked module becomes parsed graphs."""
