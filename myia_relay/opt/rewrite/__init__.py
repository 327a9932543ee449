"""Passes that rewrite operations and calls: rules, simplification, calls, checks, branches."""
