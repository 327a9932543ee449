"""Compiled programs in files: used again by other processes, or exported to machines without a compiler."""
