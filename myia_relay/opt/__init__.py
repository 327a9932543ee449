"""The optimiser: rewrite rules as data, passes as frozen dataclasses, and the pipeline that runs them."""
