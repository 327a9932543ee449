"""Shared parts of the rules of primitives: type relations, broadcasting, batching and forward rules."""
