"""Compiled programs in files: found again by another process, or given to one that has no compiler."""
