"""Executors: each turns a typed graph into something that runs."""
