"""Calling native programs: all that a compiled program needs when it runs, and nothing of the compiler that made it."""
