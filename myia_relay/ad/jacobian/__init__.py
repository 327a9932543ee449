"""Jacobians: one program for all directions, compressed by colouring."""
