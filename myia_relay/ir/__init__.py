"""The graph-based A-normal form: nodes, graphs, primitives, walking, rewriting, printing, verifying."""
