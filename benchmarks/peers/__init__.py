"""The systems that are measured: each module is a worker process that does the same work in its own way."""
