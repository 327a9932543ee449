"""Executors: each iterations a typed graph into something that runs."""
