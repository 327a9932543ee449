"""Calling native programs: all that a compiled program needs at run time, and nothing of the compiler that made it."""
